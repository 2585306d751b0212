package recorder

import (
	"bytes"
	"crypto/sha256"
	"math"
	"slices"
	"testing"
	"time"

	"tapedeck/protocol/capture"
)

// What was written as a record is read as it was, and whatever bytes come, they
// are read without a panic and, if they make a record, written again as one that
// says the same.
func FuzzRecord(f *testing.F) {
	key := sha256.Sum256(nil)
	for _, frame := range []capture.Frame{
		{Position: 9, At: time.Hour, Kind: capture.Text, Direction: capture.FromClient, Connection: 3, Size: 2, Data: []byte("40")},
		{Position: 9, At: math.MinInt64, Kind: 255, Flags: math.MaxUint16, Direction: 3, Connection: math.MaxUint64, Exchange: math.MaxUint64, Size: math.MaxInt64},
		{Position: 9},
	} {
		f.Add(appendRecord(nil, &frame, time.Second, nil))
		f.Add(appendRecord(nil, &frame, 0, &key))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		read := func(text []byte) (record, bool) {
			p := parser{rest: text}
			r := record{Frame: capture.Frame{Position: 9}}
			p.record(&r, time.Second)
			return r, p.end() == nil
		}
		r, ok := read(text)
		if !ok || r.blob != nil {
			return
		}
		again, ok := read(appendRecord(nil, &r.Frame, time.Second, nil))
		if diff := diffFrames([]capture.Frame{r.Frame}, []capture.Frame{again.Frame}); diff != "" || !ok {
			t.Errorf("%x: %s", text, diff)
		}
	})
}

// Whatever a block's payload is, it is read or refused, and takes no more memory
// than a block may.
func FuzzBlock(f *testing.F) {
	blocks := newBlockWriter(1)
	for _, frame := range frames(1, 50) {
		blocks.raw = appendRecord(blocks.raw, &frame, 0, nil)
	}
	f.Add([]byte{1, 50}, uint16(len(blocks.raw)), blocks.raw)
	f.Add([]byte{1, 1}, uint16(7), make([]byte, 7))
	f.Add([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1}, uint16(9), []byte("not enough"))
	u, err := newUnpacker()
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(u.close)
	f.Fuzz(func(t *testing.T, head []byte, length uint16, raw []byte) {
		value := append(make([]byte, sealSize), head...)
		for ; length >= 0x80; length >>= 7 {
			value = append(value, byte(length)|0x80)
		}
		value = append(value, byte(length))
		tight, err := blocks.packer.packTight(slices.Clip(value), raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range [][]byte{append(slices.Clip(value), raw...), blocks.packer.pack(slices.Clip(value), raw), tight} {
			seal(frameBucket, positionKey[capture.Position](1), value)
			b, err := decodeBlock(u, 1, value)
			if (b == nil || len(b.records) == 0) && err == nil {
				t.Errorf("neither a block nor an error")
			}
		}
	})
}

func FuzzPosts(f *testing.F) {
	f.Add(appendPositions(nil, []capture.Position{5, 9, 7, math.MaxUint64, 1}))
	f.Add([]byte{0x80})
	f.Add(bytes.Repeat([]byte{2}, listSize+1))
	f.Fuzz(func(t *testing.T, text []byte) {
		positions, err := parsePositions(text)
		if err != nil {
			return
		}
		again, err := parsePositions(appendPositions(nil, positions))
		if err != nil || !slices.Equal(positions, again) || len(positions) > listSize {
			t.Errorf("%v became %v, %v", positions, again, err)
		}
	})
}

// Whatever file it is, looking through it ends with a verdict.
func FuzzCheckPages(f *testing.F) {
	good, _ := goodTape(f)
	f.Add(uint32(0), uint64(0))
	f.Add(uint32(4096+8), uint64(1)<<40)
	f.Fuzz(func(t *testing.T, at uint32, bits uint64) {
		file := bytes.Clone(good)
		at %= uint32(len(file) - 8)
		native.PutUint64(file[at:], native.Uint64(file[at:])^bits)
		checkPages(bytes.NewReader(file), int64(len(file)))
		copy(file[pageHeader+8:pageHeader+12], good[pageHeader+8:])
		editMetas(file, func([]byte) {}) // so that damage there is believed
		checkPages(bytes.NewReader(file), int64(len(file)))
	})
}
