package recorder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"tapedeck/protocol/capture"
)

const (
	commitDelay  = 15 * time.Millisecond // that a frame waits for others
	commitFrames = 1000                  // or until so many wait
	commitBytes  = 1 << 20               // or so many bytes
	indexDelay   = 100 * time.Millisecond
	maxPending   = 4 << 20  // bytes that wait for the disk, or to be observed,
	maxLong      = 16 << 20 // and with the long frames among them
	longFrame    = 1 << 20  // bytes
	frameCost    = 96       // of a waiting frame, besides its data
	keepArena    = 2 * commitBytes
	keepBatches  = 16
	unmapAfter   = time.Second // since the pages of the tape were given back
	followerWait = time.Second // for followers, when a tape ends
)

// Writer adds a session to a tape. Its methods are safe for concurrent use.
type Writer struct {
	tape *tapeFile
	opts WriterOptions
	tail *beacon
	wake chan struct{} // there is something to write; holds one
	done chan struct{} // closed when the goroutine that writes has ended
	seen chan struct{} // closed when the one that observes has
	shut chan struct{} // closed when Close has

	mu       sync.Mutex // guards what follows
	space    sync.Cond  // on mu: fewer bytes wait, or none will be taken any more
	written  sync.Cond  // on mu: there is something to observe, or there will be nothing more
	redactor *redactor
	next     capture.Position
	full     []batch // to be written before pending
	pending  batch
	since    time.Time // the first pending frame came
	watched  []batch   // written, and to be observed
	flight   load      // of the batches that are neither pending nor spare
	spares   []batch   // empty, for their room
	long     sync.Pool // of *[]byte, for the data of long frames
	waits    int
	derived  *derived  // nil if there is nothing
	indexed  time.Time // the last time
	marks    []marking
	draining bool
	closing  bool
	over     bool // nothing more will be written
	err      error
	loss     capture.Loss

	// The rest is the writing goroutine's, and Close's after it.
	blocks  *blockWriter
	session capture.Session
	counter uint32 // of the findings
	gate    func() // called before each commit, for tests; nil is nothing
}

// batch is frames that wait, with their data in one arena; long ones have memory
// of their own.
type batch struct {
	frames []capture.Frame
	arena  []byte
	long   []*[]byte
	load   load
}

// load is how many bytes something takes, of which some are of long frames.
type load struct{ all, long int }

func loadOf(f *capture.Frame) (l load) {
	if l.all = len(f.Data) + frameCost; len(f.Data) > longFrame {
		l.long = l.all
	}
	return l
}

func (l load) plus(m load) load { return load{l.all + m.all, l.long + m.long} }

func (l load) minus(m load) load { return load{l.all - m.all, l.long - m.long} }

// fits reports whether so much may wait: a few long frames do not keep the short
// ones waiting.
func (l load) fits() bool { return l.all-l.long <= maxPending && l.all <= maxLong }

// add adds a copy of f, of whose data the pool lends the room if it is long.
func (b *batch) add(f *capture.Frame, pool *sync.Pool) {
	b.frames = append(b.frames, *f)
	b.load = b.load.plus(loadOf(f))
	kept := &b.frames[len(b.frames)-1]
	if len(f.Data) > longFrame {
		room, ok := pool.Get().(*[]byte)
		if !ok {
			room = new([]byte)
		}
		*room = append((*room)[:0], f.Data...)
		b.long = append(b.long, room)
		kept.Data = *room
		return
	}
	at := len(b.arena)
	b.arena = append(b.arena, f.Data...)
	// Where the arena moves, the older frames keep what they point at.
	kept.Data = b.arena[at:len(b.arena):len(b.arena)]
}

// reset empties the batch and keeps its room, unless many frames made it huge.
func (b *batch) reset(pool *sync.Pool) {
	if cap(b.arena) > keepArena {
		b.arena = nil
	}
	for _, room := range b.long {
		if cap(*room) <= maxLong {
			pool.Put(room)
		}
	}
	clear(b.long)
	clear(b.frames)
	*b = batch{frames: b.frames[:0], arena: b.arena[:0], long: b.long[:0]}
}

