package doctor

import (
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
)

var key = attachment.Key{Network: "n", ContainerID: "p", IfName: "eth0"}

// clean is a node without any finding.
func clean() *Facts {
	return &Facts{
		Version: "v1", ConfDir: "/etc/cni/net.d", Picked: "/etc/cni/net.d/10-n.conflist",
		Lists: []List{{Path: "/etc/cni/net.d/10-n.conflist", Network: "n", CNIVersion: "1.1.0", Types: []string{"ptp", "portmap", "backstop"},
			Entries: []Entry{{At: 2, Journal: "/j", Probed: true}}}},
		Probes:   []Probe{{Path: "l", Address: "unix:///s", State: Answers, Answered: true}},
		Plugin:   Plugin{Path: "/opt/cni/bin/backstop", Needed: true, There: true, Executable: true, Version: "v1"},
		Journals: []Journal{{Path: "/j", There: true, Size: 100 << 30, Free: 50 << 30, Nodes: 1e6, FreeNodes: 9e5, Networks: []string{"n"}}},
		Records:  []Record{{Key: key, State: attachment.Attached, Life: attachment.Live, SinceDel: -1, Overdue: -1, CacheDir: "/var/lib/cni"}},
		Caches:   []Cache{{Dir: "/var/lib/cni", There: true, Entries: 1}},
		Veths:    []Veth{{Name: "veth1", Peer: 2, Away: true, Seen: true}},
		Kernel:   "6.1.0-18-amd64", Agents: 1,
	}
}

func TestCleanNodeHasNoFinding(t *testing.T) {
	if all := Examine(clean()); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}

