package wire

import (
	"slices"

	"tapedeck/protocol/capture"
)

// maxQuestions is how many questions of one connection are remembered.
const maxQuestions = 1 << 12

// questions are the packets of a connection that asked for an acknowledgement.
// An id counts within its namespace and direction, and starts again with each
// connection.
type questions map[askKey]*question

type askKey struct {
	namespace string
	asker     capture.Direction
	id        string
}

type question struct {
	at       capture.Address
	name     string
	answered bool
}

// pair remembers p if it asks for an acknowledgement, and finds what it answers
// if it is one.
func (q *questions) pair(p *Packet) {
	if p.ID == "" {
		return
	}
	key := askKey{p.Namespace, p.Direction, number(p.ID)}
	if p.Type == Event || p.Type == BinaryEvent {
		if *q == nil {
			*q = questions{}
		}
		if len(*q) >= maxQuestions {
			q.prune()
		}
		(*q)[key] = &question{at: p.Address, name: p.Name}
		return
	}
	if p.Type != Ack && p.Type != BinaryAck {
		return
	}
	key.asker = p.Direction.Other()
	if asked := (*q)[key]; asked != nil {
		p.Answers, p.Asked, p.Repeated = asked.at, asked.name, asked.answered
		asked.answered = true
	}
}

// prune forgets what was answered; if nothing was, the older half.
func (q *questions) prune() {
	for key, asked := range *q {
		if asked.answered {
			delete(*q, key)
		}
	}
	if len(*q) < maxQuestions {
		return
	}
	ages := make([]capture.Position, 0, len(*q))
	for _, asked := range *q {
		ages = append(ages, asked.at.Position)
	}
	slices.Sort(ages)
	middle := ages[len(ages)/2]
	for key, asked := range *q {
		if asked.at.Position <= middle {
			delete(*q, key)
		}
	}
}

// number takes leading zeros off an id: a peer reads it as a number.
func number(id string) string {
	for len(id) > 1 && id[0] == '0' && id[1] >= '0' && id[1] <= '9' {
		id = id[1:]
	}
	return id
}
