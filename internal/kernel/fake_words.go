package kernel

import (
	"fmt"
	"strconv"
	"strings"
)

// words are those of a line that are still to be read, and the first one that the
// fake does not know.
type words struct {
	left []string
	err  error
}

func (w *words) fail(word string) {
	if w.err == nil {
		w.err = fmt.Errorf("the fake does not know %q here", word)
	}
}

func (w *words) next() string {
	if len(w.left) == 0 {
		w.fail("the end")
		return ""
	}
	word := w.left[0]
	w.left = w.left[1:]
	return word
}

func (w *words) skip(word string) bool {
	if len(w.left) == 0 || w.left[0] != word {
		return false
	}
	w.left = w.left[1:]
	return true
}

func (w *words) int() int { return w.number(w.next(), nil) }

// number reads a number in any of Go's bases, or one of the names.
func (w *words) number(s string, names map[string]int) int {
	if n, ok := names[s]; ok {
		return n
	}
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		w.fail(s)
	}
	return int(n)
}

// pair reads A-B, or A alone as A-A.
func (w *words) pair() (from, to int) {
	a, b, both := strings.Cut(w.next(), "-")
	if !both {
		b = a
	}
	return w.number(a, nil), w.number(b, nil)
}
