package damage

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/journal"
)

const (
	dir   = "/var/lib/cni/backstop"
	cache = "/var/lib/cni/results"
)

// said is what one run of a program gave.
type said struct {
	Stdout, Stderr string
	Code           int
}

// tooLong is when a program has not ended by itself: kubelet gives a call two minutes.
const tooLong = time.Minute

// start runs a program. Whatever is wrong with the journal, it ends by itself and tells of it in words.
func start(t *testing.T, stdin string, env []string, args ...string) said {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), tooLong)
	defer cancel()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env = append(os.Environ(), env...)
	var out, log bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &out, &log
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	s := said{out.String(), log.String(), c.ProcessState.ExitCode()}
	if s.Code < 0 || regexp.MustCompile(`panic:|goroutine|fatal error|SIG[A-Z]+:`).MatchString(s.Stdout+s.Stderr) {
		t.Errorf("%s did not end by itself (%v):\n%s%s", strings.Join(args, " "), c.ProcessState, s.Stdout, s.Stderr)
	}
	return s
}

// sh runs what a person would type.
func sh(t *testing.T, script string) {
	t.Helper()
	if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// pod is an attachment of network n.
type pod struct{ id, link, address string }

var (
	older = pod{"p", "hp", "10.9.9.9"} // recorded before the damage
	newer = pod{"q", "hq", "10.9.9.8"} // comes after it
)

// dress makes a pod as a primary leaves it, and the runtime's cache entry.
func (p pod) dress(t *testing.T) {
	t.Helper()
	for _, args := range [][2]string{
		{"", "netns add POD\nlink add LINK type veth peer name eth0 netns POD\nlink set LINK up\nroute add ADDR/32 dev LINK\nrule add pref 1536 from ADDR lookup 100\n"},
		{"POD", "link set lo up\nlink set eth0 up\naddr add ADDR/32 dev eth0\n"},
	} {
		fill := strings.NewReplacer("POD", p.id, "LINK", p.link, "ADDR", p.address)
		c := exec.Command("ip", "-n", fill.Replace(args[0]), "-batch", "-")
		if args[0] == "" {
			c = exec.Command("ip", "-batch", "-")
		}
		c.Stdin = strings.NewReader(fill.Replace(args[1]))
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("dress %s: %v: %s", p.id, err, out)
		}
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	list := base64.StdEncoding.EncodeToString([]byte(`{"cniVersion":"1.1.0","name":"n","plugins":[{"type":"primary"},{"type":"backstop",` + keys + `}]}`))
	entry := fmt.Sprintf(`{"kind":"cniCacheV1","containerId":%q,"config":%q,"ifName":"eth0","networkName":"n","netns":"/run/netns/%s","result":%s}`, p.id, list, p.id, p.result())
	if err := os.WriteFile(filepath.Join(cache, "n-"+p.id+"-eth0"), []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p pod) result() string {
	return fmt.Sprintf(`{"cniVersion":"1.1.0","interfaces":[{"name":%q},{"name":"eth0","sandbox":"/run/netns/%s"}],"ips":[{"address":"%s/32","interface":1}]}`, p.link, p.id, p.address)
}

// keys are the conflist's entry: nobody answers the probe, so that a DEL is backstop's to do.
const keys = `"primary":{"probe":["unix:///run/primary.sock"]}`

// cni calls the plugin as a runtime does. Its stdout is empty, a result or an error of the spec, and nothing else.
func (p pod) cni(t *testing.T, verb, more string) said {
	t.Helper()
	return p.cniUnder(t, nil, verb, more)
}

// cniUnder is cni by way of another program.
func (p pod) cniUnder(t *testing.T, under []string, verb, more string) said {
	t.Helper()
	conf := fmt.Sprintf(`{"cniVersion":"1.1.0","name":"n","type":"backstop",%s%s,"prevResult":%s}`, keys, more, p.result())
	s := start(t, conf, []string{"CNI_COMMAND=" + verb, "CNI_CONTAINERID=" + p.id, "CNI_NETNS=/run/netns/" + p.id, "CNI_IFNAME=eth0", "CNI_PATH=/opt/cni/bin"}, append(under, "backstop")...)
	var got map[string]any
	err := json.Unmarshal([]byte(s.Stdout), &got)
	switch {
	case s.Code == 0 && verb == "ADD":
		if !sameJSON(s.Stdout, p.result()) {
			t.Errorf("ADD gave %q, want prevResult", s.Stdout)
		}
	case s.Code == 0:
		if s.Stdout != "" {
			t.Errorf("%s printed %q", verb, s.Stdout)
		}
	case err != nil || got["code"] == nil || got["msg"] == nil:
		t.Errorf("%s failed with %q, want a CNI error: %v", verb, s.Stdout, err)
	}
	return s
}

// remove deletes what is left of a pod.
func (p pod) remove() {
	c := exec.Command("ip", "-force", "-batch", "-")
	c.Stdin = strings.NewReader(fmt.Sprintf("netns del %s\nlink del %s\nrule del pref 1536 from %s\n", p.id, p.link, p.address))
	_ = c.Run() // most of it has gone
	_ = os.Remove(filepath.Join(cache, "n-"+p.id+"-eth0"))
}

func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	x1, _ := json.Marshal(x)
	y1, _ := json.Marshal(y)
	return bytes.Equal(x1, y1)
}

// kernel is what the node has, of interfaces, addresses, routes and rules.
func kernel(t *testing.T) string {
	t.Helper()
	c := exec.Command("ip", "-4", "-batch", "-")
	c.Stdin = strings.NewReader("link show\naddr show\nroute show table all\nrule show\n")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	return passing.ReplaceAllString(string(out), "")
}

// passing is what comes and goes with a link's carrier.
var passing = regexp.MustCompile(`<[A-Z,_-]*>|qdisc \w+|state \w+| linkdown`)

// files are the names below the journal's directories, with their kinds and sizes.
func files(t *testing.T) string {
	t.Helper()
	out, _ := exec.Command("find", dir, journal.FallbackDir, "-printf", "%p %y %s %l\n").Output() // one of them may not be there
	lines := strings.Split(string(out), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// where tells where a pod's record is.
func where(t *testing.T, p pod) string {
	t.Helper()
	needle := []byte(fmt.Sprintf(`"containerID":%q`, p.id))
	for _, at := range []struct{ glob, name string }{
		{dir + "/journal.db.spool/*.json", "spool"},
		{journal.FallbackDir + "/*/*.json", "memory"},
	} {
		found, _ := filepath.Glob(at.glob)
		for _, f := range found {
			if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, needle) {
				return at.name
			}
		}
	}
	if _, ok := listed(t)[p.id]; ok {
		return "journal"
	}
	return "nowhere"
}

// listed are the open records that backstopctl shows, by container.
func listed(t *testing.T) map[string]string {
	t.Helper()
	s := start(t, "", nil, "backstopctl", "list", "-o", "json")
	var rows []struct{ ContainerID, State string }
	if s.Code == 0 {
		if err := json.Unmarshal([]byte(s.Stdout), &rows); err != nil {
			t.Errorf("list -o json: %v in %q", err, s.Stdout)
		}
	}
	out := map[string]string{}
	for _, r := range rows {
		out[r.ContainerID] = r.State
	}
	return out
}
