package adopt

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/internal/testnode"
	"github.com/backstop-cni/backstop/journal"
	"github.com/sirupsen/logrus"
)

func init() { runtime.LockOSThread() } // as the commands' mains do

const list = `{"cniVersion":"1.1.0","name":"n","plugins":[{"type":"primary"},{"type":"backstop"}]}`

func ip(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", line, err, out)
		}
	}
}

func dress(t *testing.T, id, veth, addr string) {
	t.Helper()
	ip(t, "netns add "+id, fmt.Sprintf("link add %s type veth peer name eth0 netns %s", veth, id), "link set "+veth+" up",
		"-n "+id+" link set eth0 up", "-n "+id+" addr add "+addr+"/32 dev eth0", "route add "+addr+" dev "+veth)
}

func cache(t *testing.T, dir, id, veth, addr string) string {
	t.Helper()
	file := filepath.Join(dir, "results", "n-"+id+"-eth0")
	entry := fmt.Sprintf(`{"kind":"cniCacheV1","containerId":%q,"config":%q,"ifName":"eth0","networkName":"n","netns":"/run/netns/%s","result":{"interfaces":[{"name":%q},{"name":"eth0"}],"ips":[{"address":"%s/32"}]}}`,
		id, base64.StdEncoding.EncodeToString([]byte(list)), id, veth, addr)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func adopter(t *testing.T) *Adopter {
	t.Helper()
	here, err := kernel.ReadNode()
	if err != nil {
		t.Fatal(err)
	}
	h, err := kernel.OpenHost()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	log := logrus.New()
	log.SetOutput(io.Discard)
	if err := os.WriteFile("/etc/cni/net.d/10-n.conflist", []byte(list), 0o644); err != nil {
		t.Fatal(err)
	}
	return &Adopter{Env: &reconcile.Env{Node: here, Kernel: h, Log: log}, Host: h, Journal: journal.At(journal.DefaultPath),
		ConfDir: "/etc/cni/net.d", Caches: []string{"/var/lib/cni"}, NetnsDir: "/run/netns", LockWait: 10 * time.Second}
}

// What an ADD or a DEL does between the look and the lock wins.
func TestWhatCameMeanwhileWins(t *testing.T) {
	testnode.Run(t, func(t *testing.T) {
		a := adopter(t)
		files := map[string]string{}
		for i, id := range []string{"same", "recorded", "spooled", "closed", "deleted", "again", "gone"} {
			addr := fmt.Sprintf("10.9.9.%d", i+1)
			dress(t, id, "h"+id, addr)
			files[id] = cache(t, "/var/lib/cni", id, "h"+id, addr)
		}
		items, err := a.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(items) != 7 {
			t.Fatalf("%d items: %+v", len(items), items)
		}
		of := map[string]*Item{}
		for i := range items {
			if items[i].Verdict != Adopt {
				t.Fatalf("%+v", items[i])
			}
			of[items[i].Key.ContainerID] = &items[i]
		}
		add := func(id string) *attachment.Record {
			now := a.Env.Now()
			r := &attachment.Record{Key: *of[id].Key, State: attachment.Attached, Node: a.Env.Node, Netns: of[id].Netns, CNIArgs: "BY=ADD"}
			r.Node.Now = now
			return r
		}
		err = a.Journal.UpdateWithin(t.Context(), a.LockWait, func(tx *journal.Tx) error {
			if _, err := a.Env.Place(tx, add("recorded")); err != nil {
				return err
			}
			closed := add("closed")
			if _, err := a.Env.Place(tx, closed); err != nil {
				return err
			}
			if err := journal.Move(closed, attachment.Closed); err != nil {
				return err
			}
			return tx.Put(closed)
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Journal.Keep(add("spooled")); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(files["deleted"]); err != nil {
			t.Fatal(err)
		}
		cache(t, "/var/lib/cni", "again", "hagain", "10.9.9.99")
		if err := testnode.RemovePod("gone"); err != nil {
			t.Fatal(err)
		}

		if err := a.Store(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]Verdict{"same": Adopted, "recorded": Recorded, "spooled": Recorded, "closed": Left, "deleted": Left, "again": Left, "gone": Left} {
			if of[id].Verdict != want {
				t.Errorf("%s is %s (%s), want %s", id, of[id].Verdict, of[id].Why, want)
			}
		}
		got := map[string]string{}
		err = a.Journal.ViewWithin(t.Context(), a.LockWait, func(tx *journal.Tx) error {
			return tx.Each(func(r *attachment.Record) error { got[r.ContainerID] = r.CNIArgs; return nil })
		})
		want := map[string]string{"same": "", "recorded": "BY=ADD", "spooled": "BY=ADD"}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("recorded are %v, want %v (%v)", got, want, err)
		}
	})
}
