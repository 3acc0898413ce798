package doctor

import (
	"net/netip"
	"time"

	"github.com/backstop-cni/backstop/attachment"
)

// Facts is what was read. Fields that could not be are left empty, and Unread says so.
type Facts struct {
	Version  string // of this program
	ConfDir  string
	Lists    []List
	BadFiles []string // with their errors
	Picked   string   // path of the list that the runtime would use; "": none
	NoPick   string   // why there is none

	Probes   []Probe
	Plugin   Plugin
	Journals []Journal
	Records  []Record
	Caches   []Cache

	Veths        []Veth
	Rules        []Rule
	Reservations []Reservation

	Legacy string // what netfilter.Legacy says
	Kernel string // release
	Agents int    // running
	Unread []string
}

// List is a configuration of the directory, in the runtime's order.
type List struct {
	Path, Network string
	CNIVersion    string // the highest
	Types         []string
	Entries       []Entry
}

// Entry is backstop's own in a list.
type Entry struct {
	At       int // in Types
	Journal  string
	Probed   bool
	Problems []string
	Unknown  []string
}

// Probe is one address of an entry, and what answered.
type Probe struct {
	Path, Address string
	State         ProbeState
	// Answered says that another probe of the same entry did: one is enough.
	Answered bool
}

// ProbeState is what a probe found.
type ProbeState string

const (
	Answers   ProbeState = "answers"
	Missing   ProbeState = "missing"
	Refused   ProbeState = "refused"
	WrongKind ProbeState = "wrong kind"
)

// Plugin is the binary that the runtime would start.
type Plugin struct {
	Path       string
	Needed     bool // a list has an entry
	There      bool
	Executable bool
	Version    string // "": it would not say
}

// Journal is one that an entry names, or the default.
type Journal struct {
	Path             string
	There            bool
	FileSystem       string // its type, where that is in memory
	Free, Size       uint64 // bytes of the file system; Size 0: unknown
	FreeNodes, Nodes uint64
	Damaged, Newer   bool
	Err              string // why it cannot be read
	Advice           string
	Aside            []string // damaged ones that were put aside
	Waiting          []Waiting
	Wrong            []string // what is wrong with owner and mode
	Undecoded        string
	Networks         []string // whose entries name it
}

// Waiting is a record, or what is left of one, in a spool.
type Waiting struct {
	File string
	Age  time.Duration
	Bad  bool
}

// Record is what is used of an open record.
type Record struct {
	Key      attachment.Key
	State    attachment.State
	Life     attachment.Life
	SinceDel time.Duration // -1: none
	Overdue  time.Duration // since a sweep should have looked at it; negative: not yet
	Never    bool          // teardown is "never"
	CacheDir string
}

// Cache is a runtime's.
type Cache struct {
	Dir     string
	There   bool
	Entries int
	Stale   int      // of attachments that are dead
	Unknown []string // live attachments that no record has, of networks with an entry
}

// Veth is one on the host.
type Veth struct {
	Name     string
	Peer     int  // 0: none
	Away     bool // the peer is in another network namespace
	Seen     bool // which somebody has: a process or a mount
	Recorded bool
}

// Rule is one for single addresses.
type Rule struct {
	Text     string
	Addr     netip.Addr
	Held     string // who has the address: an interface, a route, a record; "": nobody
	Evidence string // what says that it was a pod's; "": nothing
}

// Reservation is one of host-local's that no live attachment is known to have.
type Reservation struct {
	File, Key string
	Dead      bool
	Why       string
}
