package recorder

import (
	"errors"
	"os"

	bolt "go.etcd.io/bbolt"

	"tapedeck/protocol/capture"
)

// buildBytes is how many bytes a builder gathers before it commits.
const buildBytes = 4 << 20

// builder makes a tape out of another, in large commits. It belongs to one
// goroutine.
type builder struct {
	tape   *tapeFile
	tx     *bolt.Tx
	blocks *blockWriter
	bytes  int
}

// buildTape makes a tape in a file beside path, filled by fill, and returns the
// file's name and size. If it fails no file is left.
func buildTape(path, tool string, secret []byte, fill func(*builder) error) (name string, size int64, err error) {
	if name, err = createTemporary(path, tool, secret); err != nil {
		return "", 0, err
	}
	defer func() {
		if err != nil {
			os.Remove(name)
			name = ""
		}
	}()
	b := &builder{}
	if b.tape, err = openFile(name, true); err != nil {
		return name, 0, err
	}
	err = fill(b)
	if err == nil {
		err = b.commit()
	} else if b.tx != nil {
		b.tx.Rollback() // nothing of it is wanted
	}
	if err = errors.Join(err, b.tape.close()); err != nil {
		return name, 0, err
	}
	info, err := os.Stat(name)
	if err != nil {
		return name, 0, err
	}
	return name, info.Size(), nil
}

// begin sees to it that there is a transaction, and that it does not grow too
// large.
func (b *builder) begin(more int) (err error) {
	if b.bytes += more; b.bytes > buildBytes {
		if err := b.commit(); err != nil {
			return err
		}
		b.bytes = more
	}
	if b.tx == nil {
		b.tx, err = b.tape.db.Begin(true)
	}
	return err
}

// frame adds a frame of a session. Sessions come one after the other.
func (b *builder) frame(session capture.SessionID, f *capture.Frame) (err error) {
	if err := b.begin(len(f.Data) + frameCost); err != nil {
		return err
	}
	if b.blocks == nil || b.blocks.session != session {
		if err := b.flush(); err != nil {
			return err
		}
		b.blocks = newBlockWriter(session)
	}
	return b.blocks.add(b.tx, f)
}

// row adds a row whose value has room for its seal.
func (b *builder) row(to bucket, key, value []byte) error {
	if err := b.begin(len(key) + len(value)); err != nil {
		return err
	}
	return put(b.tx, to, key, value)
}

// session adds the row of a session.
func (b *builder) session(s *capture.Session) error {
	if err := b.begin(1 << 10); err != nil {
		return err
	}
	return putSession(b.tx, s)
}

func (b *builder) flush() error {
	if b.blocks == nil {
		return nil
	}
	return b.blocks.flush(b.tx)
}

func (b *builder) commit() error {
	if b.tx == nil {
		return nil
	}
	err := b.flush()
	if err == nil {
		err = b.tx.Commit()
	} else {
		b.tx.Rollback()
	}
	if b.blocks != nil {
		b.blocks.ended()
	}
	b.tx, b.bytes = nil, 0
	return err
}
