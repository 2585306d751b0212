package recorder

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// packer makes bytes shorter: in s2 what is written once, since zstd takes twice
// the time, which was most of what recording cost, and in zstd what came slowly,
// which takes two thirds of the room. The zero value is ready to use.
type packer struct{ zstd *zstd.Encoder }

// pack appends src to dst.
func (p *packer) pack(dst, src []byte) []byte {
	at := len(dst)
	dst = slices.Grow(dst, s2.MaxEncodedLen(len(src)))
	packed := s2.Encode(dst[at:cap(dst)], src)
	return dst[:at+len(packed)]
}

// packTight appends src to dst in less room.
func (p *packer) packTight(dst, src []byte) ([]byte, error) {
	if p.zstd == nil {
		var err error
		p.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(blockSize))
		if err != nil {
			return nil, fmt.Errorf("compress: %w", err)
		}
	}
	return p.zstd.EncodeAll(src, dst), nil
}

// zstdMagic is what zstd begins with. Nothing in s2 does: behind a length of 40
// stood a copy of what came before the beginning.
var zstdMagic = []byte{0x28, 0xB5, 0x2F, 0xFD}

// unpacker reads what a packer wrote.
type unpacker struct{ zstd *zstd.Decoder }

// newUnpacker returns an unpacker that fills the room it is given and no more, so
// that what a tape claims is checked before anything is allocated.
func newUnpacker() (*unpacker, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true),
		zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(maxData))
	if err != nil {
		return nil, err
	}
	return &unpacker{decoder}, nil
}

// unpack returns the bytes in packed, which claims to hold so many.
func (u *unpacker) unpack(packed []byte, length uint64) (raw []byte, err error) {
	if bytes.HasPrefix(packed, zstdMagic) {
		raw, err = u.zstd.DecodeAll(packed, make([]byte, 0, length))
	} else if n, lerr := s2.DecodedLen(packed); lerr != nil || uint64(n) != length {
		return nil, fmt.Errorf("decompress %d bytes: they hold %d: %w", length, n, noNil(lerr))
	} else {
		raw, err = s2.Decode(make([]byte, 0, length), packed)
	}
	if err != nil || uint64(len(raw)) != length {
		return nil, fmt.Errorf("decompress %d bytes: got %d: %w", length, len(raw), noNil(err))
	}
	return raw, nil
}

func (u *unpacker) close() { u.zstd.Close() }

func noNil(err error) error {
	if err == nil {
		return errRecord
	}
	return err
}
