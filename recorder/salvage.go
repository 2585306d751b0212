package recorder

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"os"

	"tapedeck/protocol/capture"
)

// maxLooked is how many times the length of a file is read for values at most.
// In a good tape they do not overlap, and it is read once; old pages that are no
// longer in use may overlap some. In a file made for mischief they all do.
const maxLooked = 8

// salvage is what was found in a file, wherever it was, with or without a tree
// that led to it: values are known by their seals.
type salvage struct {
	file     io.ReaderAt
	size     int64
	room     int64 // bytes that may still be read for values
	inUse    bool  // the page that is looked at is in the tree
	secret   []byte
	tool     string
	sessions map[capture.SessionID]capture.Session
	blocks   map[capture.Position]place
	blobs    map[[sha256.Size]byte]place
}

// place is where a value is, and for a block how many frames it has.
type place struct {
	at    int64
	size  int64
	count uint64
}

// search looks for values in every page of a file.
func search(ctx context.Context, file *os.File) (*salvage, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	s := &salvage{
		file: file, size: info.Size(), room: maxLooked * info.Size(),
		sessions: map[capture.SessionID]capture.Session{},
		blocks:   map[capture.Position]place{},
		blobs:    map[[sha256.Size]byte]place{},
	}
	m := pageMeta{pageSize: s.pageSize()}
	m.pages = uint64((s.size + int64(m.pageSize) - 1) / int64(m.pageSize))
	inUse := pagesInUse(file, info.Size())
	buf := make([]byte, m.pageSize)
	for _, s.inUse = range []bool{false, true} {
		for id := range m.pages {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if inUse(id) != s.inUse {
				continue
			}
			// A page that cannot be read holds nothing that can.
			if p, err := readPage(file, m, id, buf); err == nil && p.flags == pageLeaf {
				s.page(p)
			}
		}
	}
	return s, nil
}

// pagesInUse tells the pages that the tree leads to, as far as it can be walked.
func pagesInUse(file io.ReaderAt, size int64) func(id uint64) bool {
	m, err := readMeta(file, size)
	if err != nil {
		return func(uint64) bool { return false }
	}
	m.pages = min(m.pages, uint64(size)/uint64(m.pageSize))
	w := &walker{file: file, meta: m, seen: make([]uint64, m.pages/64+1)}
	// An error is where it cannot be walked any more.
	_ = w.tree(m.root, 0, nil, nil)
	return func(id uint64) bool { return id < m.pages && w.seen[id/64]&(1<<(id%64)) != 0 }
}

// pageSize returns the size of the file's pages: what they say, or else the size
// at which most of them stand where they say they do.
func (s *salvage) pageSize() int {
	if m, err := readMeta(s.file, s.size); err == nil {
		return m.pageSize
	}
	best, most := 4<<10, 0
	header := make([]byte, pageHeader)
	for size := int64(minPage); size <= maxPage; size <<= 1 {
		named := 0
		for at := size; at < s.size; at += size {
			if _, err := s.file.ReadAt(header, at); err == nil && native.Uint64(header) == uint64(at/size) {
				named++
			}
		}
		if named > most {
			best, most = int(size), named
		}
	}
	return best
}

// page looks at the entries of a leaf page, and of the buckets within it.
func (s *salvage) page(p *page) {
	least := int64(pageHeader + p.count*pageElement)
	for i := range p.count {
		e, err := p.element(i, least)
		if err != nil {
			continue
		}
		least = e.valStart + e.valSize
		if e.bucket {
			if value, err := p.bytes(s.file, e.valStart, min(e.valSize, int64(len(p.header)))); err == nil {
				if inner, err := innerPage(p, value); err == nil {
					inner.at = p.at + e.valStart + 16
					s.page(inner)
				}
			}
			continue
		}
		s.entry(p, e)
	}
}

// entry takes an entry if it is one of a tape. The length of a key says which
// buckets it may belong to.
func (s *salvage) entry(p *page, e element) {
	at := p.at + e.valStart
	if e.keySize > sha256.Size || e.valSize > maxData+1<<20 || at+e.valSize > s.size {
		return
	}
	if s.room -= e.valSize; s.room < 0 {
		return
	}
	key, err := p.bytes(s.file, e.keyAt, e.keySize)
	if err != nil {
		return
	}
	value, err := p.bytes(s.file, e.valStart, e.valSize)
	if err != nil {
		return
	}
	switch len(key) {
	case 4:
		if payload, err := unseal(sessionBucket, key, value); err == nil {
			s.session(parseSessionKey(key), payload)
			return
		}
	case 8:
		if first, h, err := readHeader(key, value); err == nil && h.count > s.blocks[first].count {
			// The open block was written again and again, and only grew.
			s.blocks[first] = place{at: at, size: e.valSize, count: h.count}
		}
		return
	case sha256.Size:
		if _, err := unseal(blobBucket, key, value); err == nil {
			s.blobs[[sha256.Size]byte(key)] = place{at: at, size: e.valSize}
		}
		return
	}
	if payload, err := unseal(metaBucket, key, value); err == nil {
		switch string(key) {
		case "secret":
			s.secret = append([]byte(nil), payload...)
		case "tool":
			s.tool = string(payload)
		}
	}
}

// session takes the row that is in the tree, or else the one that knows most of a
// session: old ones lie about.
func (s *salvage) session(id capture.SessionID, payload []byte) {
	var found capture.Session
	if json.Unmarshal(payload, &found) != nil || found.ID != id {
		return
	}
	known, ok := s.sessions[id]
	if s.inUse || !ok || known.Ended.IsZero() && (!found.Ended.IsZero() || found.Last >= known.Last) {
		s.sessions[id] = found
	}
}

// value reads a value that was found.
func (s *salvage) value(p place) ([]byte, error) {
	value := make([]byte, p.size)
	_, err := s.file.ReadAt(value, p.at)
	return value, err
}
