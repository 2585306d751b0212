package recorder

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// bucket is the name of a bucket.
type bucket string

const (
	metaBucket       bucket = "meta"
	sessionBucket    bucket = "sessions"
	connectionBucket bucket = "connections"
	frameBucket      bucket = "frames"
	blobBucket       bucket = "blobs"
	runBucket        bucket = "runs"
	threadBucket     bucket = "threads"
	postBucket       bucket = "posts"
	findingBucket    bucket = "findings"
)

// buckets are all buckets of a tape.
func buckets() []bucket {
	return []bucket{metaBucket, sessionBucket, connectionBucket, frameBucket, blobBucket,
		runBucket, threadBucket, postBucket, findingBucket}
}

// sealSize is the length of the checksum that begins a value. A value is built
// behind that many bytes of room, and then sealed.
const sealSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errChecksum = errors.New("the checksum is wrong")

func checksum(b bucket, key, payload []byte) uint32 {
	var name [16]byte
	sum := crc32.Update(0, castagnoli, name[:copy(name[:], b)])
	sum = crc32.Update(sum, castagnoli, key)
	return crc32.Update(sum, castagnoli, payload)
}

// seal fills the room at the beginning of a value.
func seal(b bucket, key, value []byte) {
	binary.LittleEndian.PutUint32(value, checksum(b, key, value[sealSize:]))
}

// unseal returns the payload of a value, which shares its bytes.
func unseal(b bucket, key, value []byte) ([]byte, error) {
	if len(value) < sealSize || binary.LittleEndian.Uint32(value) != checksum(b, key, value[sealSize:]) {
		return nil, errChecksum
	}
	return value[sealSize:], nil
}

// positionKey is the key of a frame, block or connection.
func positionKey[P ~uint64](p P) []byte { return binary.BigEndian.AppendUint64(nil, uint64(p)) }

// sessionKey is the key of a session, and the beginning of those of its rows.
func sessionKey[S ~uint32](s S) []byte { return binary.BigEndian.AppendUint32(nil, uint32(s)) }
