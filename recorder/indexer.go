package recorder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"tapedeck/protocol/capture"
)

// Indexer makes the derived rows of a session again. It belongs to one
// goroutine.
type Indexer struct {
	tape    *tapeFile
	session capture.Session
	counter uint32
	derived *derived
	rows    int
}

// indexRows is how many posts and findings an Indexer gathers before it commits.
const indexRows = 20_000

// OpenIndexer opens the tape at path for writing the derived rows of a session,
// and drops those it has. Until Close the session counts as not judged, so that
// one that is interrupted is done again.
func OpenIndexer(path string, session capture.SessionID) (*Indexer, error) {
	tape, err := openFile(path, true)
	if err != nil {
		return nil, err
	}
	x := &Indexer{tape: tape, derived: newDerived()}
	err = tape.update(func(tx *bolt.Tx) error {
		key := sessionKey(session)
		value := tx.Bucket([]byte(sessionBucket)).Get(key)
		if value == nil {
			return fmt.Errorf("there is no session %d", session)
		}
		text, err := unseal(sessionBucket, key, value)
		if err == nil {
			err = json.Unmarshal(text, &x.session)
		}
		if err != nil {
			return fmt.Errorf("%w: session %d: %w", ErrDamaged, session, err)
		}
		if err := dropDerived(tx, session); err != nil {
			return err
		}
		x.session.Judged = 0
		return putSession(tx, &x.session)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("index tape %q: %w", path, explain(path, err)), tape.close())
	}
	return x, nil
}

// dropDerived deletes the derived rows of a session.
func dropDerived(tx *bolt.Tx, session capture.SessionID) error {
	prefix := sessionKey(session)
	for _, b := range []bucket{runBucket, threadBucket, postBucket, findingBucket} {
		c := tx.Bucket([]byte(b)).Cursor()
		// Next may skip an entry after Delete; Seek does not.
		for key, _ := c.Seek(prefix); bytes.HasPrefix(key, prefix); key, _ = c.Seek(prefix) {
			if err := c.Delete(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Session returns the session that is indexed, with Last as far as its row knows.
func (x *Indexer) Session() capture.Session { return x.session }

// Reader reads the tape meanwhile. It ends with the Indexer.
func (x *Indexer) Reader() *Reader { return newReader(x.tape, nil) }

// Index adds what was derived.
func (x *Indexer) Index(index *Index) error {
	if err := x.derived.add(x.session.ID, index); err != nil {
		return err
	}
	if x.rows += len(index.Posts) + len(index.Findings); x.rows < indexRows {
		return nil
	}
	return x.flush()
}

func (x *Indexer) flush() error {
	err := x.tape.update(func(tx *bolt.Tx) error {
		return x.derived.write(tx, &x.session, &x.counter)
	})
	if err != nil {
		return fmt.Errorf("index tape %q: %w", x.tape.path, err)
	}
	x.derived, x.rows = newDerived(), 0
	return nil
}

// Close writes the rest and closes the file.
func (x *Indexer) Close() error {
	return errors.Join(x.flush(), x.tape.close())
}
