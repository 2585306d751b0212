package recorder

import (
	"bytes"
	"fmt"
	"io"
)

// maxDepth is how deep a tree of pages may be. One of a full disk has six levels.
const maxDepth = 32

// checkPages walks the file's pages by plain reads, before bbolt maps them:
// bbolt trusts a file, and follows a page that points at itself until the memory
// is used up. Only tables and keys are read, not what the values hold; those
// have checksums of their own.
func checkPages(file io.ReaderAt, size int64) error {
	m, err := readMeta(file, size)
	if err != nil {
		return err
	}
	if m.pages > uint64(size)/uint64(m.pageSize) {
		return fmt.Errorf("%w: it is cut off after %d bytes, and has %d pages of %d", ErrDamaged, size, m.pages, m.pageSize)
	}
	w := &walker{file: file, meta: m, seen: make([]uint64, m.pages/64+1)}
	w.see(0, 2)
	err = w.tree(m.root, 0, nil, nil)
	if err == nil && m.freelist != noFreelist {
		err = w.freelist(m.freelist)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// walker goes through the pages of a file, each once.
type walker struct {
	file io.ReaderAt
	meta pageMeta
	seen []uint64 // a bit a page
	bufs [maxDepth][]byte
}

// see marks n pages as seen. It reports whether they are in the file and new.
func (w *walker) see(id, n uint64) bool {
	if id > w.meta.pages || n > w.meta.pages-id {
		return false
	}
	for ; n > 0; id, n = id+1, n-1 {
		if w.seen[id/64]&(1<<(id%64)) != 0 {
			return false
		}
		w.seen[id/64] |= 1 << (id % 64)
	}
	return true
}

// tree walks a page and those below it. Their keys lie from least up to, but not
// at, most; nil is no bound.
func (w *walker) tree(id uint64, depth int, least, most []byte) error {
	if depth == maxDepth {
		return fmt.Errorf("page %d is %d levels deep", id, depth)
	}
	if id < 2 || id >= w.meta.pages {
		return fmt.Errorf("page %d does not exist", id)
	}
	if w.bufs[depth] == nil {
		w.bufs[depth] = make([]byte, w.meta.pageSize)
	}
	p, err := readPage(w.file, w.meta, id, w.bufs[depth])
	if err != nil {
		return err
	}
	if !p.named() {
		return fmt.Errorf("page %d %w", id, errPage)
	}
	if !w.see(id, p.over+1) {
		return fmt.Errorf("page %d is in two places", id)
	}
	switch {
	case p.flags == pageLeaf:
		return w.leaf(p, depth, least, most)
	case p.flags == pageBranch && p.count > 0:
		return w.branch(p, depth, least, most)
	}
	return fmt.Errorf("page %d is neither branch nor leaf", id)
}

func (w *walker) branch(p *page, depth int, least, most []byte) error {
	var from element
	var fromKey []byte
	for i := range p.count + 1 {
		var to element
		toKey := most
		if i < p.count {
			var err error
			if to, toKey, err = w.key(p, i, from, fromKey, least, most); err != nil {
				return err
			}
		}
		if i > 0 {
			if err := w.tree(from.child, depth+1, fromKey, toKey); err != nil {
				return err
			}
		}
		from, fromKey = to, toKey
	}
	return nil
}

func (w *walker) leaf(p *page, depth int, least, most []byte) error {
	var last element
	var lastKey []byte
	for i := range p.count {
		e, key, err := w.key(p, i, last, lastKey, least, most)
		if err != nil {
			return err
		}
		if e.bucket {
			if err := w.bucket(p, e, depth); err != nil {
				return err
			}
		}
		last, lastKey = e, key
	}
	return nil
}

// key reads the i-th entry of a page and a copy of its key, which must come
// after the entry before it.
func (w *walker) key(p *page, i int, before element, beforeKey, least, most []byte) (element, []byte, error) {
	after := int64(pageHeader + p.count*pageElement)
	if i > 0 {
		after = before.valStart + before.valSize
	}
	e, err := p.element(i, after)
	if err != nil {
		return e, nil, err
	}
	key, err := p.bytes(w.file, e.keyAt, e.keySize)
	if err != nil {
		return e, nil, err
	}
	if i == 0 && bytes.Compare(key, least) < 0 || i > 0 && bytes.Compare(key, beforeKey) <= 0 ||
		most != nil && bytes.Compare(key, most) >= 0 {
		return e, nil, fmt.Errorf("the keys of page %d are out of order", p.id)
	}
	return e, bytes.Clone(key), nil
}

// bucket walks the tree of a bucket, unless it is so small that it lies within
// the page.
func (w *walker) bucket(p *page, e element, depth int) error {
	if e.valSize < 16 {
		return fmt.Errorf("a bucket of page %d %w", p.id, errPage)
	}
	head, err := p.bytes(w.file, e.valStart, 16)
	if err != nil {
		return err
	}
	if root := native.Uint64(head); root != 0 {
		return w.tree(root, depth+1, nil, nil)
	}
	value, err := p.bytes(w.file, e.valStart, e.valSize)
	if err != nil {
		return err
	}
	inner, err := innerPage(p, value)
	if err != nil {
		return err
	}
	var last element
	var lastKey []byte
	for i := range inner.count {
		if last, lastKey, err = w.key(inner, i, last, lastKey, nil, nil); err != nil {
			return err
		}
		if last.bucket {
			return fmt.Errorf("a bucket of page %d %w", p.id, errPage)
		}
	}
	return nil
}

// freelist checks a list of free pages, which another program may have written
// into the tape: a page on it is overwritten, so none may be in use.
func (w *walker) freelist(id uint64) error {
	if id < 2 || id >= w.meta.pages {
		return fmt.Errorf("page %d does not exist", id)
	}
	p, err := readPage(w.file, w.meta, id, make([]byte, w.meta.pageSize))
	if err != nil {
		return err
	}
	count, at := uint64(p.count), int64(pageHeader)
	if count == 0xFFFF { // the count is the first entry
		count, at = native.Uint64(p.header[at:]), at+8
	}
	if p.flags != pageFreelist || !p.named() || !w.see(id, p.over+1) || count > uint64(p.size-at)/8 {
		return fmt.Errorf("page %d is no list of free pages", id)
	}
	for i := range int64(count) {
		b, err := p.bytes(w.file, at+i*8, 8)
		if err != nil {
			return err
		}
		if free := native.Uint64(b); free < 2 || !w.see(free, 1) {
			return fmt.Errorf("page %d is free and in use", free)
		}
	}
	return nil
}
