package recorder

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	bolt "go.etcd.io/bbolt"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// cacheBlocks is how many decoded blocks a Reader keeps, a fifth of a megabyte
// each.
const cacheBlocks = 16

// blockCache keeps the blocks and the blob that were read last. They are known by
// what they hold, so that they are good whatever became of the file.
type blockCache struct {
	mu      sync.Mutex // guards what follows
	blocks  []cached   // the latest last
	blobKey [sha256.Size]byte
	blob    []byte
	unpack  *unpacker
}

// cached is a decoded block. Another may stand under its key later, such as the
// open block, so the seal of what was decoded is kept.
type cached struct {
	first capture.Position
	seal  [sealSize]byte
	*block
}

// get returns a block whose first position and seal are given, nil if it is not
// there.
func (c *blockCache) get(first capture.Position, value []byte) *block {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.blocks, func(e cached) bool { return e.first == first })
	if i < 0 || len(value) < sealSize || [sealSize]byte(value) != c.blocks[i].seal {
		return nil
	}
	e := c.blocks[i]
	c.blocks = append(slices.Delete(c.blocks, i, i+1), e)
	return e.block
}

func (c *blockCache) put(first capture.Position, value []byte, b *block) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocks = slices.DeleteFunc(c.blocks, func(e cached) bool { return e.first == first })
	if len(c.blocks) == cacheBlocks {
		c.blocks = slices.Delete(c.blocks, 0, 1)
	}
	c.blocks = append(c.blocks, cached{first: first, seal: [sealSize]byte(value), block: b})
}

// unpacker returns the unpacker, which is made when it is first needed.
func (c *blockCache) unpacker() (*unpacker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unpack == nil {
		var err error
		if c.unpack, err = newUnpacker(); err != nil {
			return nil, err
		}
	}
	return c.unpack, nil
}

// stored is a block as it lies in the file.
type stored struct {
	first capture.Position
	last  capture.Position // no other block begins up to here
	value []byte           // a copy; nil if the block is cached
	block *block
}

// findBlock finds the block that holds position p, or else the first one after
// it; nil if there is none.
func (c *blockCache) findBlock(tx *bolt.Tx, p capture.Position) (*stored, error) {
	cursor := tx.Bucket([]byte(frameBucket)).Cursor()
	key, value := cursor.Seek(positionKey(p))
	if key == nil || capture.Position(parsePositionKey(key)) != p {
		after := key
		if key == nil {
			key, value = cursor.Last()
		} else {
			key, value = cursor.Prev()
		}
		// The block before may end before p. One that cannot be read is taken to
		// reach up to the next.
		start, h, err := readHeader(key, value)
		if key == nil || err == nil && start+capture.Position(h.count) <= p {
			if after == nil {
				return nil, nil
			}
			key, value = cursor.Seek(after)
		}
	}
	s := &stored{first: parsePositionKey(key)}
	if s.first == 0 {
		return nil, fmt.Errorf("%w: a block has the key %x", ErrDamaged, key)
	}
	if next, _ := cursor.Seek(positionKey(s.first + 1)); next != nil {
		s.last = parsePositionKey(next) - 1
	} else if s.last = max(s.first, endOf(tx)); s.last < p {
		if _, _, err := readHeader(key, value); err != nil {
			return nil, nil // the end is lost, and told as far as it is known
		}
	}
	if s.block = c.get(s.first, value); s.block == nil {
		s.value = slices.Clone(value)
	}
	return s, nil
}

// endOf returns the last frame of the last session, as far as its row knows.
func endOf(tx *bolt.Tx) capture.Position {
	key, value := tx.Bucket([]byte(sessionBucket)).Cursor().Last()
	var s capture.Session
	if text, err := unseal(sessionBucket, key, value); err != nil || json.Unmarshal(text, &s) != nil {
		return 0
	}
	return s.Last
}

