package crashtest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/testnode"
)

// slots is how many pods a trial may have; workers how many come and go beside it.
const slots, workers = 6, 2

// world is a node with people in it who are no business of a killed call's: a neighbour with a record, and things that
// backstop never heard of.
type world struct {
	bin, journal    string
	rand            *rand.Rand
	serial, played  int
	everyone        []*pod // one of each namespace
	others          *load
	base, neighbour testnode.Snapshot
	// gate is held for reading while a worker's pod lives, and for writing to have none.
	gate sync.RWMutex

	mu    sync.Mutex
	acked map[attachment.Key]string // the journal of each ADD that was acknowledged, until its DEL begins
}

// base is what is in the node beside pods.
var baseLines = []string{
	"link add foreign0 type veth peer name foreign1", "link set foreign0 up", "link set foreign1 up", "addr add 10.200.0.1/24 dev foreign0",
	"link add br0 type bridge", "link set br0 address 02:00:00:00:00:aa", "link set br0 up",
	"route add 10.201.0.0/16 via 10.200.0.9 dev foreign0 table 77", "route add 10.202.0.0/16 dev foreign0",
	"rule add pref 512 to 10.200.0.5 lookup main", "rule add pref 1536 from 10.200.0.5 lookup 77", "rule add pref 700 iif foreign0 lookup 77",
	"neigh add 10.200.0.5 lladdr 02:00:00:00:00:05 dev foreign0 nud permanent",
}

func newWorld(bin string, seed uint64) (*world, error) {
	w := &world{bin: bin, journal: filepath.Join(journalDir, "journal.db"), rand: rand.New(rand.NewPCG(seed, 1)), acked: map[attachment.Key]string{}}
	for _, dir := range []string{stubDir, filepath.Join(dataDir, "n"), filepath.Join(dataDir, "g"), cacheDir + "/results"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	for _, network := range []string{"n", "g"} {
		if err := os.WriteFile("/etc/cni/net.d/"+network+".conflist", []byte((&pod{network: network, journal: w.journal}).list()), 0o600); err != nil {
			return nil, err
		}
	}
	stub := "#!/bin/sh\n[ \"$CNI_COMMAND\" != DEL ] || echo \"$CNI_CONTAINERID\" >>" + toldFile + "\n"
	if err := os.WriteFile(filepath.Join(stubDir, "stub"), []byte(stub), 0o755); err != nil {
		return nil, err
	}
	lines := baseLines
	var names []string
	for i := range slots {
		names = append(names, fmt.Sprintf("p%d", i))
	}
	for i := range workers {
		names = append(names, fmt.Sprintf("l%d", i))
	}
	for _, n := range append(names, "nb") {
		lines = append(lines, "netns add "+n)
		if n != "nb" {
			w.everyone = append(w.everyone, &pod{netns: n})
		}
	}
	if err := ip("", lines...); err != nil {
		return nil, err
	}
	nb := &pod{id: "neighbour", network: "n", netns: "nb", link: "hnb", ip: "10.9.200.1", journal: w.journal, to: 512, from: 1536}
	if err := errors.Join(nb.dress(), w.add(nb)); err != nil {
		return nil, err
	}
	err := w.settled()
	if err == nil {
		w.base, err = look()
	}
	if err == nil {
		w.neighbour, err = testnode.View{Netns: "nb"}.Take()
	}
	return w, err
}

// settled waits until what the kernel does by itself is done: links with carrier have their state.
func (w *world) settled() error {
	return testnode.Until(patience, func() error {
		a, err := look()
		if err != nil {
			return err
		}
		b, err := look()
		if err == nil && testnode.Diff(a, b) != "" {
			err = errors.New("the node changes")
		}
		return err
	})
}

// newPod is the next attachment of a slot.
func (w *world) newPod(slot int, network, journal string) *pod {
	w.serial++
	return &pod{id: fmt.Sprintf("c%d", w.serial), network: network, netns: fmt.Sprintf("p%d", slot), link: fmt.Sprintf("h%d", slot),
		ip: fmt.Sprintf("10.9.%d.1", slot), journal: journal, to: 512, from: 1536}
}

// add is an ADD that has to work.
func (w *world) add(p *pod) error {
	if err := works(w.verb(death{}, "ADD", p)); err != nil {
		return err
	}
	return w.added(p)
}

// added notes that an ADD was acknowledged.
func (w *world) added(p *pod) error {
	w.mu.Lock()
	w.acked[p.key()] = p.journal
	w.mu.Unlock()
	return p.cache()
}

// ending notes that a DEL begins, or what stands for one.
func (w *world) ending(p *pod) {
	w.mu.Lock()
	delete(w.acked, p.key())
	w.mu.Unlock()
}

// acknowledged are the ADDs of a journal that no DEL was begun for.
func (w *world) acknowledged(journal string) map[attachment.Key]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[attachment.Key]bool{}
	for k, j := range maps.All(w.acked) {
		if j == journal {
			out[k] = true
		}
	}
	return out
}

// files are the names in a journal's directory that a killed call could have left.
func files(journal string) (left []string) {
	for _, pattern := range []string{journal + ".new", journal + ".spool/*"} {
		found, _ := filepath.Glob(pattern)
		left = append(left, found...)
	}
	return left
}
