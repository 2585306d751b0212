package recorder

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"tapedeck/protocol/capture"
)

const (
	// blockSize is how many bytes of records a block holds. Larger ones compress no
	// better, and cost more when they are written again at each commit.
	blockSize = 128 << 10
	// slowWrites is how often a block is stored before it counts as one that came
	// slowly: there is time to make it small at its end.
	slowWrites = 4
	minRecord  = 7         // bytes of the shortest record
	keepValue  = 8 << 20   // bytes of a long value's room
	maxBlock   = 512 << 10 // bytes of records that a block may claim
)

// blockWriter adds frames to a tape. It belongs to one goroutine.
type blockWriter struct {
	packer  packer
	session capture.SessionID

	// The open block.
	writes int // how often it was stored
	first  capture.Position
	count  int
	last   time.Duration
	raw    []byte

	// Values lent to the transaction until it ends, and those that came back; of
	// the long ones, one.
	lent, spare [][]byte
	long        []byte
}

func newBlockWriter(session capture.SessionID) *blockWriter {
	return &blockWriter{session: session}
}

func (w *blockWriter) next() capture.Position { return w.first + capture.Position(w.count) }

// value returns an empty value, with room for its seal.
func (w *blockWriter) value() []byte {
	if n := len(w.spare); n > 0 {
		v := w.spare[n-1]
		w.spare = w.spare[:n-1]
		return v[:sealSize]
	}
	return make([]byte, sealSize, 4<<10)
}

// longValue is value for the data of a long frame.
func (w *blockWriter) longValue() []byte {
	v := w.long
	if w.long = nil; v == nil {
		return w.value()
	}
	return v[:sealSize]
}

// put seals a value and stores it. The value is the transaction's until it ends.
func (w *blockWriter) put(tx *bolt.Tx, b bucket, key, value []byte) error {
	w.lent = append(w.lent, value)
	return put(tx, b, key, value)
}

// ended takes back the values that were lent to a transaction.
func (w *blockWriter) ended() {
	for _, v := range w.lent {
		if cap(v) <= maxBlock {
			w.spare = append(w.spare, v)
		} else if cap(v) <= keepValue {
			w.long = v
		}
	}
	clear(w.lent)
	w.lent = w.lent[:0]
}

// add appends a frame to the open block. A block that is full is stored, and so
// are the data of a long frame and the entry of a new connection.
func (w *blockWriter) add(tx *bolt.Tx, f *capture.Frame) error {
	var key *[sha256.Size]byte
	if len(f.Data) > blobFrom {
		sum := sha256.Sum256(f.Data)
		if key = &sum; tx.Bucket([]byte(blobBucket)).Get(sum[:]) == nil {
			value := binary.AppendUvarint(w.longValue(), uint64(len(f.Data)))
			if err := w.put(tx, blobBucket, key[:], w.packer.pack(value, f.Data)); err != nil {
				return err
			}
		}
	}
	if w.count > 0 && (f.Position != w.next() || len(w.raw)+len(f.Data) > blockSize && key == nil || len(w.raw) > blockSize) {
		if err := w.close(tx); err != nil {
			return err
		}
	}
	if w.count == 0 {
		w.writes, w.first, w.last, w.raw = 0, f.Position, 0, w.raw[:0]
	}
	w.raw = appendRecord(w.raw, f, w.last, key)
	w.last = f.At
	w.count++
	if f.Kind == capture.Open && key == nil {
		value := binary.AppendUvarint(w.value(), uint64(w.session))
		return w.put(tx, connectionBucket, positionKey(f.Position), appendRecord(value, f, 0, nil))
	}
	return nil
}

// settle stores the open block at the end of a commit. One that is half full is
// closed: to write it again would cost more than the room that two halves take.
func (w *blockWriter) settle(tx *bolt.Tx) error {
	if len(w.raw) > blockSize/2 {
		return w.close(tx)
	}
	return w.flush(tx)
}

// close stores the open block for the last time.
func (w *blockWriter) close(tx *bolt.Tx) error {
	defer func() { w.count = 0 }()
	if w.count == 0 || w.writes < slowWrites {
		return w.flush(tx)
	}
	value, err := w.packer.packTight(w.head(), w.raw)
	if err != nil {
		return err
	}
	return w.put(tx, frameBucket, positionKey(w.first), value)
}

// flush stores the open block as it stands.
func (w *blockWriter) flush(tx *bolt.Tx) error {
	if w.count == 0 {
		return nil
	}
	w.writes++
	return w.put(tx, frameBucket, positionKey(w.first), w.packer.pack(w.head(), w.raw))
}

// head begins the open block's value.
func (w *blockWriter) head() []byte {
	value := binary.AppendUvarint(w.value(), uint64(w.session))
	value = binary.AppendUvarint(value, uint64(w.count))
	return binary.AppendUvarint(value, uint64(len(w.raw)))
}

// block is a block as it is read. It is never changed.
type block struct {
	session capture.SessionID
	records []record
}

func (b *block) first() capture.Position { return b.records[0].Position }
func (b *block) last() capture.Position  { return b.records[len(b.records)-1].Position }

// blockHeader is what a block's payload begins with.
type blockHeader struct {
	session capture.SessionID
	count   uint64
	length  uint64 // of the records
}

func (p *parser) blockHeader() (h blockHeader, err error) {
	h.session = capture.SessionID(p.uvarint())
	h.count, h.length = p.uvarint(), p.uvarint()
	if p.bad || h.count == 0 || h.length > maxBlock || h.count > h.length/minRecord {
		return h, fmt.Errorf("%w: %d of them in %d bytes", errRecord, h.count, h.length)
	}
	return h, nil
}

// decodeBlock reads the sealed value of the block whose first frame is given.
func decodeBlock(u *unpacker, first capture.Position, value []byte) (*block, error) {
	payload, err := unseal(frameBucket, positionKey(first), value)
	if err != nil {
		return nil, err
	}
	p := parser{rest: payload}
	h, err := p.blockHeader()
	if err != nil {
		return nil, err
	}
	raw, err := u.unpack(p.rest, h.length)
	if err != nil {
		return nil, err
	}
	b := &block{session: h.session, records: make([]record, h.count)}
	p = parser{rest: raw}
	var last time.Duration
	for i := range b.records {
		r := &b.records[i]
		r.Position = first + capture.Position(i)
		p.record(r, last)
		last = r.At
	}
	return b, p.end()
}

// decodeBlob reads the sealed value of a blob.
func decodeBlob(u *unpacker, key, value []byte) ([]byte, error) {
	payload, err := unseal(blobBucket, key, value)
	if err != nil {
		return nil, err
	}
	p := parser{rest: payload}
	length := p.uvarint()
	if p.bad || length > maxData {
		return nil, fmt.Errorf("%w: a blob of %d bytes", errRecord, length)
	}
	data, err := u.unpack(p.rest, length)
	return slices.Clip(data), err
}

// put seals a value and stores it.
func put(tx *bolt.Tx, b bucket, key, value []byte) error {
	seal(b, key, value)
	rows := tx.Bucket([]byte(b))
	rows.FillPercent = 0.95 // keys grow
	return rows.Put(key, value)
}