// blockAt returns the block that holds position p, or else the first one after
// it; nil if there is none. Nothing is open when it returns.
func (r *Reader) blockAt(ctx context.Context, p capture.Position) (*block, error) {
	var s *stored
	err := r.view(ctx, func(tx *bolt.Tx) (err error) {
		s, err = r.cache.findBlock(tx, p)
		return err
	})
	if err != nil || s == nil {
		return nil, err
	}
	if s.block != nil {
		return s.block, nil
	}
	u, err := r.cache.unpacker()
	if err != nil {
		return nil, err
	}
	b, err := decodeBlock(u, s.first, s.value)
	if err != nil {
		return nil, &LostError{First: s.first, Last: s.last, Reason: err}
	}
	r.cache.put(s.first, s.value, b)
	return b, nil
}

// frame returns a record as a frame, with its data.
func (r *Reader) frame(ctx context.Context, rec *record) (capture.Frame, error) {
	f := rec.Frame
	if rec.blob == nil {
		return f, nil
	}
	data, err := r.blob(ctx, rec.blob.key)
	if err == nil && len(data) != rec.blob.size {
		err = fmt.Errorf("%w: its data has %d bytes and not %d", errRecord, len(data), rec.blob.size)
	}
	if err != nil {
		if errors.Is(err, ErrDamaged) || errors.Is(err, ErrClosed) || ctx.Err() != nil {
			return f, err
		}
		return f, &LostError{First: f.Position, Last: f.Position, Reason: err}
	}
	f.Data = data
	return f, nil
}

// blob returns the bytes of a blob. The last one is kept: a body that passed
// often is often read.
func (r *Reader) blob(ctx context.Context, key [sha256.Size]byte) ([]byte, error) {
	if data := r.cache.lastBlob(key); data != nil {
		return data, nil
	}
	var value []byte
	err := r.view(ctx, func(tx *bolt.Tx) error {
		value = slices.Clone(tx.Bucket([]byte(blobBucket)).Get(key[:]))
		return nil
	})
	if err != nil {
		return nil, err
	}
	u, err := r.cache.unpacker()
	if err != nil {
		return nil, err
	}
	data, err := decodeBlob(u, key[:], value)
	if err != nil {
		return nil, err
	}
	r.cache.keepBlob(key, data)
	return data, nil
}

func (c *blockCache) lastBlob(key [sha256.Size]byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blobKey != key {
		return nil
	}
	return c.blob
}

func (c *blockCache) keepBlob(key [sha256.Size]byte, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blobKey, c.blob = key, data
}

// Frames returns at most n frames from a position on, and fewer once their data
// passes 32 MiB; none is the end. If the first of them is lost it returns a
// LostError; otherwise it stops before what is lost.
func (r *Reader) Frames(ctx context.Context, from capture.Position, n int) ([]capture.Frame, error) {
	return r.steady(func() ([]capture.Frame, error) { return r.frames(ctx, from, n) })
}

func (r *Reader) frames(ctx context.Context, from capture.Position, n int) ([]capture.Frame, error) {
	var frames []capture.Frame
	from = max(from, 1)
	for room := maxAnswer; len(frames) < n && room > 0; {
		b, err := r.blockAt(ctx, from)
		if err != nil {
			return orFrames(frames, err)
		}
		if b == nil {
			break
		}
		from = max(from, b.first())
		for i := int(from - b.first()); i < len(b.records) && len(frames) < n && room > 0; i++ {
			f, err := r.frame(ctx, &b.records[i])
			if err != nil {
				return orFrames(frames, err)
			}
			if frames == nil {
				frames = make([]capture.Frame, 0, min(n, len(b.records)))
			}
			frames = append(frames, f)
			room -= len(f.Data) + frameCost
			from++
		}
	}
	return frames, nil
}

// orFrames returns the frames before a loss, or the loss if there are none.
func orFrames(frames []capture.Frame, err error) ([]capture.Frame, error) {
	if _, lost := errors.AsType[*LostError](err); lost && len(frames) > 0 {
		return frames, nil
	}
	return nil, err
}