// WriterOptions configure a Writer. The zero value is ready to use.
type WriterOptions struct {
	// KeepSecrets turns redaction off, and the session says so.
	KeepSecrets bool
	// Redact names more to be redacted: a header, a field, or a JSON pointer.
	Redact []string
	// OnError is called once, on another goroutine, when the tape cannot be
	// written any more. Frames are counted from then on, and not kept. It must not
	// call Close, which waits for it.
	OnError func(error)
	// Observe is called with all frames as the tape has them, redacted, many at
	// once: when they were committed, or lost, in their order and on a goroutine
	// of its own. They are valid until it returns. While too many wait for it,
	// Frame does.
	Observe func([]capture.Frame)
}

// OpenWriter opens the tape at path for writing, makes it if it is not there,
// and begins s on it: ID and First are set. It returns ErrLocked within a second
// if another process has the tape open, and changes nothing unless it succeeds.
func OpenWriter(path string, s *capture.Session, opts WriterOptions) (*Writer, error) {
	// What is asked for is checked before a tape is made for it.
	if _, err := newRedactor(newSecret(), opts.Redact, opts.KeepSecrets); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := createFile(path, s.Tool, newSecret()); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	tape, err := openFile(path, true)
	if err != nil {
		return nil, err
	}
	w, err := beginSession(tape, s, opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open tape %q: %w", path, explain(path, err)), tape.close())
	}
	go w.run()
	go w.observe()
	return w, nil
}

func beginSession(tape *tapeFile, s *capture.Session, opts WriterOptions) (*Writer, error) {
	w := &Writer{
		tape: tape, opts: opts, tail: newBeacon(),
		wake: make(chan struct{}, 1), done: make(chan struct{}), seen: make(chan struct{}), shut: make(chan struct{}),
	}
	w.space.L, w.written.L = &w.mu, &w.mu
	err := tape.update(func(tx *bolt.Tx) error {
		secret, err := getMeta(tx, "secret")
		if err != nil {
			return err
		}
		if w.redactor, err = newRedactor(secret, opts.Redact, opts.KeepSecrets); err != nil {
			return err
		}
		last, err := lastPosition(tx)
		if err != nil {
			return err
		}
		begun := *s
		begun.ID, begun.First, begun.Last, begun.Judged = lastSession(tx)+1, last+1, 0, 0
		begun.Secrets = opts.KeepSecrets
		begun.Clean, begun.Ended = false, time.Time{}
		w.session = begun
		if err := putFormat(tx); err != nil {
			return err
		}
		return putSession(tx, &begun)
	})
	if err != nil {
		return nil, err
	}
	*s = w.session
	w.next = s.First
	w.blocks = newBlockWriter(s.ID)
	return w, nil
}

// lastPosition returns the position of the tape's last frame, 0 if it has none.
func lastPosition(tx *bolt.Tx) (capture.Position, error) {
	key, value := tx.Bucket([]byte(frameBucket)).Cursor().Last()
	if key == nil {
		return 0, nil
	}
	first, h, err := readHeader(key, value)
	if err != nil {
		return 0, &LostError{First: first, Last: first, Reason: err}
	}
	return first + capture.Position(h.count) - 1, nil
}

// lastSession returns the number of the tape's last session, 0 if it has none.
func lastSession(tx *bolt.Tx) capture.SessionID {
	key, _ := tx.Bucket([]byte(sessionBucket)).Cursor().Last()
	return parseSessionKey(key)
}

func putSession(tx *bolt.Tx, s *capture.Session) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write session %d: %w", s.ID, err)
	}
	return put(tx, sessionBucket, sessionKey(s.ID), append(make([]byte, sealSize), text...))
}

