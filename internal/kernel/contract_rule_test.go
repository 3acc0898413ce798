package kernel_test

import (
	"slices"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

func TestRulesFilter(t *testing.T) {
	setUp := []string{
		"rule add pref 512 to 10.0.0.5 lookup main", "rule add pref 1536 from 10.0.0.5 lookup 2",
		"rule add pref 600 from 10.0.0.5 fwmark 0x7/0xff lookup 1007",
		"rule add pref 100 from 10.0.0.0/24 lookup 3", "rule add pref 101 to 10.0.0.4/31 lookup 3",
		"rule add pref 102 from 10.0.0.6 lookup 3", "rule add pref 1024 fwmark 0x80/0x80 lookup main",
		"rule add pref 10 iif vlanaad671050aa lookup 102", "rule add pref 11 oif vlanaad671050aa lookup 102",
		"rule add pref 12 iif vlanaad671050ab lookup 103",
		"-6 rule add pref 512 to fd00::5 lookup main", "-6 rule add pref 100 from fd00::/64 lookup 3",
		"-6 rule add pref 101 to fd00::4/127 lookup 3", "-6 rule add pref 10 iif vlanaad671050aa lookup 102",
	}
	for name, c := range map[string]struct {
		filter attachment.RuleFilter
		want   string
	}{
		"an address, as source and destination, in the kernel's order, and no prefix around it": {
			attachment.RuleFilter{IPs: ips("10.0.0.5")},
			"512: from all to 10.0.0.5 lookup main\n600: from 10.0.0.5 lookup 1007 fwmark 0x7 mask 0xff\n1536: from 10.0.0.5 lookup 2",
		},
		"both families": {
			attachment.RuleFilter{IPs: ips("fd00::5", "10.0.0.6")},
			"102: from 10.0.0.6 lookup 3\n512: from all to fd00::5 lookup main",
		},
		"a name, as iif and oif of both families, and not the one that begins alike": {
			attachment.RuleFilter{Names: []string{"vlanaad671050aa"}},
			"10: from all iif vlanaad671050aa lookup 102\n11: from all oif vlanaad671050aa lookup 102\n10: from all iif vlanaad671050aa lookup 102",
		},
		"an address of a rule's prefix is none of its own": {attachment.RuleFilter{IPs: ips("10.0.0.0", "10.0.0.4", "fd00::", "fd00::4")}, ""},
		"an IPv4 address in IPv6 is another one":           {attachment.RuleFilter{IPs: ips("::ffff:10.0.0.5")}, ""},
		"nothing":                                          {attachment.RuleFilter{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, w *world) {
				w.must(setUp...)
				if got := texts(w.rules(c.filter)); got != c.want {
					t.Errorf("got\n%s\nwant\n%s", got, c.want)
				}
			})
		})
	}
}