// Rows returns at most n of the frames posted to a run, beginning with the
// from-th, counted from 0, and fewer once their data passes 32 MiB. The Open
// frames of their connections come first, besides the n, so that the rows can be
// decoded by themselves. Rows are counted as they were posted, and returned in
// order of position. If some are lost it returns the others and a LostError.
func (r *Reader) Rows(ctx context.Context, run conversation.RunKey, from, n int) ([]capture.Frame, error) {
	if from < 0 || n <= 0 {
		return nil, nil
	}
	return r.steady(func() ([]capture.Frame, error) { return r.rows(ctx, run, from, n) })
}

func (r *Reader) rows(ctx context.Context, run conversation.RunKey, from, n int) ([]capture.Frame, error) {
	var posts []capture.Position
	err := r.view(ctx, func(tx *bolt.Tx) (err error) {
		posts, err = readPosts(tx, newRowKey(run.Session, run.Run), from, n)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the posts of run %q: %w", run.Run, err)
	}
	found, lost, err := r.framesAt(ctx, posts)
	if err != nil {
		return nil, err
	}
	opens, err := r.openFrames(ctx, found)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b capture.Frame) int { return cmp.Compare(a.Position, b.Position) })
	if lost != nil {
		return append(opens, found...), lost
	}
	return append(opens, found...), nil
}

// framesAt returns the frames at some positions, as far as they can be read and
// fit an answer. What cannot be read is told by the last LostError.
func (r *Reader) framesAt(ctx context.Context, at []capture.Position) (found []capture.Frame, lost, err error) {
	var b *block
	room := maxAnswer
	for _, p := range at {
		if room <= 0 {
			break
		}
		if b == nil || p < b.first() || p > b.last() {
			if b, err = r.blockAt(ctx, p); err == nil && (b == nil || p < b.first()) {
				b, err = nil, &LostError{First: p, Last: p, Reason: errors.New("no block holds it")}
			}
		}
		var f capture.Frame
		if err == nil {
			f, err = r.frame(ctx, &b.records[p-b.first()])
		}
		if err != nil {
			if _, ok := errors.AsType[*LostError](err); !ok {
				return nil, nil, err
			}
			lost, err = err, nil
			continue
		}
		found = append(found, f)
		room -= len(f.Data) + frameCost
	}
	return found, lost, nil
}

// openFrames returns the Open frames of the connections of some frames, unless
// they are among them.
func (r *Reader) openFrames(ctx context.Context, frames []capture.Frame) ([]capture.Frame, error) {
	var wanted []capture.Position
	for i := range frames {
		if c := frames[i].Connection; c != 0 && !slices.Contains(wanted, c) {
			wanted = append(wanted, c)
		}
	}
	wanted = slices.DeleteFunc(wanted, func(c capture.Position) bool {
		return slices.ContainsFunc(frames, func(f capture.Frame) bool { return f.Position == c })
	})
	slices.Sort(wanted)
	var opens []capture.Frame
	var missing []capture.Position
	err := r.view(ctx, func(tx *bolt.Tx) error {
		for _, c := range wanted {
			key := positionKey(c)
			payload, err := unseal(connectionBucket, key, tx.Bucket([]byte(connectionBucket)).Get(key))
			p := parser{rest: slices.Clone(payload)}
			p.uvarint()
			rec := record{Frame: capture.Frame{Position: c}}
			if p.record(&rec, 0); err != nil || p.end() != nil || rec.blob != nil {
				missing = append(missing, c)
				continue
			}
			opens = append(opens, rec.Frame)
		}
		return nil
	})
	if err != nil || len(missing) == 0 {
		return opens, err
	}
	others, _, err := r.framesAt(ctx, missing)
	opens = append(opens, others...)
	slices.SortFunc(opens, func(a, b capture.Frame) int { return cmp.Compare(a.Position, b.Position) })
	return opens, err
}
