package attachment

import (
	"bufio"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"
)

// dumped is a line of testdata/rules.txt.
type dumped struct {
	number, words string
	rule          Rule
	hits          []string
}

func dumpedRules(t *testing.T) (all []dumped) {
	t.Helper()
	f, err := os.Open("testdata/rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		c := strings.Split(s.Text(), "|")
		if len(c) != 4 {
			t.Fatalf("line %q has %d columns, want 4", s.Text(), len(c))
		}
		raw, err := hex.DecodeString(strings.TrimSpace(c[2]))
		if err != nil || len(raw) < ruleHeader {
			t.Fatalf("line %q: dump has %d bytes, %v", s.Text(), len(raw), err)
		}
		all = append(all, dumped{
			strings.TrimSpace(c[0]), strings.TrimSpace(c[1]), Rule{Family: int(raw[0]), Raw: raw}, strings.Fields(c[3]),
		})
	}
	if len(all) < 20 {
		t.Fatalf("read %d rules", len(all))
	}
	return all
}

// The kernel removes the first rule that agrees with what the request
// specifies: Hits has to foresee exactly that.
func TestHitsIsWhatTheKernelDoes(t *testing.T) {
	all := dumpedRules(t)
	for _, mine := range all {
		for _, first := range all {
			want := mine.number == first.number || slices.Contains(mine.hits, first.number)
			if got := mine.rule.Hits(first.rule); got != want {
				t.Errorf("deleting %q with %q before it: Hits says %v, the kernel %v", mine.words, first.words, got, want)
			}
		}
	}
}

func TestRulesThatDifferInAnythingAreNotEqual(t *testing.T) {
	all := dumpedRules(t)
	for _, a := range all {
		for _, b := range all {
			if got := a.rule.Equal(b.rule); got != (a.number == b.number) {
				t.Errorf("%q and %q: Equal says %v", a.words, b.words, got)
			}
		}
	}
}

func TestRuleTextsDoNotDecideEquality(t *testing.T) {
	a := dumpedRules(t)[0].rule
	b := a
	b.Src, b.Other, b.Table = "10.9.9.9", "as an older backstop would put it", 7
	if !a.Equal(b) {
		t.Error("the same dump, read by another version, is another rule")
	}
	if b.Family = 10; a.Equal(b) {
		t.Error("rules of two families are equal")
	}
}

// A damaged record may hold less than a header.
func TestHitsOfWhatIsNoRule(t *testing.T) {
	r := dumpedRules(t)[0].rule
	for name, raw := range map[string][]byte{"nothing": nil, "half a header": r.Raw[:7]} {
		short := Rule{Family: r.Family, Raw: raw}
		if short.Hits(r) || r.Hits(short) || short.Hits(short) {
			t.Errorf("%s hits a rule or is hit", name)
		}
	}
	bare := Rule{Family: r.Family, Raw: make([]byte, ruleHeader)}
	if !bare.Hits(r) || !bare.Hits(bare) {
		t.Error("a request that specifies nothing does not hit any rule")
	}
	if r.Hits(bare) {
		t.Error("a rule without attributes cannot agree with those of the request")
	}
}

func TestSameSelector(t *testing.T) {
	base := Rule{Family: 2, Priority: 10, Src: "10.0.0.2", Dst: "10.1.0.0/16", IifName: "vlan1", OifName: "eth1", Table: 101, Other: "tos 0x10"}
	for name, c := range map[string]struct {
		change func(*Rule)
		want   bool
	}{
		"nothing":  {func(*Rule) {}, true},
		"table":    {func(r *Rule) { r.Table = 102 }, true},
		"dump":     {func(r *Rule) { r.Raw = []byte{1} }, true},
		"family":   {func(r *Rule) { r.Family = 10 }, false},
		"priority": {func(r *Rule) { r.Priority = 11 }, false},
		"src":      {func(r *Rule) { r.Src = "10.0.0.3" }, false},
		"dst":      {func(r *Rule) { r.Dst = "" }, false},
		"iif":      {func(r *Rule) { r.IifName = "vlan2" }, false},
		"oif":      {func(r *Rule) { r.OifName = "eth2" }, false},
		"the rest": {func(r *Rule) { r.Other = "not tos 0x10" }, false},
	} {
		o := base
		c.change(&o)
		if base.SameSelector(o) != c.want || o.SameSelector(base) != c.want {
			t.Errorf("other %s: want %v", name, c.want)
		}
	}
}

func TestRuleInWords(t *testing.T) {
	for want, r := range map[string]Rule{
		"512: from all to 10.0.0.2 lookup main":           {Priority: 512, Dst: "10.0.0.2", Table: 254},
		"1536: from 10.0.0.2 lookup 2":                    {Priority: 1536, Src: "10.0.0.2", Table: 2},
		"10: from all iif vlan1 oif e lookup local tos 1": {Priority: 10, IifName: "vlan1", OifName: "e", Table: 255, Other: "tos 1"},
		"0: from all action 6":                            {Other: "action 6"}, // blackhole: no table
		"7: from fd00::/64 lookup default":                {Priority: 7, Src: "fd00::/64", Table: 253},
	} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
