package testnode

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

func TestNodeIsItsOwn(t *testing.T) {
	Run(t, func(t *testing.T) {
		s, err := View{}.Take()
		if err != nil {
			t.Fatal(err)
		}
		links := s.Matching(regexp.MustCompile(`^link `))
		if len(links) != 1 || !strings.HasPrefix(links[0], "link lo ") || !strings.HasSuffix(links[0], " up") {
			t.Errorf("a new node has the links\n%s", links)
		}
		for _, dir := range []string{"/run/netns", "/var/lib/cni", "/etc/cni/net.d", "/var/log"} {
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) > 0 {
				t.Errorf("%s of a new node: %v, %v; want it there and empty", dir, entries, err)
			}
		}
		if os.Getpid() != 1 {
			t.Errorf("pid %d: the node has no pid namespace of its own", os.Getpid())
		}
	})
}

func TestNodeOnDisk(t *testing.T) {
	Node{Disk: true}.Run(t, func(t *testing.T) {
		out, err := exec.Command("stat", "-f", "-c", "%T", "/var/lib/cni").Output()
		if err != nil {
			t.Fatal(err)
		}
		if kind := strings.TrimSpace(string(out)); kind == "tmpfs" {
			t.Errorf("/var/lib/cni is on %s: /var/tmp of this machine is no disk, and costs measured there mean nothing", kind)
		}
	})
}

func TestSnapshotShowsWhatIsMade(t *testing.T) {
	Run(t, func(t *testing.T) {
		before := take(t)
		for _, args := range []string{
			"link add hv type veth peer name eth0",
			"link set hv up",
			"link set eth0 up",
			"addr add 10.9.0.1/24 dev hv",
			"route add 10.9.1.2/32 dev hv table 100",
			"-6 route add fd09::2/128 dev hv",
			"rule add pref 512 to 10.9.1.2 lookup main",
			"-6 rule add pref 1536 from fd09::2 lookup 100",
			"neigh add 10.9.0.7 lladdr 02:00:00:00:00:07 dev hv nud permanent",
		} {
			ip(t, args)
		}
		made := take(t)
		for _, pattern := range []string{
			`^link hv index \d+ kind veth .* up$`,
			`^addr hv 10\.9\.0\.1/24 scope global$`,
			`^route4 10\.9\.1\.2 dev hv table 100 scope link$`,
			`^route6 fd09::2 dev hv metric 1024 pref medium$`,
			`^rule4 512: from all to 10\.9\.1\.2 lookup main$`,
			`^rule6 1536: from fd09::2 lookup 100$`,
			`^neigh 10\.9\.0\.7 dev hv lladdr 02:00:00:00:00:07 PERMANENT$`,
		} {
			if len(made.Matching(regexp.MustCompile(pattern))) != 1 {
				t.Errorf("not exactly once in the snapshot: %s\n%s", pattern, made)
			}
		}
		ip(t, "link del hv")
		ip(t, "rule del pref 512 to 10.9.1.2")
		ip(t, "-6 rule del pref 1536 from fd09::2")
		if diff := Diff(before, take(t)); diff != "" {
			t.Errorf("all was removed again, and yet:\n%s", diff)
		}
	})
}

func TestExecReportsFailure(t *testing.T) {
	var exit *exec.ExitError
	err := Node{}.Exec(t.Context(), Command{Args: []string{"sh", "-c", "exit 7"}})
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("a program that exits with 7 in a node: %v", err)
	}
}

func TestPassedWantsAPass(t *testing.T) {
	for output, ok := range map[string]bool{
		"=== RUN   TestA/b\n    --- PASS: TestA/b (0.01s)\nPASS\n": true,
		"testing: warning: no tests to run\nPASS\n":                false,
		"    --- SKIP: TestA/b (0.01s)\nPASS\n":                    false,
		"    --- PASS: TestA/bc (0.01s)\nPASS\n":                   false,
	} {
		if err := passed("TestA/b", output); (err == nil) != ok {
			t.Errorf("%q: %v", output, err)
		}
	}
}

func TestExactlyNamesOneTest(t *testing.T) {
	if got, want := exactly("TestA/a.b#01"), `^TestA$/^a\.b#01$`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func take(t *testing.T) Snapshot {
	t.Helper()
	s, err := View{}.Take()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ip(t *testing.T, args string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", args, err, out)
	}
}