// Each row makes one thing wrong, and must get that finding and no other.
var wrongs = []struct {
	id    string
	what  string
	spoil func(*Facts)
	says  string
}{
	{"BS001", "no list at all", func(f *Facts) { f.NoPick, f.Picked, f.Lists = "/etc/cni/net.d has no configuration yet", "", nil }, "has no configuration yet"},
	{"BS001", "no entry", func(f *Facts) { f.Lists[0].Entries, f.Lists[0].Types = nil, []string{"ptp"} }, "10-n.conflist, which the runtime picks, has no entry"},
	{"BS002", "another plugin behind it", func(f *Facts) { f.Lists[0].Types = append(f.Lists[0].Types, "bandwidth", "tuning") }, "plugin 3 of 5, bandwidth, tuning come after it"},
	{"BS003", "another list first", func(f *Facts) {
		f.Picked = "/etc/cni/net.d/05-x.conflist"
		f.Lists = append([]List{{Path: f.Picked, Network: "x", CNIVersion: "1.0.0", Types: []string{"bridge"}}}, f.Lists...)
	}, "picks /etc/cni/net.d/05-x.conflist, which comes before /etc/cni/net.d/10-n.conflist"},
	{"BS004", "a list of 1.0.0", func(f *Facts) { f.Lists[0].CNIVersion = "1.0.0" }, `cniVersion "1.0.0"`},
	{"BS005", "a bad value", func(f *Facts) { f.Lists[0].Entries[0].Problems = []string{"grace: 5: want a duration"} }, "values that cannot be used"},
	{"BS006", "an unknown key", func(f *Facts) { f.Lists[0].Entries[0].Unknown = []string{"primry"} }, "keys that this version ignores"},
	{"BS007", "a bad file", func(f *Facts) { f.BadFiles = []string{"/etc/cni/net.d/x.conf: not a network configuration"} }, "no network configuration"},
	{"BS008", "two networks", func(f *Facts) { f.Journals[0].Networks = []string{"n", "m"} }, "networks n, m are recorded in one journal"},
	{"BS009", "two journals", func(f *Facts) { f.Journals = append(f.Journals, Journal{Path: "/k", Networks: []string{"m"}}) }, "several journals"},
	{"BS010", "no socket", func(f *Facts) { f.Probes[0] = Probe{Path: "l", Address: "unix:///s", State: Missing} }, "nothing is there"},
	{"BS011", "nobody listens", func(f *Facts) { f.Probes[0] = Probe{Path: "l", Address: "unix:///s", State: Refused} }, "does not answer"},
	{"BS012", "no socket at all", func(f *Facts) {
		f.Probes = append(f.Probes, Probe{Path: "l", Address: "unix:///etc", State: WrongKind, Answered: true})
	}, "no such server"},
	{"BS020", "no binary", func(f *Facts) { f.Plugin = Plugin{Path: "/b/backstop", Needed: true} }, "/b/backstop is not there"},
	{"BS021", "not executable", func(f *Facts) { f.Plugin.Executable = false }, "not an executable file"},
	{"BS022", "another version", func(f *Facts) { f.Plugin.Version = "v0" }, "is version v0, this backstopctl is v1"},
	{"BS022", "no version", func(f *Facts) { f.Plugin.Version = "" }, "does not say its version"},
	{"BS030", "in memory", func(f *Facts) { f.Journals[0].FileSystem = "tmpfs" }, "/j is on tmpfs"},
	{"BS031", "a large disk at 1%", func(f *Facts) { f.Journals[0].Free = 1 << 30 }, "1024 MiB left of 102400"},
	{"BS031", "a small disk at 8%", func(f *Facts) { f.Journals[0].Size, f.Journals[0].Free = 100<<20, 8<<20 }, "8 MiB left of 100"},
	{"BS032", "no inodes", func(f *Facts) { f.Journals[0].FreeNodes = 12 }, "12 inodes left"},
	{"BS033", "damaged", func(f *Facts) { f.Journals[0].Damaged, f.Journals[0].Err = true, "/j: journal is damaged" }, "journal is damaged"},
	{"BS034", "newer", func(f *Facts) { f.Journals[0].Newer, f.Journals[0].Err = true, "/j: written by a newer backstop" }, "newer backstop"},
	{"BS035", "put aside", func(f *Facts) { f.Journals[0].Aside = []string{"/j.corrupt-1"} }, "put aside"},
	{"BS036", "waits", func(f *Facts) { f.Journals[0].Waiting = []Waiting{{File: "/j.spool/1.json", Age: time.Hour}} }, "wait to be stored"},
	{"BS036", "bad entry", func(f *Facts) { f.Journals[0].Waiting = []Waiting{{File: "/j.spool/1.json.bad", Bad: true}} }, "wait to be stored"},
	{"BS037", "mode", func(f *Facts) { f.Journals[0].Wrong = []string{"/j has mode 0644"} }, "owner and mode"},
	{"BS038", "undecoded", func(f *Facts) { f.Journals[0].Undecoded = `entry "n/p/eth0": no record` }, `entry "n/p/eth0"`},
	{"BS040", "owed", func(f *Facts) { f.Records[0].State, f.Records[0].SinceDel = attachment.Owed, 61*time.Minute }, "1 records are owed"},
	{"BS041", "deferred", func(f *Facts) { f.Records[0].State, f.Records[0].Overdue = attachment.Deferred, 16*time.Minute }, "nothing sweeps them"},
	{"BS041", "dead without DEL", func(f *Facts) { f.Records[0].Life, f.Records[0].Overdue = attachment.Dead, 16*time.Minute }, "nothing sweeps them"},
	{"BS050", "cache elsewhere", func(f *Facts) { f.Caches[0] = Cache{Dir: "/var/lib/cni"} }, "1 live attachments"},
	{"BS051", "stale entries", func(f *Facts) { f.Caches[0].Entries, f.Caches[0].Stale = 300, 100 }, "300 entries, 100 of dead attachments"},
	{"BS051", "huge", func(f *Facts) { f.Caches[0].Entries = 10000 }, "10000 entries"},
	{"BS052", "pods from before", func(f *Facts) { f.Caches[0].Unknown = []string{"n/q/eth0"} }, "1 live attachments are not recorded"},
	{"BS060", "peer nowhere", func(f *Facts) { f.Veths[0].Seen = false }, "1 veths lead nowhere"},
	{"BS060", "no peer", func(f *Facts) { f.Veths[0] = Veth{Name: "veth1"} }, "1 veths lead nowhere"},
	{"BS061", "rule of a dead pod", func(f *Facts) {
		f.Rules = []Rule{{Text: "r", Addr: netip.MustParseAddr("10.0.0.1"), Evidence: "of n/x/eth0"}}
	}, "1 rules are for addresses that nobody has"},
	{"BS062", "reservation", func(f *Facts) { f.Reservations = []Reservation{{File: "/n/10.0.0.1", Key: "n/x/eth0", Why: "unknown"}} }, "1 host-local holds"},
	{"BS070", "legacy", func(f *Facts) { f.Legacy = "the legacy iptables have a nat table here" }, "legacy"},
	{"BS071", "old", func(f *Facts) { f.Kernel = "4.19.0-26-amd64" }, "Linux 4.19"},
	{"BS072", "no agent", func(f *Facts) { f.Agents = 0 }, "no `backstopctl agent`"},
	{"BS090", "not root", func(f *Facts) { f.Unread = []string{"open /j: permission denied"} }, "not everything could be read"},
}

