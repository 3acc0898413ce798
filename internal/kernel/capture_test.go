package kernel_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
)

// captureCase is a node, what a primary puts into it for one pod, and what of it is the pod's.
type captureCase struct {
	node   []string // there before; POD2 is another pod
	host   []string // what the primary does on the host; POD is the pod
	pod    []string // and inside the pod
	after  []string // done by others once the primary has returned
	result string   // prevResult
	ifName string   // eth0 if not said
	closed bool     // the pod's namespace cannot be entered

	ips  string
	want string // the resources with their share, sorted
	in   string // the pod's side, where it is not left out
	// keep says that what is captured cannot all be taken out again, or is not all that the primary made.
	keep bool
}

// run furnishes the node, captures, and compares. Then it takes out what was captured as own: the node's listings are what
// they were before the primary came.
func (c captureCase) run(t *testing.T) {
	t.Helper()
	n, pod, other := enterNode(t), newPod(t), newPod(t)
	furnish := func(lines []string) {
		lines = slices.Clone(lines)
		for i, line := range lines {
			lines[i] = strings.NewReplacer("POD2", other.path, "POD", pod.path).Replace(line)
		}
		n.ip(lines...)
	}
	furnish(c.node)
	before := n.everything()
	furnish(c.host)
	pod.ip(c.pod...)
	furnish(c.after)

	h := n.handle()
	target := kernel.Target{Result: attachment.ParseResult(json.RawMessage(c.result)), IfName: cmp.Or(c.ifName, "eth0")}
	if !c.closed {
		in, id, err := openPod(t, pod.path, n.node())
		if err != nil {
			t.Fatal(err)
		}
		target.Pod, target.PodNSID = in, func() int { return h.NSID(pod.path, id) }
	}
	got, err := kernel.Capture(h, target)
	if err != nil {
		t.Errorf("capture: %v", err)
	}
	if ips := strings.Trim(fmt.Sprint(got.IPs), "[]"); ips != c.ips {
		t.Errorf("addresses %s, want %s", ips, c.ips)
	}
	if text := describe(got.Resources); text != lines(c.want) {
		t.Errorf("on the node\n%s\nwant\n%s", text, lines(c.want))
	}
	if text := describe(got.Pod); c.in != "" && text != lines(c.in) {
		t.Errorf("in the pod\n%s\nwant\n%s", text, lines(c.in))
	}
	for _, r := range slices.Concat(got.Resources, got.Pod) {
		if err := r.Validate(); err != nil {
			t.Error(err)
		}
	}
	if c.keep {
		return
	}
	removeOwn(t, h, got.Resources)
	if after := n.everything(); !slices.Equal(before, after) {
		t.Errorf("with everything own taken out, this is left:\n%s\nand this was somebody else's:\n%s",
			strings.Join(minus(after, before), "\n"), strings.Join(minus(before, after), "\n"))
	}
}

// removeOwn deletes in the order in which teardown does.
func removeOwn(t *testing.T, h kernel.Host, all []attachment.Resource) {
	t.Helper()
	order := []attachment.Kind{attachment.KindRule, attachment.KindRoute, attachment.KindNeighbour, attachment.KindFDB, attachment.KindLink}
	for _, kind := range order {
		for _, r := range all {
			if r.Kind == kind && r.Share == attachment.Own {
				if err := h.Delete(r); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// index is what differs from run to run; a route's device has its name only if it is the pod's own.
var index = regexp.MustCompile(`(, index |\bif)\d+\b`)

// describe writes resources so that they compare in every run.
func describe(all []attachment.Resource) string {
	var out []string
	for _, r := range all {
		out = append(out, string(r.Share)+" "+index.ReplaceAllStringFunc(r.String(), func(s string) string { return strings.Trim(s[:2], ", ") }))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// lines sorts an indented list.
func lines(s string) string {
	var out []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// What cannot be read is reported, and the rest is captured all the same.
func TestCaptureGoesOnAfterAnError(t *testing.T) {
	result := attachment.ParseResult(json.RawMessage(`{"interfaces":[{"name":"ifb7"}],"ips":[{"address":"10.0.0.5/32"}]}`))
	full := "own link ifb7 (ifb)\nown route 10.0.0.5 dev ifb7 table 1000\nown rule 512: from 10.0.0.5 lookup 1000"
	for method, want := range map[string]string{
		"":           full,
		"Neighbours": full,
		"RouteTo":    full,
		"Rules":      "own link ifb7 (ifb)\nown route 10.0.0.5 dev ifb7 table 1000",
		"LinkByName": "own rule 512: from 10.0.0.5 lookup 1000",
		"RoutesIn":   full,
		"RoutesOver": full,
	} {
		f := kernel.NewFake()
		for _, line := range []string{"link add ifb7 type ifb", "rule add pref 512 from 10.0.0.5 lookup 1000", "route add 10.0.0.5 dev ifb7 table 1000",
			"route add 10.0.0.5 dev lo table 100"} {
			if err := f.IP(line); err != nil {
				t.Fatal(err)
			}
		}
		broken := fmt.Errorf("%s is broken", method)
		f.Break(method, broken)
		got, err := kernel.Capture(f, kernel.Target{Result: result, IfName: "eth0"})
		if text := describe(got.Resources); text != want {
			t.Errorf("without %q:\n%s\nwant\n%s", method, text, want)
		}
		// A lookup is spared where a route is known already.
		if reported := err != nil && strings.Contains(err.Error(), broken.Error()); reported != (method != "" && method != "RouteTo") {
			t.Errorf("without %q the error is %v", method, err)
		}
		if len(got.IPs) != 1 || got.IPs[0] != netip.MustParseAddr("10.0.0.5") {
			t.Errorf("without %q the addresses are %v", method, got.IPs)
		}
	}
}

// Capture starts no program and lists neither all links nor whole tables that it was not led to: every pod's
// start pays for it. The fake breaks what it must not ask for.
func TestCaptureAsksForLittle(t *testing.T) {
	f := kernel.NewFake()
	for _, line := range []string{"link add hv index 9 type veth peer name eth0 netns POD", "route add 10.0.0.5 dev hv", "rule add pref 512 to 10.0.0.5 lookup main"} {
		if err := f.IP(line); err != nil {
			t.Fatal(err)
		}
	}
	for _, method := range []string{"Links", "RoutesIn", "FDB", "Delete"} {
		f.Break(method, fmt.Errorf("%s was called", method))
	}
	result := attachment.ParseResult(json.RawMessage(`{"interfaces":[{"name":"hv"}],"ips":[{"address":"10.0.0.5/32"}]}`))
	got, err := kernel.Capture(f, kernel.Target{Result: result, IfName: "eth0", PodNSID: func() int { return 0 }})
	if err != nil {
		t.Error(err)
	}
	if text, want := describe(got.Resources), lines("own link hv (veth)\nown route 10.0.0.5 dev hv table main\nown rule 512: from all to 10.0.0.5 lookup main"); text != want {
		t.Errorf("got\n%s", text)
	}
}
