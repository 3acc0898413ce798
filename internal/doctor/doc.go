// Package doctor looks at everything that backstop depends on, and says what is wrong and what to do. Facts are gathered
// first, by reading alone; each check is a function of them.
package doctor

import "slices"

// Severity says how much a finding matters.
type Severity string

const (
	Problem Severity = "problem" // backstop does not do its work, or not for long
	Warning Severity = "warning" // something is left to a person
	Note    Severity = "note"    // worth knowing
)

// Kind is a finding that can be made. Its id never changes its meaning.
type Kind struct {
	ID       string
	Name     string
	Severity Severity
}

// Finding is one that was made.
type Finding struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Severity Severity `json:"severity"`
	Seen     string   `json:"seen"`             // what was seen, and where
	Things   []string `json:"things,omitempty"` // each of them, where there are many
	Do       string   `json:"do"`               // what to do
}

// Kinds are all findings, in the order of their ids. docs/doctor.md has the same table.
var Kinds = []Kind{
	{"BS001", "no-entry", Problem},
	{"BS002", "not-last", Problem},
	{"BS003", "other-list-first", Problem},
	{"BS004", "no-status", Note},
	{"BS005", "bad-value", Problem},
	{"BS006", "unknown-key", Warning},
	{"BS007", "bad-file", Warning},
	{"BS008", "shared-journal", Note},
	{"BS009", "several-journals", Note},
	{"BS010", "probe-missing", Warning},
	{"BS011", "probe-refused", Warning},
	{"BS012", "probe-wrong-kind", Problem},
	{"BS020", "plugin-missing", Problem},
	{"BS021", "plugin-not-executable", Problem},
	{"BS022", "plugin-version", Warning},
	{"BS030", "journal-in-memory", Problem},
	{"BS031", "disk-full", Problem},
	{"BS032", "inodes-full", Problem},
	{"BS033", "journal-unreadable", Problem},
	{"BS034", "journal-newer", Problem},
	{"BS035", "journal-put-aside", Warning},
	{"BS036", "spool-waits", Warning},
	{"BS037", "permissions", Problem},
	{"BS038", "records-unreadable", Warning},
	{"BS040", "owed-long", Warning},
	{"BS041", "not-swept", Warning},
	{"BS050", "cache-missing", Warning},
	{"BS051", "cache-stale", Warning},
	{"BS052", "not-recorded", Note},
	{"BS060", "orphan-veth", Warning},
	{"BS061", "orphan-rule", Warning},
	{"BS062", "orphan-reservation", Warning},
	{"BS070", "legacy-iptables", Note},
	{"BS071", "old-kernel", Warning},
	{"BS072", "no-agent", Note},
	{"BS090", "not-read", Warning},
}

// found makes a finding of a kind.
func found(id, seen, do string, things ...string) Finding {
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.ID == id })
	k := Kinds[i] // a test makes each
	return Finding{ID: id, Name: k.Name, Severity: k.Severity, Seen: seen, Do: do, Things: things}
}

// checks are all of them, each for the findings that its name says.
var checks = []func(*Facts) []Finding{
	checkPicked, checkOrder, checkStatus, checkValues, checkFiles, checkNetworks, checkProbes, checkPlugin,
	checkDisk, checkJournal, checkAside, checkSpool, checkPermissions, checkOwed, checkSwept,
	checkCaches, checkUnrecorded, checkVeths, checkRules, checkReservations, checkKernel, checkAgent, checkRead,
}

// Examine gives what the facts say, in the order of the ids.
func Examine(f *Facts) []Finding {
	out := []Finding{}
	for _, check := range checks {
		out = append(out, check(f)...)
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		switch {
		case a.ID < b.ID:
			return -1
		case a.ID > b.ID:
			return 1
		}
		return 0
	})
	return out
}

// Healthy reports whether there is nothing but notes.
func Healthy(all []Finding) bool {
	return !slices.ContainsFunc(all, func(f Finding) bool { return f.Severity != Note })
}
