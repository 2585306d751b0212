package recorder

import (
	"bytes"
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"tapedeck/protocol/capture"
)

// listSize is how many posts a list holds. All lists of a run but the last are
// full, so that the n-th post is found without reading those before it.
const listSize = 512

// appendPositions writes positions behind dst: the first one, then differences.
func appendPositions(dst []byte, positions []capture.Position) []byte {
	var last capture.Position
	for i, p := range positions {
		if i == 0 {
			dst = binary.AppendUvarint(dst, uint64(p))
		} else {
			dst = binary.AppendVarint(dst, int64(p-last))
		}
		last = p
	}
	return dst
}

// parsePositions reads what appendPositions wrote.
func parsePositions(payload []byte) ([]capture.Position, error) {
	p := parser{rest: payload}
	var positions []capture.Position
	var last capture.Position
	for len(p.rest) > 0 {
		if len(positions) == listSize {
			return nil, fmt.Errorf("%w: more than %d posts", errRecord, listSize)
		}
		if len(positions) == 0 {
			last = capture.Position(p.uvarint())
		} else {
			last += capture.Position(p.varint())
		}
		positions = append(positions, last)
	}
	return positions, p.end()
}

// listKey is the key of the list whose first post is the n-th.
func listKey(run rowKey, n uint32) []byte {
	return binary.BigEndian.AppendUint32(run[:len(run):len(run)], n)
}

// lastWith returns the last entry whose key begins with prefix, nil if there is
// none.
func lastWith(c *bolt.Cursor, prefix []byte) (key, value []byte) {
	end := append(bytes.Clone(prefix), bytes.Repeat([]byte{0xFF}, 8)...)
	if after, _ := c.Seek(end); after == nil {
		key, value = c.Last()
	} else {
		key, value = c.Prev()
	}
	if !bytes.HasPrefix(key, prefix) {
		return nil, nil
	}
	return key, value
}

// writePosts adds positions to a run's lists, in the order in which they were
// posted. One that repeats the one before it is left out.
func writePosts(tx *bolt.Tx, run rowKey, positions []capture.Position) error {
	var list []capture.Position
	var start uint32
	if key, value := lastWith(tx.Bucket([]byte(postBucket)).Cursor(), run[:]); key != nil {
		payload, err := unseal(postBucket, key, value)
		if err != nil {
			return fmt.Errorf("read posts: %w", err)
		}
		if list, err = parsePositions(payload); err != nil {
			return fmt.Errorf("read posts: %w", err)
		}
		start = binary.BigEndian.Uint32(key[len(run):])
	}
	flush := func() error {
		return put(tx, postBucket, listKey(run, start), appendPositions(make([]byte, sealSize, 64), list))
	}
	for _, p := range positions {
		if len(list) > 0 && list[len(list)-1] == p {
			continue
		}
		if len(list) == listSize {
			if err := flush(); err != nil {
				return err
			}
			start += listSize
			list = list[:0]
		}
		list = append(list, p)
	}
	return flush()
}

// readPosts returns at most n of the posts of a run, from the from-th on.
func readPosts(tx *bolt.Tx, run rowKey, from, n int) ([]capture.Position, error) {
	var found []capture.Position
	c := tx.Bucket([]byte(postBucket)).Cursor()
	skip := from % listSize
	key, value := c.Seek(listKey(run, uint32(from-skip)))
	for ; len(found) < n && bytes.HasPrefix(key, run[:]); key, value = c.Next() {
		payload, err := unseal(postBucket, key, value)
		if err != nil {
			return nil, err
		}
		list, err := parsePositions(payload)
		if err != nil {
			return nil, err
		}
		list = list[min(skip, len(list)):]
		found = append(found, list[:min(n-len(found), len(list))]...)
		skip = 0
	}
	return found, nil
}