// TestRuleIsDeletedExactly sets a rule beside one that differs in one thing, in both orders, and removes either. What
// the node lists afterwards is what it listed before without that one line; where the kernel cannot tell the two
// apart and meets the other one first, attachment.Rule.Hits knows it beforehand.
func TestRuleIsDeletedExactly(t *testing.T) {
	const base = "rule add pref 512 from 10.0.0.5 lookup 100"
	for name, c := range map[string]struct {
		a, b string
		// aForB says that asking for a takes b too, bForA the other way round.
		aForB, bForA bool
	}{
		"fwmark":               {a: base, b: base + " fwmark 0x1", aForB: true},
		"another fwmark":       {a: base + " fwmark 0x2", b: base + " fwmark 0x1"},
		"mask":                 {a: base + " fwmark 0x1/0xff", b: base + " fwmark 0x1/0xf"},
		"no mark, but a mask":  {a: base, b: base + " fwmark 0/0xff", aForB: true},
		"tos":                  {a: base, b: base + " tos 0x10", aForB: true},
		"another tos":          {a: base + " tos 0x8", b: base + " tos 0x10"},
		"ipproto":              {a: base, b: base + " ipproto tcp", aForB: true},
		"another ipproto":      {a: base + " ipproto udp", b: base + " ipproto tcp"},
		"sport":                {a: base + " ipproto tcp", b: base + " ipproto tcp sport 80", aForB: true},
		"another sport":        {a: base + " ipproto tcp sport 80-81", b: base + " ipproto tcp sport 80"},
		"dport":                {a: base + " ipproto tcp", b: base + " ipproto tcp dport 80-90", aForB: true},
		"another dport":        {a: base + " ipproto tcp dport 80-91", b: base + " ipproto tcp dport 80-90"},
		"uidrange":             {a: base, b: base + " uidrange 100-200", aForB: true},
		"root's uidrange":      {a: base + " uidrange 0-0", b: base + " uidrange 100-200"},
		"suppressor":           {a: base, b: base + " suppress_prefixlength 0", aForB: true},
		"another suppressor":   {a: base + " suppress_prefixlength 0", b: base + " suppress_prefixlength 8"},
		"protocol":             {a: base, b: base + " protocol 77", aForB: true},
		"another protocol":     {a: base + " protocol 4", b: base + " protocol 77"},
		"table":                {a: base, b: "rule add pref 512 from 10.0.0.5 lookup 101"},
		"table beyond a byte":  {a: "rule add pref 512 from 10.0.0.5 lookup 1100", b: "rule add pref 512 from 10.0.0.5 lookup 1101"},
		"table 252":            {a: "rule add pref 512 from 10.0.0.5 lookup 252", b: "rule add pref 512 from 10.0.0.5 lookup 1101"},
		"priority":             {a: base, b: "rule add pref 513 from 10.0.0.5 lookup 100"},
		"priority 0":           {a: "rule add pref 0 from 10.0.0.5 lookup 100", b: base, aForB: true},
		"iif":                  {a: base, b: base + " iif lo", aForB: true},
		"another iif":          {a: base + " iif v1", b: base + " iif v10"},
		"oif":                  {a: base, b: base + " oif lo", aForB: true},
		"destination":          {a: base, b: base + " to 10.0.0.9", aForB: true},
		"prefix":               {a: base + " iif v1", b: "rule add pref 512 from 10.0.0.4/31 iif v1 lookup 100"},
		"a source or none":     {a: "rule add pref 512 iif v1 lookup 100", b: base + " iif v1", aForB: true},
		"blackhole":            {a: base, b: "rule add pref 512 from 10.0.0.5 blackhole"},
		"unreachable":          {a: "rule add pref 512 from 10.0.0.5 prohibit", b: "rule add pref 512 from 10.0.0.5 unreachable"},
		"goto":                 {a: base, b: "rule add pref 512 from 10.0.0.5 goto 1000"},
		"another goto":         {a: "rule add pref 512 from 10.0.0.5 goto 1000", b: "rule add pref 512 from 10.0.0.5 goto 2000", aForB: true, bForA: true},
		"nop":                  {a: base, b: "rule add pref 512 from 10.0.0.5 nop"},
		"invert":               {a: base, b: "rule add not pref 512 from 10.0.0.5 lookup 100", aForB: true, bForA: true},
		"IPv6, fwmark":         {a: "-6 rule add pref 512 to fd00::5 lookup 100", b: "-6 rule add pref 512 to fd00::5 lookup 100 fwmark 1", aForB: true},
		"the same, but family": {a: "rule add pref 10 iif v1 lookup 100", b: "-6 rule add pref 10 iif v1 lookup 100"},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, w *world) {
				a, b := w.one(c.a), w.one(c.b)
				w.beside(a, b, c.bForA)
				w.beside(b, a, c.aForB)
			})
		})
	}
}

// all selects every rule of TestRuleIsDeletedExactly.
var all = attachment.RuleFilter{IPs: ips("10.0.0.5", "10.0.0.9", "fd00::5"), Names: []string{"v1", "v10", "lo"}}

// seen is a rule and its line in the listings.
type seen struct {
	attachment.Rule
	line string
}

