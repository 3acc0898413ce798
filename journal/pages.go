package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// bbolt trusts what its pages say of themselves. A wrong number in one can have it take memory without bound, or go round
// in a circle until the stack is full, and neither can be recovered from: no panic, the process ends. So where there
// is reason to doubt a file its pages are walked here first, by nothing but numbers that were compared with the file's.
//
// The format is that of bbolt's internal/common (version 2): a page's header is id, flags, count, overflow; an element's
// position counts from the element itself.
const (
	pageHeader  = 16
	elementSize = 16
	metaSize    = 56 // what its checksum is of
	metaMagic   = 0xED0CDAED

	flagBranch, flagLeaf, flagFreelist = 1, 2, 16
	leafIsBucket                       = 1
	noFreelist                         = ^uint64(0)
)

var order = binary.NativeEndian

type pages struct {
	b    []byte
	size uint64 // of a page
	high uint64 // the first page that was never used
	seen map[uint64]bool
	errs []error
}

// maxPageErrors is how many are enough to know.
const maxPageErrors = 20

// checkPages gives what is wrong with a file's pages, nil when bbolt can walk them.
func checkPages(path string) error {
	f, err := openNoFollow(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	p := pages{b: b, seen: map[uint64]bool{0: true, 1: true}}
	p.walk()
	return errors.Join(p.errs...)
}

func (p *pages) wrong(format string, args ...any) {
	if len(p.errs) < maxPageErrors {
		p.errs = append(p.errs, fmt.Errorf(format, args...))
	}
}

func (p *pages) walk() {
	meta := p.meta()
	if meta == nil {
		p.wrong("no meta page is whole")
		return
	}
	p.size, p.high = uint64(order.Uint32(meta[8:])), order.Uint64(meta[40:])
	if p.size < 512 || p.size > 1<<16 || p.high > uint64(len(p.b))/p.size {
		p.wrong("the file has %d bytes, its meta page speaks of %d pages of %d", len(p.b), p.high, p.size)
		return
	}
	if id := order.Uint64(meta[32:]); id != noFreelist {
		p.freelist(id)
	}
	p.tree(order.Uint64(meta[16:]))
}

// meta is the newer one of those that are whole, as bbolt chooses it.
func (p *pages) meta() (best []byte) {
	for at := uint64(0); at <= 1<<16; at = max(512, at*2) { // the second page is where the page size says
		if at+pageHeader+metaSize+8 > uint64(len(p.b)) {
			break
		}
		m := p.b[at+pageHeader:]
		h := fnv.New64a()
		h.Write(m[:metaSize])
		if order.Uint32(m) != metaMagic || order.Uint64(m[metaSize:]) != h.Sum64() || (at != 0 && at != uint64(order.Uint32(m[8:]))) {
			continue
		}
		if best == nil || order.Uint64(m[48:]) > order.Uint64(best[48:]) {
			best = m
		}
	}
	return best
}

// page gives a page with what overflows from it, nil when its header does not fit.
func (p *pages) page(id uint64) (b []byte, flags, count uint16) {
	if id >= p.high {
		p.wrong("page %d is meant, there are %d", id, p.high)
		return nil, 0, 0
	}
	h := p.b[id*p.size:]
	over := uint64(order.Uint32(h[12:]))
	if got := order.Uint64(h); got != id {
		p.wrong("page %d says that it is page %d", id, got)
		return nil, 0, 0
	}
	if over >= p.high-id {
		p.wrong("page %d says that it goes on for %d pages, there are %d", id, over, p.high)
		return nil, 0, 0
	}
	for i := id; i <= id+over; i++ {
		if p.seen[i] {
			p.wrong("page %d is used twice", i)
			return nil, 0, 0
		}
		p.seen[i] = true
	}
	return h[:(over+1)*p.size], order.Uint16(h[8:]), order.Uint16(h[10:])
}

func (p *pages) freelist(id uint64) {
	b, flags, count := p.page(id)
	if b == nil {
		return
	}
	n, ids := uint64(count), b[pageHeader:]
	if n == 0xFFFF {
		n, ids = order.Uint64(ids), ids[8:]
	}
	if flags != flagFreelist || n > uint64(len(ids))/8 {
		p.wrong("page %d is no list of free pages", id)
		return
	}
	for ; n > 0; n, ids = n-1, ids[8:] {
		free := order.Uint64(ids)
		if free < 2 || free >= p.high || p.seen[free] {
			p.wrong("page %d is in the list of free pages", free)
			return
		}
		p.seen[free] = true // so that a page that is in use, too, is one that is used twice
	}
}

func (p *pages) tree(id uint64) {
	b, flags, count := p.page(id)
	if b != nil {
		p.elements(id, b, flags, int(count))
	}
}

// elements walks a branch or leaf page, and what is below it.
func (p *pages) elements(id uint64, b []byte, flags uint16, count int) {
	if flags != flagBranch && flags != flagLeaf {
		p.wrong("page %d has the flags %#x", id, flags)
		return
	}
	for i := range count {
		at := uint64(pageHeader + i*elementSize)
		if at+elementSize > uint64(len(b)) {
			p.wrong("page %d has no room for %d elements", id, count)
			return
		}
		e := b[at:]
		pos, key, value := uint64(order.Uint32(e)), uint64(order.Uint32(e[4:])), uint64(0)
		if flags == flagLeaf {
			pos, key, value = uint64(order.Uint32(e[4:])), uint64(order.Uint32(e[8:])), uint64(order.Uint32(e[12:]))
		}
		switch {
		case pos < elementSize || pos+key+value > uint64(len(e)):
			p.wrong("element %d of page %d lies outside of it", i, id)
		case flags == flagBranch:
			p.tree(order.Uint64(e[8:]))
		case order.Uint32(e)&leafIsBucket != 0:
			p.bucket(id, e[pos+key:pos+key+value])
		}
	}
}

// bucket walks one by its entry: a root page, or the page itself for a small one.
func (p *pages) bucket(id uint64, v []byte) {
	if len(v) < 16 {
		p.wrong("page %d has a bucket of %d bytes", id, len(v))
		return
	}
	if root := order.Uint64(v); root != 0 {
		p.tree(root)
		return
	}
	if v = v[16:]; len(v) < pageHeader {
		p.wrong("page %d has an inline bucket of %d bytes", id, len(v))
		return
	}
	p.elements(id, v, order.Uint16(v[8:]), int(order.Uint16(v[10:])))
}
