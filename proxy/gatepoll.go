package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	"tapedeck/protocol/capture"
)

// gatedPoll is pass for a polling request where a gate is set.
func (p *Proxy) gatedPoll(w http.ResponseWriter, r *http.Request, x *exchange) (broken bool) {
	switch {
	case x.conn == nil: // a handshake, or the end of a session
		return p.pass(w, r, x)
	case r.Method == http.MethodPost:
		return p.gatedPost(w, r, x)
	}
	return p.gatedGet(w, r, x)
}

// gatedPost asks the gate about each packet of a posted body, and posts what may
// pass.
func (p *Proxy) gatedPost(w http.ResponseWriter, r *http.Request, x *exchange) (broken bool) {
	limited := io.LimitReader(r.Body, int64(p.cfg.BodyLimit)+1)
	data, err := io.ReadAll(limited)
	if err != nil {
		x.add(capture.FromClient, data)
		x.clientFailed()
		x.finish(capture.FromClient, "client left before its request was whole")
		return true
	}
	if len(data) > p.cfg.BodyLimit || coding(r.Header) != 0 {
		r.Body = restOf(data, r.Body)
		return p.pass(w, r, x)
	}
	j := p.judgeBody(x, capture.FromClient, data)
	if j.changed {
		x.replaced(capture.FromClient, data, j.rest, &j)
		x.conn.gate.wait(j.replies)
	}
	x.add(capture.FromClient, j.rest) // it is whole, whatever becomes of its passing
	x.ended(capture.FromClient, 0)
	if len(j.rest) == 0 && len(data) > 0 {
		x.conn.gate.borrow(w.Header())
		p.answer(w, x, http.StatusOK, "text/html", "ok", 0, "") // as the gateway says it
		return false
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(j.rest)), int64(len(j.rest))
	r.TransferEncoding, r.Trailer = nil, nil
	return p.pass(w, r, x)
}

// restOf is a body of which data was read already.
func restOf(data []byte, body io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(data), body), body}
}

// sendJudged sends the client what the gate left of an answer, and what it added.
func (p *Proxy) sendJudged(w http.ResponseWriter, r *http.Request, x *exchange, res *http.Response, was []byte, j *judged) {
	if len(j.rest) == 0 && j.answers == nil {
		j.rest = []byte{'6'} // an answer without a packet would end the session
	}
	body := joinAnswers(bytes.Clone(j.rest), j.answers)
	res.ContentLength, res.TransferEncoding = int64(len(body)), nil
	res.Header.Set("Content-Length", strconv.Itoa(len(body)))
	x.mute(capture.FromGateway)
	p.head(w, r, x, res)
	x.add(capture.FromGateway, was)
	x.ended(capture.FromGateway, 0)
	if j.changed {
		x.replaced(capture.FromGateway, was, j.rest, j)
	} else {
		x.insert(0, was)
	}
	x.tell(x.insert(capture.Injected, joinAnswers(nil, j.answers)), j.answers)
	x.sizes(0, int64(len(body)))
	x.finish(0, "")
	w.Write(body) // a client that has left needs none
}

// judged is what a gate left of a polling body.
type judged struct {
	rest    []byte
	changed bool
	deeds   []capture.Deed
	replies []answer // for whoever sent the body
	answers []answer // for whoever gets it
}

// judgeBody asks the gate about the packets of a body.
func (p *Proxy) judgeBody(x *exchange, dir capture.Direction, data []byte) (j judged) {
	gate := &x.conn.gate
	var packets []polled
	first := -1 // the header of the event under way
	for packet := range bytes.SplitSeq(data, []byte{separator}) {
		f := x.frame(capture.Polling, dir)
		f.At, f.Data, f.Size = p.tap.now(), packet, int64(len(packet))
		part, e := gate.follow(&f)
		q := polled{packet: packet, verdict: p.cfg.Gate.Judge(&f), header: -1}
		switch {
		case part == header:
			first = len(packets)
			q.header = first
		case part == attachment && e.fate == held:
			q.header = first
		case part == attachment:
			// What became of its header is done. The same becomes of it.
			q.verdict = Verdict{Withhold: e.fate == withheld, Deed: capture.Deed{Did: "refused", Text: "an attachment of a message before it"}}
		}
		packets = append(packets, q)
	}
	for i := range packets {
		if h := packets[i].header; h >= 0 && packets[i].verdict.Withhold {
			packets[h].refused = true
		}
	}
	if first >= 0 {
		// What its attachments in a later body become.
		if packets[first].refused {
			gate.settle(dir, withheld)
		} else {
			gate.settle(dir, passed)
		}
	}
	for i := range packets {
		q := &packets[i]
		j.add(q, q.header >= 0 && packets[q.header].refused)
	}
	if !j.changed {
		j.rest = data // also if it was odd, such as empty packets
	}
	return j
}

// polled is a packet of a body.
type polled struct {
	packet  []byte
	verdict Verdict
	header  int  // the index of the header of its event, or its own; else -1
	refused bool // of a header: the event is refused
}

// add adds what is to be sent of q. Refused is whether the event that it is a
// part of is refused.
func (j *judged) add(q *polled, refused bool) {
	v := &q.verdict
	if refused || !v.passes() {
		j.changed = true
		if v.Deed.Did != "" {
			j.deeds = append(j.deeds, v.Deed)
		}
		for _, text := range v.Answers {
			j.replies = append(j.replies, answer{text: text, rule: v.Deed.Rule})
		}
		if refused || v.Replace == nil {
			return
		}
		q.packet = v.Replace
	}
	if len(j.rest) > 0 {
		j.rest = append(j.rest, separator)
	}
	j.rest = append(j.rest, q.packet...)
}

// replaced puts a body on the tape as it came and, if something of it is left,
// as it is sent.
func (x *exchange) replaced(dir capture.Direction, was, rest []byte, j *judged) {
	x.mute(dir)
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.frame(capture.Polling, dir)
	f.Flags, f.Size, f.Data = capture.Withheld, int64(len(was)), was
	of, sent := x.tap.put(f), capture.Position(0)
	if len(rest) > 0 {
		f.Flags, f.Size, f.Data = capture.Injected, int64(len(rest)), rest
		sent = x.tap.put(f)
	}
	for _, d := range j.deeds {
		d.Of, d.Sent = of, sent
		x.tap.mark(x.frame(capture.Act, 0), &d)
	}
	for i := range j.replies {
		j.replies[i].of = of
	}
}

// insert puts a part of the answer on the tape, unless it is empty.
func (x *exchange) insert(flags capture.Flags, data []byte) capture.Position {
	if len(data) == 0 {
		return 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.frame(capture.Polling, capture.FromGateway)
	f.Flags, f.Size, f.Data = flags, int64(len(data)), data
	return x.tap.put(f)
}

// tell says that answers are in the body at sent.
func (x *exchange) tell(sent capture.Position, answers []answer) {
	for _, a := range answers {
		x.tap.mark(x.frame(capture.Act, 0), &capture.Deed{Did: "injected", Of: a.of, Sent: sent, Rule: a.rule})
	}
}

// mute keeps the body that dir sends off the tape: its frames are put by hand.
func (x *exchange) mute(dir capture.Direction) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.body(dir).mute = true
}

func joinAnswers(body []byte, answers []answer) []byte {
	for _, a := range answers {
		if len(body) > 0 {
			body = append(body, separator)
		}
		body = append(body, a.text...)
	}
	return body
}
