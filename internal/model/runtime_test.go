package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/journal"
	"golang.org/x/sys/unix"
)

// call is one call of the plugin.
type call struct {
	verb   string
	a      *att
	netns  string
	name   string // of the network, where it is not the attachment's
	result json.RawMessage
	extra  map[string]any // further keys of the configuration
}

// plugin starts the plugin as a runtime does and gives what it printed and its exit code.
func (w *world) plugin(c call) (stdout string, code int, err error) {
	conf := c.a.net.entry()
	conf["cniVersion"], conf["name"] = "1.1.0", c.a.Network
	if c.name != "" {
		conf["name"] = c.name
	}
	if c.result != nil {
		conf["prevResult"] = c.result
	}
	maps.Copy(conf, c.extra)
	stdin, err := json.Marshal(conf)
	if err != nil {
		return "", 0, err
	}
	env := []string{"CNI_COMMAND=" + c.verb, "CNI_PATH=" + programs}
	if c.verb != "STATUS" && c.verb != "GC" {
		env = append(env, "CNI_CONTAINERID="+c.a.ContainerID, "CNI_IFNAME="+c.a.IfName, "CNI_NETNS="+c.netns,
			"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAME="+c.a.sb.slot.name)
	}
	return w.run(env, stdin, filepath.Join(programs, "backstop"))
}

// ctl runs backstopctl.
func (w *world) ctl(args ...string) (stdout string, code int, err error) {
	return w.run(nil, nil, filepath.Join(programs, "backstopctl"), args...)
}

// elsewhere runs backstopctl where the pods' paths mean nothing, as in an agent's pod.
func (w *world) elsewhere(args ...string) (stdout string, code int, err error) {
	const script = `mount -t tmpfs model /run/netns && exec "$@"`
	return w.run(nil, nil, "unshare", append([]string{"-m", "sh", "-c", script, "sh", filepath.Join(programs, "backstopctl")}, args...)...)
}

// patience is how long a program may take.
const patience = 30 * time.Second

func (w *world) run(env []string, stdin []byte, program string, args ...string) (stdout string, code int, err error) {
	cmd := exec.Command(program, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &errs
	if err := cmd.Start(); err != nil {
		return "", 0, err
	}
	watch := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer watch.Stop()
	err = cmd.Wait()
	if e := (*exec.ExitError)(nil); errors.As(err, &e) && e.Exited() {
		if errs.Len() > 0 && e.ExitCode() != 3 { // something is left: said by what is asked afterwards
			w.mu.Lock()
			w.note("  %s: %s", filepath.Base(program), strings.TrimSpace(errs.String()))
			w.mu.Unlock()
		}
		return out.String(), e.ExitCode(), nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("%s %v: %w: %s", program, args, err, errs.String())
	}
	return out.String(), 0, nil
}

// cacheFile is libcni's entry of an attachment.
func cacheFile(k attachment.Key) string {
	return filepath.Join(cacheDir, "results", k.Network+"-"+k.ContainerID+"-"+k.IfName)
}

// remember writes libcni's cache entry, after the whole ADD.
func (a *att) remember() error {
	if err := os.MkdirAll(filepath.Join(cacheDir, "results"), 0o755); err != nil {
		return err
	}
	b, err := json.Marshal(map[string]any{
		"kind": "cniCacheV1", "containerId": a.ContainerID, "config": a.net.list(), "ifName": a.IfName, "networkName": a.Network,
		"netns": a.sb.path, "cniArgs": [][2]string{{"IgnoreUnknown", "1"}, {"K8S_POD_NAME", a.sb.slot.name}}, "result": a.result,
	})
	if err != nil {
		return err
	}
	a.cached = true
	return os.WriteFile(cacheFile(a.Key), b, 0o600)
}

// recall gives the result in libcni's cache entry, nil when there is none.
func (a *att) recall() json.RawMessage {
	var e struct{ Result json.RawMessage }
	b, err := os.ReadFile(cacheFile(a.Key))
	if err != nil || json.Unmarshal(b, &e) != nil {
		return nil
	}
	return e.Result
}

func (a *att) forget() error {
	a.cached = false
	err := os.Remove(cacheFile(a.Key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// finishAdd is backstop's part of an ADD, and the end of the list's.
func (w *world) finishAdd(a *att) error {
	dead := w.dead()
	if err := w.lookUp(); err != nil {
		return err
	}
	out, code, err := w.plugin(call{verb: "ADD", a: a, netns: a.sb.path, result: a.result})
	if err != nil {
		return err
	}
	if code != 0 {
		return fmt.Errorf("ADD of %s failed: %s", a.Key, out)
	}
	if !sameJSON(out, string(a.result)) {
		return fmt.Errorf("ADD of %s changed the result from %s to %s", a.Key, a.result, out)
	}
	if err := w.added(a); err != nil {
		return err
	}
	return w.healed(a, dead)
}

// added notes that backstop's ADD is done: what the attachment has lost since its primary's is not its own any more.
func (w *world) added(a *att) error {
	now, err := list()
	if err != nil {
		return err
	}
	if a.deleted { // a DEL came in between
		maps.DeleteFunc(a.need, func(text string, _ bool) bool { return !now.has(text) })
	}
	a.window, a.known, a.deleted, a.forgotten = false, true, false, false
	w.absorb(a, now)
	return a.remember()
}

// absorb gives an attachment what backstop cannot tell from its own at its ADD: rules that have its address or its link's
// name and are foreign, or of an attachment that was never recorded, and a dead pod's where nothing says which of them
// its primary relies on.
func (w *world) absorb(a *att, now listing) {
	for text, it := range now.items {
		if it.kind != "rule" || a.need[text] || !intersect(it.ips, a.ips) && (it.name == "" || it.name != a.link) {
			continue
		}
		switch {
		case w.bystanders[text] > 0:
			delete(w.bystanders, text)
			a.made[text] = true
		case !w.recorded(text):
			a.made[text] = true
		case a.net.aws && it.from && it.table != unix.RT_TABLE_MAIN:
			// its prevResult says to which table its rules lead
		case !a.decided(it, now):
			a.made[text] = true
		}
	}
}

// lookUp notes which records an ADD meets: the open ones, but for those whose resources are gone.
func (w *world) lookUp() error {
	w.met = map[attachment.Key]bool{}
	return view(func(tx *journal.Tx) error {
		return tx.Each(func(r *attachment.Record) error {
			w.met[r.Key] = r.State != attachment.Owed || r.Claimed
			return nil
		})
	})
}

// recorded says that an attachment which backstop knew at the ADD made a thing.
func (w *world) recorded(text string) bool {
	return slices.ContainsFunc(w.attachments(), func(o *att) bool { return o.known && o.made[text] && w.met[o.Key] })
}

// decided says that the attachment has a rule of its own in the place of another: with the same selector, and made for it.
func (a *att) decided(it *item, now listing) bool {
	for text := range a.need {
		mine := now.items[text]
		if mine != nil && !a.found[text] && mine.match != "" && mine.match == it.match {
			return true
		}
	}
	return false
}

func intersect(some, others []addr) bool {
	for _, x := range some {
		for _, y := range others {
			if x == y {
				return true
			}
		}
	}
	return false
}

func sameJSON(a, b string) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, []byte(a)) == nil && json.Compact(&y, []byte(b)) == nil && x.String() == y.String()
}
