package plugin

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/testnode"
	"github.com/backstop-cni/backstop/journal"
)

var delsFlag = flag.Int("dels", 100, "how many DELs of gone pods TestManyDelsOfGonePods sends")

// A call that has nothing to do may cost so many times what VERSION costs, which only starts the program: in time, with
// others at the same time, and in memory.
const (
	timesTheTime   = 3.0
	timesTheMemory = 1.5
)

// TestManyDelsOfGonePods: kubelet repeats the DEL of a sandbox that is gone every minute, for ever, and after a crash
// there are many. Each is short and leaves nothing behind: neither in the journal, which holds some hundred pods, nor in
// the record of the pod that is asked for again and again.
func TestManyDelsOfGonePods(t *testing.T) {
	testnode.Run(t, func(t *testing.T) {
		crowd(t, 300, "/proc/self/ns/net")
		dressWithRules(t)
		if out, log, ok := invoke(t, "ADD", dressed); !ok {
			t.Fatal(out, log)
		}
		ip(t, "netns del p")
		del := func(i int) []string {
			switch i % 3 {
			case 0: // never recorded
				return []string{"DEL", bare, fmt.Sprintf("CNI_CONTAINERID=stranger%d", i), "CNI_NETNS="}
			case 1: // recorded, and torn down by now
				return []string{"DEL", bare, "CNI_NETNS="}
			default: // the same, as its first DEL was
				return []string{"DEL", dressed}
			}
		}
		for i := range 40 { // until it is as it will be
			send(t, del(i))
		}
		nodeBefore, filesBefore, recordBefore := view(t), sizes(t), size(t)

		// A and B in turn, so that the machine's other work meets both.
		var version, dels cost
		for done := 0; done < *delsFlag; done += portion {
			version.add(t, func(int) []string { return []string{"VERSION", `{"cniVersion":"1.1.0"}`} })
			dels.add(t, del)
		}
		t.Logf("%d DELs in %v, %v each; as many VERSIONs in %v; at most %d and %d KiB", *delsFlag, dels.time, dels.time/time.Duration(*delsFlag), version.time, dels.memory, version.memory)
		if got := float64(dels.time) / float64(version.time); got > timesTheTime {
			t.Errorf("a DEL of a gone pod takes %.1f times what VERSION takes, at most %.1f are allowed", got, timesTheTime)
		}
		if got := float64(dels.memory) / float64(version.memory); got > timesTheMemory {
			t.Errorf("a DEL of a gone pod needs %.1f times the memory that VERSION needs, at most %.1f are allowed", got, timesTheMemory)
		}
		if diff := testnode.Diff(nodeBefore, view(t)); diff != "" {
			t.Errorf("the node changed by\n%s", diff)
		}
		if after := sizes(t); after != filesBefore {
			t.Errorf("the journal's files are now %s, they were %s", after, filesBefore)
		}
		// A number in it got longer, no more.
		if after := size(t); after > recordBefore+64 {
			t.Errorf("the record has %d bytes now, it had %d", after, recordBefore)
		}
	})
}

// crowd fills the journal with pods whose netns path is given, live if it is the test's own, and with ones that wait for their primary.
func crowd(t *testing.T, n int, netns string) {
	t.Helper()
	node, err := kernel.ReadNode()
	if err != nil {
		t.Fatal(err)
	}
	own, err := kernel.NamespaceAt("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	err = journal.At(journal.DefaultPath).UpdateWithin(t.Context(), time.Minute, func(tx *journal.Tx) error {
		for i := range n {
			r := &attachment.Record{
				Key: attachment.Key{Network: "n", ContainerID: fmt.Sprintf("%04x", i*199), IfName: "eth0"}, State: attachment.Attached,
				Node: node, Netns: netns, NetnsID: own, IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 8, byte(i >> 8), byte(i)})},
				Settings: attachment.Settings{Teardown: "unreachable", Grace: time.Hour},
			}
			if i%3 == 0 {
				r.State, r.Del = attachment.Owed, &attachment.Del{Count: 1, Last: node.Now, Refused: true}
				r.Due = node.Now
				r.Due.BootTime += time.Hour
			}
			if err := tx.Put(r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// cost is what calls took: time of all of them, and the most memory that one needed.
type cost struct {
	time   time.Duration
	memory int // KiB
}

// portion is how many calls are timed together, atOnce how many of them run at the same time.
const portion, atOnce = 20, 4

func (c *cost) add(t *testing.T, args func(i int) []string) {
	t.Helper()
	var next atomic.Int64
	var most sync.Map
	var wg sync.WaitGroup
	began := time.Now()
	for range atOnce {
		wg.Go(func() {
			for i := next.Add(1); i <= portion; i = next.Add(1) {
				most.Store(i, send(t, args(int(i))))
			}
		})
	}
	wg.Wait()
	c.time += time.Since(began)
	most.Range(func(_, kib any) bool { c.memory = max(c.memory, kib.(int)); return true })
}

// send calls the plugin with a verb, its stdin and further environment, and gives the most memory that it had.
func send(t *testing.T, args []string) (kib int) {
	t.Helper()
	status := filepath.Join(t.TempDir(), "status")
	out, log, ok := invoke(t, args[0], args[1], append(args[2:], statusFile+"="+status)...)
	if !ok || log != "" || (out != "") != (args[0] == "VERSION") {
		t.Errorf("%q: %v, stdout %q, stderr %q", args, ok, out, log)
	}
	text, err := os.ReadFile(status)
	if err != nil {
		t.Error(err)
		return 0
	}
	_, peak, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscan(peak, &kib); err != nil {
		t.Errorf("no VmHWM in %s: %v", text, err)
	}
	return kib
}

// sizes are the journal's files and how long they are.
func sizes(t *testing.T) string {
	t.Helper()
	files, err := os.ReadDir("/var/lib/cni/backstop")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range files {
		i, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(f.Name(), " ", i.Size()))
	}
	return strings.Join(all, ", ")
}

// size is how long the record of the pod that went is.
func size(t *testing.T) int {
	t.Helper()
	r := recorded(t)
	if r == nil || r.State != attachment.Owed {
		t.Fatalf("the record of the pod that went: %+v", r)
	}
	return len(fmt.Sprintf("%+v", r.Events)) + len(r.Resources)
}
