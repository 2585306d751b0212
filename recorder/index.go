package recorder

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	bolt "go.etcd.io/bbolt"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// Index is what was derived from the frames up to Judged. It is written in a
// commit of its own, after that of the frames; it can be dropped and made again
// from them.
type Index struct {
	Judged   capture.Position
	Posts    []conversation.Post
	Runs     []*conversation.Run    // as they stand now
	Threads  []*conversation.Thread // as they stand now
	Findings []protocol.Finding
}

// Index adds what was derived. The values are written out before it returns or
// copied. The frames up to Judged must have been given to Frame before.
func (w *Writer) Index(x *Index) {
	d := newDerived()
	err := d.add(w.session.ID, x)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || w.closing {
		return
	}
	if err != nil {
		w.err = err
	} else if w.derived == nil {
		w.derived = d
	} else {
		w.derived.merge(d)
	}
	w.signal()
}

// rowKey is a session, and a run's or thread's name in it.
type rowKey [4 + 16]byte

// newRowKey makes the key of a run or thread. Its id is taken as JSON keeps it,
// so that what was read back still finds its rows.
func newRowKey(session capture.SessionID, id string) (key rowKey) {
	if !utf8.ValidString(id) {
		id = string([]rune(id))
	}
	name := sha256.Sum256([]byte(id))
	binary.BigEndian.PutUint32(key[:], uint32(session))
	copy(key[4:], name[:])
	return key
}

// derived is an Index, or several, as their rows will be.
type derived struct {
	judged   capture.Position
	posts    map[rowKey][]capture.Position
	runs     map[rowKey][]byte // sealed values
	threads  map[rowKey][]byte
	findings []finding
}

type finding struct {
	at    capture.Address
	value []byte // with room for the seal
}

func newDerived() *derived {
	return &derived{
		posts: map[rowKey][]capture.Position{}, runs: map[rowKey][]byte{}, threads: map[rowKey][]byte{},
	}
}

// value writes v as JSON behind room for the seal.
func value(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write a row of the index: %w", err)
	}
	return append(make([]byte, sealSize, sealSize+len(text)), text...), nil
}

// add writes out the rows of an index of a session.
func (d *derived) add(session capture.SessionID, x *Index) (err error) {
	d.judged = max(d.judged, x.Judged)
	for posts := x.Posts; len(posts) > 0; {
		// Those of one run mostly stand together.
		run := posts[0].Run
		key := newRowKey(run.Session, run.Run)
		list := d.posts[key]
		for len(posts) > 0 && posts[0].Run == run {
			list = append(list, posts[0].Position)
			posts = posts[1:]
		}
		d.posts[key] = list
	}
	for _, run := range x.Runs {
		if d.runs[newRowKey(run.Session, run.ID)], err = value(run); err != nil {
			return err
		}
	}
	for _, thread := range x.Threads {
		if d.threads[newRowKey(session, thread.ID)], err = value(thread); err != nil {
			return err
		}
	}
	for i := range x.Findings {
		v, err := value(x.Findings[i])
		if err != nil {
			return err
		}
		d.findings = append(d.findings, finding{at: x.Findings[i].At, value: v})
	}
	return nil
}

// merge adds what was derived later.
func (d *derived) merge(later *derived) {
	d.judged = max(d.judged, later.judged)
	for key, positions := range later.posts {
		d.posts[key] = append(d.posts[key], positions...)
	}
	for key, row := range later.runs {
		d.runs[key] = row
	}
	for key, row := range later.threads {
		d.threads[key] = row
	}
	d.findings = append(d.findings, later.findings...)
}

// write stores the rows, and how far they reach. The counter numbers the
// findings of a session.
func (d *derived) write(tx *bolt.Tx, s *capture.Session, counter *uint32) error {
	for key, positions := range d.posts {
		if err := writePosts(tx, key, positions); err != nil {
			return err
		}
	}
	for key, row := range d.runs {
		if err := put(tx, runBucket, key[:], row); err != nil {
			return err
		}
	}
	for key, row := range d.threads {
		if err := put(tx, threadBucket, key[:], row); err != nil {
			return err
		}
	}
	for _, f := range d.findings {
		key := binary.BigEndian.AppendUint64(sessionKey(s.ID), uint64(f.at.Position))
		key = binary.BigEndian.AppendUint32(key, uint32(f.at.Packet))
		key = binary.BigEndian.AppendUint32(key, *counter)
		*counter++
		if err := put(tx, findingBucket, key, f.value); err != nil {
			return err
		}
	}
	s.Judged, s.Rules = max(s.Judged, d.judged), protocol.CatalogueVersion
	return putSession(tx, s)
}
