package scrub

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
)

// masks makes masks with a key.
type masks struct {
	block cipher.Block
	zero  [aes.BlockSize]byte // the state at the beginning of a value
}

func newMasks(key []byte) *masks {
	sum := sha256.Sum256(key)
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		panic("scrub: " + err.Error()) // a key of 32 bytes is one
	}
	m := &masks{block: block}
	block.Encrypt(m.zero[:], m.zero[:])
	return m
}

// mask replaces a value unit by unit. What a unit becomes depends on the key, on
// the units before it and, where that keeps its kind, on itself: so a value
// becomes the same in one piece and in several, and the same value the same
// everywhere. Letters stay letters, digits digits, and no unit stays itself but
// those that are neither.
type mask struct {
	*masks
	state [aes.BlockSize]byte
}

func (m *masks) start() mask { return mask{m, m.zero} }

// unit replaces the next unit.
func (m *mask) unit(u uint16) uint16 {
	k := m.key()
	m.pass(u)
	switch {
	case 'a' <= u && u <= 'z':
		return 'a' + (u-'a'+1+k%25)%26
	case 'A' <= u && u <= 'Z':
		return 'A' + (u-'A'+1+k%25)%26
	case '0' <= u && u <= '9':
		return '0' + (u-'0'+1+k%9)%10
	case u >= 0xd800 && u < 0xdc00:
		return 0xd83d // with what follows, a face
	case u >= 0xdc00 && u < 0xe000:
		return 0xde00
	case u < 0x80:
		return u
	}
	return stranger(k)
}

// stranger is what becomes of a letter beyond ASCII.
func stranger(k uint16) uint16 { return 'a' + k%15 }

func (m *mask) key() uint16 { return uint16(m.state[0])<<8 | uint16(m.state[1]) }

// pass takes a unit into account for those after it.
func (m *mask) pass(u uint16) {
	m.state[0] ^= byte(u >> 8)
	m.state[1] ^= byte(u)
	m.block.Encrypt(m.state[:], m.state[:])
}

// text replaces a whole value.
func (m *masks) text(units []uint16) []uint16 {
	one := m.start()
	out := make([]uint16, len(units))
	for i, u := range units {
		out[i] = one.unit(u)
	}
	return out
}

// bytes replaces binary data, byte by byte.
func (m *masks) bytes(data []byte) []byte {
	one := m.start()
	out := make([]byte, len(data))
	for i, b := range data {
		k := one.key()
		one.pass(uint16(b))
		out[i] = b + 1 + byte(k%255)
	}
	return out
}
