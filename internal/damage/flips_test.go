package damage

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/backstop-cni/backstop/internal/testnode"
)

var flips = flag.Int("flips", 15, "how many journals with flipped bytes are tried")

// firstFlip chooses others, or one again.
var firstFlip = flag.Uint64("first-flip", 0, "the seed of the first one")

// pageSize is bbolt's, and inUse how many pages of a small journal are worth spoiling: behind them are zeros.
const pageSize, inUse = 4096, 16

// TestFlips spoils bytes of a journal, at random. Each time pods start and stop as ever, and what backstopctl says is an
// answer.
func TestFlips(t *testing.T) {
	t.Parallel()
	testnode.Run(t, func(t *testing.T) {
		empty := kernel(t)
		sh(t, "mkdir -m 700 "+dir)
		older.dress(t)
		older.cni(t, "ADD", "")
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		newer.dress(t)
		for seed := *firstFlip; seed < *firstFlip+uint64(*flips); seed++ {
			sh(t, "rm -rf "+dir+"; mkdir -m 700 "+dir)
			if err := os.WriteFile(file, flip(whole, seed), 0o600); err != nil {
				t.Fatal(err)
			}
			check := start(t, "", nil, "backstopctl", "journal", "check")
			if check.Code == 0 {
				for _, args := range [][]string{{"list"}, {"journal", "export"}} {
					if s := start(t, "", nil, append([]string{"backstopctl"}, args...)...); s.Code != 0 {
						t.Errorf("seed %d: the journal is sound, and %s: %s", seed, args, s.Stderr)
					}
				}
			}
			s := newer.cni(t, "ADD", "")
			if s.Code != 0 {
				t.Errorf("seed %d: ADD: %s", seed, s.Stdout)
			} else if at := where(t, newer); at != "journal" {
				t.Errorf("seed %d: after ADD the record is in the %s\ncheck: %s%s\nADD: %s", seed, at, check.Stdout, check.Stderr, s.Stderr)
			}
			if s := newer.cni(t, "CHECK", ""); s.Code != 0 {
				t.Errorf("seed %d: CHECK: %s", seed, s.Stdout)
			}
			if t.Failed() {
				t.Logf("seed %d:\ncheck: %s%s\nADD: %s", seed, check.Stdout, check.Stderr, s.Stderr)
				break
			}
		}
		for _, p := range []pod{older, newer} {
			if s := p.cni(t, "DEL", ""); s.Code != 0 {
				t.Errorf("DEL: %s", s.Stdout)
			}
			p.remove()
		}
		if k := kernel(t); k != empty {
			t.Errorf("in the end the node has\n%s", k)
		}
	})
}

// flip changes up to eight bits, or a stretch of bytes, of the pages in use.
func flip(whole []byte, seed uint64) []byte {
	b, r := bytes.Clone(whole), rand.New(rand.NewPCG(seed, 1))
	page := b[r.IntN(inUse)*pageSize:][:pageSize]
	area := []int{64, 512, pageSize}[r.IntN(3)] // headers are where it hurts
	for range 1 + r.IntN(8) {
		page[r.IntN(area)] ^= 1 << r.IntN(8)
	}
	if r.IntN(4) == 0 {
		for i := range page[:r.IntN(area)] {
			page[i] = byte(r.Uint32())
		}
	}
	return b
}
