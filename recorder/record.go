package recorder

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"tapedeck/protocol/capture"
)

const (
	blobFrom = 64 << 10  // data longer than this is a blob
	maxData  = 256 << 20 // data longer than this is cut
)

var errRecord = errors.New("its records make no sense")

// record is a frame as a block holds it. If the data is a blob, Data is nil.
type record struct {
	capture.Frame
	blob *blobRef
}

// blobRef says which blob a record's data is.
type blobRef struct {
	key  [sha256.Size]byte
	size int
}

// appendRecord writes f behind dst. Its time is told from last, the time of the
// record before it. If key is not nil the data is written as that blob.
func appendRecord(dst []byte, f *capture.Frame, last time.Duration, key *[sha256.Size]byte) []byte {
	dst = binary.AppendVarint(dst, int64(f.At-last))
	dst = append(dst, byte(f.Kind))
	dst = binary.AppendUvarint(dst, uint64(f.Flags)<<2|uint64(f.Direction&3))
	dst = binary.AppendUvarint(dst, uint64(f.Connection))
	dst = binary.AppendUvarint(dst, uint64(f.Exchange))
	dst = binary.AppendVarint(dst, f.Size-int64(len(f.Data)))
	if key != nil {
		dst = binary.AppendUvarint(dst, uint64(len(f.Data))<<1|1)
		return append(dst, key[:]...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(f.Data))<<1)
	return append(dst, f.Data...)
}

// parser takes numbers off the front of a payload. After an error it returns
// zeros.
type parser struct {
	rest []byte
	bad  bool
}

func (p *parser) uvarint() uint64 {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 {
		p.bad, p.rest = true, nil
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

func (p *parser) varint() int64 {
	v, n := binary.Varint(p.rest)
	if n <= 0 {
		p.bad, p.rest = true, nil
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

// bytes returns the next n bytes, which are shared and cannot be appended to.
func (p *parser) bytes(n uint64) []byte {
	if n > uint64(len(p.rest)) {
		p.bad, p.rest = true, nil
		return nil
	}
	b := p.rest[:n:n]
	p.rest = p.rest[n:]
	return b
}

// record reads what appendRecord wrote. Data shares the payload's bytes.
func (p *parser) record(r *record, last time.Duration) {
	r.At = last + time.Duration(p.varint())
	if kind := p.bytes(1); kind != nil {
		r.Kind = capture.Kind(kind[0])
	}
	flags := p.uvarint()
	if flags>>2 > math.MaxUint16 {
		p.bad = true
	}
	r.Flags, r.Direction = capture.Flags(flags>>2), capture.Direction(flags&3)
	r.Connection = capture.Position(p.uvarint())
	r.Exchange = capture.Position(p.uvarint())
	longer := p.varint()
	length := p.uvarint()
	r.Size = longer + int64(length>>1)
	if length&1 == 0 {
		if length > 0 {
			r.Data = p.bytes(length >> 1)
		}
		return
	}
	r.blob = &blobRef{size: int(min(length>>1, maxData+1))}
	copy(r.blob.key[:], p.bytes(sha256.Size))
	p.bad = p.bad || r.blob.size > maxData
}

// end returns an error unless exactly everything was read.
func (p *parser) end() error {
	if p.bad {
		return errRecord
	}
	if len(p.rest) > 0 {
		return fmt.Errorf("%w: %d bytes are left over", errRecord, len(p.rest))
	}
	return nil
}
