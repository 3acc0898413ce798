package testnode

import (
	"regexp"
	"slices"
	"testing"
)

func TestDiffCountsEqualLines(t *testing.T) {
	from := Snapshot{"link lo", "rule4 512: from all to 10.1.0.2 lookup main", "rule4 512: from all to 10.1.0.2 lookup main"}
	to := Snapshot{"link hv", "link lo", "rule4 512: from all to 10.1.0.2 lookup main"}
	want := "- rule4 512: from all to 10.1.0.2 lookup main\n+ link hv\n"
	if got := Diff(from, to); got != want {
		t.Errorf("the difference is %q, want %q", got, want)
	}
	if got := Diff(from, from); got != "" {
		t.Errorf("a snapshot differs from itself: %q", got)
	}
}

func TestSnapshotSurvivesItsText(t *testing.T) {
	s := Snapshot{"link lo", "rule4 0: from all lookup local"}
	if diff := Diff(s, ParseSnapshot(s.String())); diff != "" {
		t.Errorf("read back:\n%s", diff)
	}
}

func TestMatching(t *testing.T) {
	s := Snapshot{"link lo", "rule4 512: from all to 10.1.0.2 lookup main"}
	if got := s.Matching(regexp.MustCompile(`^rule`)); !slices.Equal(got, s[1:]) {
		t.Errorf("rules: %q", got)
	}
}

func TestKernelMadeRoutesAreLeftOut(t *testing.T) {
	for route, left := range map[string]bool{
		"10.1.0.0/24 dev cni0 proto kernel scope link src 10.1.0.1":               true,
		"multicast ff00::/8 dev hv table local metric 256 pref medium":            true,
		"fe80::/64 dev hv metric 256 pref medium":                                 true,
		"10.1.0.2 dev hv scope link":                                              false,
		"fd00::2 dev hv metric 1024 pref medium":                                  false,
		"default via 10.9.0.1 dev up0 table 100":                                  false,
		"unreachable fe80::1 dev lo table 100 metric 4294967295 error 4294967183": false,
	} {
		if got := kernelMade.MatchString(route); got != left {
			t.Errorf("%q is left out: %v, want %v", route, got, left)
		}
	}
}

func TestPassingWordsOfRoutesAreLeftOut(t *testing.T) {
	got := passing.ReplaceAllString("10.1.0.2 dev hv scope link dead linkdown", "")
	if want := "10.1.0.2 dev hv scope link"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFlattenRuleset(t *testing.T) {
	got := flattenRuleset([]byte(`# Warning: table ip nat is managed by iptables-nft, do not touch!
table ip nat {
	chain POSTROUTING {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr 10.1.0.2 counter packets 7 bytes 420 jump CNI-1
	}

	chain CNI-1 {
	}
}
`))
	want := []string{
		"nft table ip nat",
		"nft table ip nat chain POSTROUTING",
		"nft table ip nat chain POSTROUTING: type nat hook postrouting priority srcnat; policy accept;",
		"nft table ip nat chain POSTROUTING: ip saddr 10.1.0.2 counter jump CNI-1",
		"nft table ip nat chain CNI-1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", Snapshot(got), Snapshot(want))
	}
}