// one adds a rule, reads it and takes it out again.
func (w *world) one(line string) seen {
	w.t.Helper()
	before := w.list("rule4", "rule6")
	s := seen{Rule: w.rule(all, line)}
	lines := minus(w.list("rule4", "rule6"), before)
	if err := w.Delete(ofRule(s.Rule)); err != nil || len(lines) != 1 || !slices.Equal(w.list("rule4", "rule6"), before) {
		w.t.Fatalf("deleting %s alone (listed as %q): %v", s, lines, err)
	}
	s.line = lines[0]
	return s
}

// beside removes victim while twin stands behind it and before it.
func (w *world) beside(twin, victim seen, twinIsHit bool) {
	w.t.Helper()
	if got := victim.Hits(twin.Rule); got != twinIsHit {
		w.t.Errorf("%s hits %s: %v, want %v", victim.line, twin.line, got, twinIsHit)
	}
	before := w.list("rule4", "rule6")
	for _, order := range [][]seen{{victim, twin}, {twin, victim}} {
		w.put(order[0].Rule)
		w.put(order[1].Rule)
		went, stays := victim, twin
		if twinIsHit && w.first(victim, twin) == twin.line {
			went, stays = twin, victim
		}
		if err := w.Delete(ofRule(victim.Rule)); err != nil {
			w.t.Fatalf("%s beside %s: %v", victim.line, twin.line, err)
		}
		if left := minus(w.list("rule4", "rule6"), before); !slices.Equal(left, []string{stays.line}) {
			w.t.Fatalf("deleting %s, %s should go and %s stay: left is %q", victim.line, went.line, stays.line, left)
		}
		if err := w.Delete(ofRule(stays.Rule)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// first says which of two the kernel meets first.
func (w *world) first(a, b seen) string {
	w.t.Helper()
	for _, r := range w.rules(all) {
		switch {
		case r.Equal(a.Rule):
			return a.line
		case r.Equal(b.Rule):
			return b.line
		}
	}
	w.t.Fatalf("neither %s nor %s is there", a.line, b.line)
	return ""
}

func TestTheSameRuleTwice(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		f := attachment.RuleFilter{IPs: ips("10.0.0.5")}
		r := w.rule(f, "rule add pref 512 to 10.0.0.5 lookup main")
		w.put(r)
		if n := len(w.rules(f)); n != 2 {
			t.Fatalf("%d rules, want 2", n)
		}
		for left := 1; left >= 0; left-- {
			if lost := w.deleted(ofRule(r)); len(lost) != 1 {
				t.Errorf("one deletion took %q", lost)
			}
			if n := len(w.rules(f)); n != left {
				t.Errorf("%d rules are left, want %d", n, left)
			}
		}
		isGone(t, "a third deletion", w.Delete(ofRule(r)))
	})
}

// aws-vpc-cni #1375: "iif vlanaad671050aa [detached] lookup 101" beside the live "lookup 102".
func TestRuleOfADeviceThatWentIsTheSameRule(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		f := attachment.RuleFilter{Names: []string{"vlanaad671050aa"}}
		detached := w.rule(f, "rule add pref 10 iif vlanaad671050aa lookup 101")
		old := w.veth("vlanaad671050aa")
		for _, r := range w.rules(f) {
			if !r.Equal(detached) {
				t.Errorf("with its device it is another rule: %s, was %s", r, detached)
			}
		}
		if err := w.Delete(ofLink(*old)); err != nil {
			t.Fatal(err)
		}
		if rs := w.rules(f); len(rs) != 1 || !rs[0].Equal(detached) {
			t.Errorf("after its device: %s", texts(rs))
		}
		w.veth("vlanaad671050aa")
		live := w.rule(f, "rule add pref 10 iif vlanaad671050aa lookup 102")
		if lost := w.deleted(ofRule(detached)); len(lost) != 1 {
			t.Errorf("%q went", lost)
		}
		if rs := w.rules(f); len(rs) != 1 || !rs[0].Equal(live) {
			t.Errorf("left are %s, want %s", texts(rs), live)
		}
	})
}
