package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"

	"tapedeck/protocol/capture"
)

// SetMark marks a place of the tape at path. It replaces the mark that was there,
// and takes it away if the text is empty. It returns ErrLocked within a second if
// another process writes the tape, which can be asked to do it.
func SetMark(path string, m capture.Mark) error {
	tape, err := openFile(path, true)
	if err != nil {
		return err
	}
	err = tape.update(func(tx *bolt.Tx) error { return setMark(tx, nil, m) })
	if err != nil {
		err = fmt.Errorf("mark #%s of tape %q: %w", m.At, path, err)
	}
	return errors.Join(err, tape.close())
}

// marking is a mark on its way onto a tape.
type marking struct {
	mark capture.Mark
	done chan error // holds one
}

// SetMark marks a place of the tape, as the function SetMark does, and returns
// when the mark is on it.
func (w *Writer) SetMark(ctx context.Context, m capture.Mark) error {
	j := marking{m, make(chan error, 1)}
	w.mu.Lock()
	switch {
	case w.err != nil:
		defer w.mu.Unlock()
		return fmt.Errorf("mark #%s: %w", m.At, w.err)
	case w.closing:
		defer w.mu.Unlock()
		return fmt.Errorf("mark #%s: %w", m.At, ErrClosed)
	}
	w.marks = append(w.marks, j)
	w.signal()
	w.mu.Unlock()
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// commitMarks writes marks. One that cannot be written stops nothing else.
func (w *Writer) commitMarks(marks []marking) {
	for _, j := range marks {
		notes := w.session.Notes
		err := w.tape.update(func(tx *bolt.Tx) error { return setMark(tx, &w.session, j.mark) })
		if err != nil {
			w.session.Notes = notes
			err = fmt.Errorf("mark #%s: %w", j.mark.At, err)
		}
		j.done <- err
	}
}

// setMark changes the row of the session that has the mark's position: own, if it
// is that one.
func setMark(tx *bolt.Tx, own *capture.Session, m capture.Mark) error {
	last, err := lastPosition(tx)
	if err != nil {
		return err
	}
	if m.At.Position > last {
		return fmt.Errorf("the tape ends at #%d", last)
	}
	s, err := sessionAt(tx, m.At.Position)
	if err != nil {
		return err
	}
	if own != nil && own.ID == s.ID {
		s = own
	}
	var notes capture.Notes
	if s.Notes != nil {
		notes = *s.Notes
	}
	notes.Marks = slices.DeleteFunc(slices.Clone(notes.Marks), func(o capture.Mark) bool { return o.At == m.At })
	if m.Text != "" {
		notes.Marks = append(notes.Marks, m)
		slices.SortFunc(notes.Marks, func(a, b capture.Mark) int { return a.At.Compare(b.At) })
	}
	s.Notes = &notes
	return putSession(tx, s)
}

// sessionAt returns the session that a position belongs to.
func sessionAt(tx *bolt.Tx, p capture.Position) (*capture.Session, error) {
	cursor := tx.Bucket([]byte(sessionBucket)).Cursor()
	for key, value := cursor.Last(); key != nil; key, value = cursor.Prev() {
		text, err := unseal(sessionBucket, key, value)
		s := &capture.Session{}
		if err == nil {
			err = json.Unmarshal(text, s)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: session %d: %w", ErrDamaged, parseSessionKey(key), err)
		}
		if s.First <= p && p != 0 {
			return s, nil
		}
	}
	return nil, fmt.Errorf("no session has #%d", p)
}