func TestEachFinding(t *testing.T) {
	made := map[string]bool{}
	for _, w := range wrongs {
		t.Run(w.id+" "+w.what, func(t *testing.T) {
			f := clean()
			w.spoil(f)
			all := Examine(f)
			if len(all) != 1 || all[0].ID != w.id {
				t.Fatalf("want %s alone, got %+v", w.id, all)
			}
			if !strings.Contains(all[0].Seen, w.says) {
				t.Errorf("%q does not say %q", all[0].Seen, w.says)
			}
			if all[0].Do == "" && w.id != "BS033" && w.id != "BS034" { // those are the journal's own words
				t.Error("it does not say what to do")
			}
			made[w.id] = true
			if Healthy(all) != (all[0].Severity == Note) {
				t.Error("a note alone is healthy, and nothing else is")
			}
		})
	}
	for _, k := range Kinds {
		if !made[k.ID] {
			t.Errorf("no row makes %s %s", k.ID, k.Name)
		}
	}
}

// What looks alike and is nobody's mistake.
func TestNothingIsFound(t *testing.T) {
	for what, f := range map[string]func(*Facts){
		"a VPN's rule":                          func(f *Facts) { f.Rules = []Rule{{Text: "r", Addr: netip.MustParseAddr("203.0.113.5")}} },
		"a live pod's rule":                     func(f *Facts) { f.Rules = []Rule{{Text: "r", Held: "record", Evidence: "in 10.0.0.0/8 of network n"}} },
		"a pair on the host":                    func(f *Facts) { f.Veths = []Veth{{Name: "a", Peer: 2}, {Name: "b", Peer: 1}} },
		"a recorded one, which verify tells of": func(f *Facts) { f.Veths[0].Seen, f.Veths[0].Recorded = false, true },
		"one of two probes answers": func(f *Facts) {
			f.Probes = append(f.Probes, Probe{Path: "l", Address: "tcp://127.0.0.1:50051", State: Refused, Answered: true})
		},
		"a probe without STATUS, but no probe":   func(f *Facts) { f.Lists[0].CNIVersion, f.Lists[0].Entries[0].Probed = "0.4.0", false },
		"a record that waits for a moment":       func(f *Facts) { f.Journals[0].Waiting = []Waiting{{File: "1.json", Age: time.Minute}} },
		"owed just now":                          func(f *Facts) { f.Records[0].State, f.Records[0].SinceDel = attachment.Owed, time.Minute },
		"owed and due, which is a replay's part": func(f *Facts) { f.Records[0].State, f.Records[0].Overdue = attachment.Owed, time.Hour },
		"a live one past its time":               func(f *Facts) { f.Records[0].Overdue = time.Hour },
		"records only": func(f *Facts) {
			f.Records[0].State, f.Records[0].Overdue, f.Records[0].Never = attachment.Deferred, time.Hour, true
		},
		"another list behind": func(f *Facts) {
			f.Lists = append(f.Lists, List{Path: "/etc/cni/net.d/87-podman.conflist", Network: "podman", CNIVersion: "0.4.0", Types: []string{"bridge"}})
		},
		"a small disk with room": func(f *Facts) { f.Journals[0].Size, f.Journals[0].Free = 100<<20, 40<<20 },
		"no list, no binary":     func(f *Facts) { f.Plugin = Plugin{Path: "/opt/cni/bin/backstop"} },
	} {
		t.Run(what, func(t *testing.T) {
			facts := clean()
			f(facts)
			if all := Examine(facts); len(all) > 0 {
				t.Errorf("%+v", all)
			}
		})
	}
}

func TestKernelReleases(t *testing.T) {
	for release, old := range map[string]bool{"4.18.0-553.el8_10.x86_64": true, "4.20.0": false, "5.4": false, "3.10.0-1160": true, "6.18.44-fc": false, "odd": false, "4.9-rc1": true} {
		if older(release, 4, 20) != old {
			t.Errorf("%s: older is %v", release, !old)
		}
	}
}

// The page and the code have the same ids, names and severities.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	var have, want []string
	for _, m := range regexp.MustCompile("(?m)^\\| (BS\\d{3}) \\| `([a-z-]+)` \\| (\\w+) \\| .{10,} \\| .{5,} \\|$").FindAllStringSubmatch(string(page), -1) {
		have = append(have, strings.Join(m[1:], " "))
	}
	for _, k := range Kinds {
		want = append(want, fmt.Sprint(k.ID, " ", k.Name, " ", k.Severity))
	}
	if strings.Join(have, "\n") != strings.Join(want, "\n") {
		t.Errorf("docs/doctor.md has\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}
