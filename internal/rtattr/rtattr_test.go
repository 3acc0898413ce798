package rtattr

import (
	"bytes"
	"testing"
)

func TestNormalMakesEqualObjectsEqual(t *testing.T) {
	one := Append(Append(Append(nil, 6, []byte{0, 2, 0, 0}), 1, []byte{10, 0, 0, 2}), 12, []byte{9, 9, 9, 9, 9})
	two := Append(Append(Append(nil, 1, []byte{10, 0, 0, 2}), 12, []byte{1, 2, 3}), 6, []byte{0, 2, 0, 0})
	if a, b := Normal(one, 12), Normal(two, 12); !bytes.Equal(a, b) || len(a) != 16 {
		t.Errorf("got %x and %x", a, b)
	}
	if a, b := Normal(one), Normal(two); bytes.Equal(a, b) {
		t.Error("attributes that were not dropped do not count")
	}
}

func TestEachStopsAtWhatDoesNotFit(t *testing.T) {
	good := Append(nil, 1, []byte{1})
	for name, tail := range map[string][]byte{
		"length beyond the end": {9, 0, 1, 0},
		"length under four":     {3, 0, 1, 0},
		"half a header":         {4, 0},
	} {
		n := 0
		for range Each(append(bytes.Clone(good), tail...)) {
			n++
		}
		if n != 1 {
			t.Errorf("%s: %d attributes, want 1", name, n)
		}
	}
}
