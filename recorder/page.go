package recorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
)

// What bbolt writes, as far as a file must be understood before it can be
// mapped. bbolt writes numbers as the machine has them.
var native = binary.NativeEndian

const (
	pageHeader   = 16
	pageElement  = 16
	pageBranch   = 0x01
	pageLeaf     = 0x02
	pageFreelist = 0x10

	metaMagic   = 0xED0CDAED
	metaVersion = 2
	metaSize    = 64 // with its checksum
	noFreelist  = math.MaxUint64

	minPage = 1 << 10
	maxPage = 64 << 10
	maxKey  = 32 << 10
)

// pageMeta is one of the two pages that say where everything is.
type pageMeta struct {
	pageSize int
	root     uint64
	freelist uint64
	pages    uint64 // in use: all page numbers are lower
	tx       uint64
}

// parseMeta reads a meta page. It reports whether the page is meant to be one,
// and whether bbolt takes it for a good one, which it does whatever the size of a
// page is said to be.
func parseMeta(page []byte) (m pageMeta, meant, good bool) {
	if len(page) < pageHeader+metaSize {
		return m, false, false
	}
	b := page[pageHeader:]
	if native.Uint32(b) != metaMagic {
		return m, false, false
	}
	sum := fnv.New64a()
	sum.Write(b[:metaSize-8])
	size := native.Uint32(b[8:])
	m = pageMeta{
		pageSize: int(size), root: native.Uint64(b[16:]), freelist: native.Uint64(b[32:]),
		pages: native.Uint64(b[40:]), tx: native.Uint64(b[48:]),
	}
	return m, true, native.Uint32(b[4:]) == metaVersion && native.Uint64(b[56:]) == sum.Sum64()
}

// readMeta finds the meta page that bbolt goes by: the younger of the good ones.
// Good ones that disagree on the size of a page are damage: bbolt would go by the
// root of the one and the size of the other.
func readMeta(file io.ReaderAt, size int64) (pageMeta, error) {
	var best pageMeta
	var found, tape, odd bool
	var oddSize int
	try := func(at int64) bool {
		page := make([]byte, pageHeader+metaSize)
		if _, err := file.ReadAt(page, at); err != nil {
			return false
		}
		m, meant, good := parseMeta(page)
		tape = tape || meant
		size := m.pageSize
		if good && (size < minPage || size > maxPage || size&(size-1) != 0 || at > 0 && int64(size) != at) {
			odd, oddSize = true, size
		}
		if good && (!found || m.tx > best.tx) {
			best, found = m, true
		}
		return good
	}
	if try(0) {
		try(int64(best.pageSize))
	} else {
		for at := int64(minPage); at <= maxPage && at < size && !try(at); at <<= 1 {
		}
	}
	switch {
	case odd:
		return best, fmt.Errorf("%w: its pages cannot have %d bytes", ErrDamaged, oddSize)
	case found:
		return best, nil
	case tape:
		return best, fmt.Errorf("%w: neither of its two first pages is whole", ErrDamaged)
	}
	return best, ErrForeign
}

// page is a branch or leaf page, read as far as its table of elements.
type page struct {
	id     uint64
	at     int64 // in the file
	size   int64 // with the pages that it runs over
	flags  uint16
	count  int
	over   uint64
	header []byte // from the page's beginning, at least to the table's end
}

// element is an entry of a page. Its places are offsets in the page.
type element struct {
	bucket   bool
	child    uint64 // of a branch
	keyAt    int64
	keySize  int64
	valSize  int64
	valStart int64
}

var errPage = errors.New("makes no sense")

// readPage reads the page with the given number. buf is scratch space.
func readPage(file io.ReaderAt, m pageMeta, id uint64, buf []byte) (*page, error) {
	p := &page{id: id, at: int64(id) * int64(m.pageSize)}
	p.header = buf[:m.pageSize]
	if _, err := file.ReadAt(p.header, p.at); err != nil {
		return nil, fmt.Errorf("read page %d: %w", id, err)
	}
	p.flags = native.Uint16(p.header[8:])
	p.count = int(native.Uint16(p.header[10:]))
	p.over = uint64(native.Uint32(p.header[12:]))
	if p.over >= m.pages-id {
		return nil, fmt.Errorf("page %d %w", id, errPage)
	}
	p.size = int64(p.over+1) * int64(m.pageSize)
	if p.flags != pageBranch && p.flags != pageLeaf {
		return p, nil
	}
	table := int64(pageHeader + p.count*pageElement)
	if table > p.size {
		return nil, fmt.Errorf("page %d %w", id, errPage)
	}
	if table > int64(len(p.header)) {
		p.header = make([]byte, table)
		if _, err := file.ReadAt(p.header, p.at); err != nil {
			return nil, fmt.Errorf("read page %d: %w", id, err)
		}
	}
	return p, nil
}

// innerPage reads the page of a bucket that is so small that it lies within the
// entry of another page, behind 16 bytes of header.
func innerPage(outer *page, value []byte) (*page, error) {
	if len(value) < 16+pageHeader {
		return nil, fmt.Errorf("a bucket of page %d %w", outer.id, errPage)
	}
	value = value[16:]
	p := &page{id: outer.id, size: int64(len(value)), header: value,
		flags: native.Uint16(value[8:]), count: int(native.Uint16(value[10:]))}
	if p.flags != pageLeaf || int64(pageHeader+p.count*pageElement) > p.size {
		return nil, fmt.Errorf("a bucket of page %d %w", outer.id, errPage)
	}
	return p, nil
}

// named reports whether the page says that it is where it is.
func (p *page) named() bool { return native.Uint64(p.header) == p.id }

// element reads the i-th entry, which must lie within the page and begin no
// earlier than least, an offset in it.
func (p *page) element(i int, least int64) (e element, err error) {
	at := int64(pageHeader + i*pageElement)
	b := p.header[at:]
	var offset int64
	switch p.flags {
	case pageBranch:
		offset, e.keySize, e.child = int64(native.Uint32(b)), int64(native.Uint32(b[4:])), native.Uint64(b[8:])
	case pageLeaf:
		e.bucket = native.Uint32(b) == 1
		offset, e.keySize, e.valSize = int64(native.Uint32(b[4:])), int64(native.Uint32(b[8:])), int64(native.Uint32(b[12:]))
		if native.Uint32(b) > 1 {
			return e, fmt.Errorf("page %d %w", p.id, errPage)
		}
	}
	e.keyAt = at + offset
	e.valStart = e.keyAt + e.keySize
	if e.keySize == 0 || e.keySize > maxKey || e.keyAt < least || e.valStart+e.valSize > p.size {
		return e, fmt.Errorf("entry %d of page %d %w", i, p.id, errPage)
	}
	return e, nil
}

// bytes reads n bytes at an offset in the page.
func (p *page) bytes(file io.ReaderAt, at, n int64) ([]byte, error) {
	if at+n <= int64(len(p.header)) {
		return p.header[at : at+n], nil
	}
	b := make([]byte, n)
	if _, err := file.ReadAt(b, p.at+at); err != nil {
		return nil, fmt.Errorf("read page %d: %w", p.id, err)
	}
	return b, nil
}
