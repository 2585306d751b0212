package recorder

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"

	bolt "go.etcd.io/bbolt"

	"tapedeck/protocol/capture"
)

// Copier writes sessions to a tape that were recorded elsewhere. Their rows say
// what the recording said: when it ended, and whether it is whole. It belongs to
// one goroutine:
//
//	c, err := CreateCopy(path, CopierOptions{Tool: version})
//	err = c.Begin(&session)
//	kept, err := c.Frame(&frame)
//	err = c.Index(&index)
//	err = c.End(&session)
//	err = c.Close() // or Discard
type Copier struct {
	path      string
	temporary string // the file that takes the name path at Close; "" if the tape was there before
	builder   builder
	redactor  *redactor

	session capture.SessionID // the latest
	next    capture.Position
	counter uint32 // of its findings
}

// CopierOptions configure a Copier. The zero value is ready to use.
type CopierOptions struct {
	// Tool is the tapedeck that makes the tape.
	Tool string
	// KeepSecrets turns redaction off, and the sessions say so.
	KeepSecrets bool
	// Redact names more to be redacted, as WriterOptions.Redact does.
	Redact []string
}

// cutShort is what a session says whose copy did not come to its end.
const cutShort = "it was copied in part: the copy was cut short"

// CreateCopy begins a new tape. It is made in a file beside path, and takes that
// name at Close; until then nothing is changed there.
func CreateCopy(path string, opts CopierOptions) (*Copier, error) {
	name, err := createTemporary(path, opts.Tool, newSecret())
	if err != nil {
		return nil, fmt.Errorf("create tape %q: %w", path, err)
	}
	tape, err := openFile(name, true)
	if err != nil {
		return nil, errors.Join(err, os.Remove(name))
	}
	return newCopier(&Copier{path: path, temporary: name}, tape, opts)
}

// AppendCopy adds to the tape at path, and makes it if it is not there. It
// returns ErrLocked within a second if another process has it open.
func AppendCopy(path string, opts CopierOptions) (*Copier, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return CreateCopy(path, opts)
	}
	tape, err := openFile(path, true)
	if err != nil {
		return nil, err
	}
	return newCopier(&Copier{path: path}, tape, opts)
}

func newCopier(c *Copier, tape *tapeFile, opts CopierOptions) (*Copier, error) {
	c.builder.tape = tape
	err := tape.db.View(func(tx *bolt.Tx) error {
		secret, err := getMeta(tx, "secret")
		if err != nil {
			return err
		}
		if c.redactor, err = newRedactor(secret, opts.Redact, opts.KeepSecrets); err != nil {
			return err
		}
		last, err := lastPosition(tx)
		c.next, c.session = last+1, lastSession(tx)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open tape %q: %w", c.path, explain(c.path, err)), c.Discard())
	}
	return c, nil
}

// Begin begins a session: its ID and First are set.
func (c *Copier) Begin(s *capture.Session) error {
	c.session++
	c.counter = 0
	s.ID, s.First, s.Last, s.Judged, s.Live = c.session, c.next, 0, 0, false
	s.Secrets = s.Secrets || c.redactor.keep
	begun := *s
	begun.Clean, begun.Fault = false, cutShort
	return c.builder.session(&begun)
}

// Frame adds a frame of the session that was begun last, whose position must be
// the next one. It returns the frame as the tape has it, without secrets, which
// is valid until the next call.
func (c *Copier) Frame(f *capture.Frame) (*capture.Frame, error) {
	if f.Position != c.next {
		return nil, fmt.Errorf("copy frame %d: the next one is %d", f.Position, c.next)
	}
	kept := c.redactor.frame(f)
	if len(kept.Data) > maxData {
		cut := *kept
		cut.Data, cut.Flags = kept.Data[:maxData], kept.Flags|capture.Cut
		kept = &cut
	}
	if err := c.builder.frame(c.session, kept); err != nil {
		return nil, fmt.Errorf("copy frame %d: %w", f.Position, err)
	}
	c.next++
	return kept, nil
}

// Index adds what was derived from the frames of a session, and says in its row
// how far that reaches.
func (c *Copier) Index(s *capture.Session, x *Index) error {
	d := newDerived()
	if err := d.add(s.ID, x); err != nil {
		return err
	}
	if err := c.builder.begin(0); err != nil {
		return err
	}
	written := *s // until End it counts as cut short
	written.Clean, written.Fault = false, cutShort
	if err := d.write(c.builder.tx, &written, &c.counter); err != nil {
		return err
	}
	s.Judged, s.Rules = written.Judged, written.Rules
	return nil
}

// End writes the row of a session as it is to stand: Last is set.
func (c *Copier) End(s *capture.Session) error {
	s.Last = 0
	if c.next > s.First {
		s.Last = c.next - 1
	}
	return c.builder.session(s)
}

// Close commits what is left. A new tape takes its name then, also from a file
// that is there; it returns ErrLocked if another process has that open.
func (c *Copier) Close() error {
	err := c.builder.commit()
	if err = errors.Join(err, c.builder.tape.close()); err == nil && c.temporary != "" {
		err = c.takeName()
	}
	if err != nil {
		if c.temporary != "" {
			err = errors.Join(err, os.Remove(c.temporary))
		}
		return fmt.Errorf("write tape %q: %w", c.path, err)
	}
	return nil
}

// takeName puts the new tape in the place of what has its name.
func (c *Copier) takeName() error {
	if _, err := os.Lstat(c.path); err == nil {
		old, err := lockFile(c.path, true) // nobody may be reading or writing it
		if err != nil {
			return err
		}
		defer old.Close()
	}
	return pathless(os.Rename(c.temporary, c.path))
}

// Discard gives up. A new tape is removed; on one that was there before, a
// session that was begun says that it was cut short.
func (c *Copier) Discard() error {
	if c.temporary == "" {
		return c.Close()
	}
	if c.builder.tx != nil {
		c.builder.tx.Rollback() // nothing of it is wanted
	}
	return errors.Join(c.builder.tape.close(), os.Remove(c.temporary))
}

// DeriveKey returns a key of 32 bytes that depends on the tape and on what it is
// for, and on nothing else. It tells nothing of the key of redaction.
func (r *Reader) DeriveKey(ctx context.Context, purpose string) (key []byte, err error) {
	err = r.view(ctx, func(tx *bolt.Tx) error {
		secret, err := getMeta(tx, "secret")
		if err != nil {
			return err
		}
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(purpose))
		key = mac.Sum(nil)
		return nil
	})
	return key, err
}

// Redactor takes out of frames what a Writer does: credentials, cookies, tokens.
// It belongs to one goroutine.
type Redactor struct{ redactor *redactor }

// NewRedactor returns a Redactor whose tokens depend on key.
func NewRedactor(key []byte) *Redactor {
	r, err := newRedactor(key, nil, false)
	if err != nil {
		panic("recorder: " + err.Error()) // there is nothing in it to refuse
	}
	return &Redactor{r}
}

// Frame returns f as a tape would have it, which is valid until the next call.
func (r *Redactor) Frame(f *capture.Frame) *capture.Frame { return r.redactor.frame(f) }