// Frame adds f, whose position must be the next one. Data is copied; what is
// over 256 MiB is cut. It waits only while 4 MiB of frames wait to be written and
// observed, or 16 MiB with those over 1 MiB, and never fails: an error of the disk
// is latched, see Err.
func (w *Writer) Frame(f *capture.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.await(f)
	if w.err == nil && !w.closing && f.Position != w.next {
		w.err = fmt.Errorf("record frame %d: the next one is %d", f.Position, w.next)
		w.signal()
	}
	if w.closing {
		return
	}
	kept := w.redactor.frame(f)
	w.next++
	if len(kept.Data) > maxData {
		cut := *kept
		cut.Data = kept.Data[:maxData]
		cut.Flags |= capture.Cut
		kept = &cut
	}
	if w.pending.load.all >= commitBytes {
		w.full = append(w.full, w.takePending())
	}
	was := len(w.pending.frames)
	w.pending.add(kept, &w.long)
	switch {
	case was == 0:
		w.since = time.Now()
		w.signal()
	case was+1 == commitFrames || w.pending.load.all >= commitBytes:
		w.signal()
	}
}

// await waits until there is room for f. What is longer than the limit passes when
// nothing else waits.
func (w *Writer) await(f *capture.Frame) {
	full := func() bool {
		waiting := w.waiting()
		return !w.closing && waiting.all > 0 && !waiting.plus(loadOf(f)).fits()
	}
	if !full() {
		return
	}
	w.waits++
	for full() {
		w.space.Wait()
	}
}

// Waits returns how often a Frame had to wait so far.
func (w *Writer) Waits() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waits
}

// Drain returns when all frames were committed, or lost, and were observed. What
// is derived from them can be given to Index then, before Close. No Frame may come
// any more.
func (w *Writer) Drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.draining = true
	w.signal()
	for w.waiting().all > 0 {
		w.space.Wait()
	}
}

// waiting returns how much waits to be written and observed.
func (w *Writer) waiting() load { return w.pending.load.plus(w.flight) }

func (w *Writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default: // it is awake
	}
}

// Reader reads the tape while it is written, as far as it was committed. It ends
// with the Writer.
func (w *Writer) Reader() *Reader {
	return newReader(w.tape, w.tail)
}

// Err returns the error that stopped the recording, nil if it goes on.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close commits what is left, marks the session as ended in order, at the given
// time since it began, and closes the file. Those who follow the tape have a
// second to read the rest. It returns the error that stopped the recording, if
// there was one; then the session is not clean, and ends with a Gap frame if the
// disk takes it. A second call does nothing.
func (w *Writer) Close(at time.Duration) error {
	w.mu.Lock()
	if w.closing {
		w.mu.Unlock()
		<-w.shut
		return nil
	}
	w.closing = true
	w.space.Broadcast()
	w.signal()
	w.mu.Unlock()

	<-w.done
	<-w.seen
	defer close(w.shut)
	err := w.end(at)
	w.tail.end(followerWait)
	if err := errors.Join(err, w.tape.close()); err != nil {
		return fmt.Errorf("close tape %q: %w", w.tape.path, err)
	}
	return nil
}

// end writes the session's last row.
func (w *Writer) end(at time.Duration) error {
	fault := w.Err() // no Frame is taken any more, so nothing else changes it
	err := w.tape.update(func(tx *bolt.Tx) error {
		s := &w.session
		s.Ended = s.Started.Add(at)
		s.Clean = fault == nil
		if fault != nil {
			if err := w.markGap(tx, at, fault); err != nil {
				return err
			}
		}
		return putSession(tx, s)
	})
	return errors.Join(fault, err)
}

// markGap says on the tape what is missing from it.
func (w *Writer) markGap(tx *bolt.Tx, at time.Duration, fault error) error {
	w.loss.Error = fault.Error()
	text, err := json.Marshal(w.loss)
	if err != nil {
		return err
	}
	// The open block may hold frames that were never committed: begin another.
	blocks := newBlockWriter(w.session.ID)
	s := &w.session
	s.Last = max(s.Last, s.First-1) + 1
	s.Fault = fmt.Sprintf("%d frames (%d bytes) are missing from %d on: %v", w.loss.Frames, w.loss.Bytes, s.Last, fault)
	gap := &capture.Frame{Position: s.Last, At: at, Kind: capture.Gap, Size: int64(len(text)), Data: text}
	if err := blocks.add(tx, gap); err != nil {
		return err
	}
	return blocks.flush(tx)
}
