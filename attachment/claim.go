package attachment

import "slices"

// Claim is the part of a record that says whether its attachment is live. The
// journal's indexes carry it, so that asking needs no record.
//
//easyjson:json
type Claim struct {
	Key
	State   State       `json:"state"`
	Node    Node        `json:"node"`
	Netns   string      `json:"netns,omitempty"`
	NetnsID NamespaceID `json:"netnsID"`
	DelSeen bool        `json:"delSeen,omitempty"`
	// Torn says that a teardown was begun: what is still there of it proves no life.
	Torn bool `json:"torn,omitempty"`
	// Links are the own links on the host that go when the pod's netns goes: while
	// one is there, so is the pod. An ifb proves nothing, it stays behind.
	Links []Link `json:"links,omitempty"`
}

// Claim gives the record's claim.
func (r *Record) Claim() Claim {
	return Claim{Key: r.Key, State: r.State, Node: r.Node, Netns: r.Netns, NetnsID: r.NetnsID,
		DelSeen: r.State != Attached && !r.Doubtful(), Torn: r.Attempts > 0, Links: slices.DeleteFunc(r.OwnLinks(), func(l Link) bool { return !l.goesWithPod() })}
}

// Life is an answer to "is this attachment live?".
type Life string

const (
	Live    Life = "live"
	Dead    Life = "dead"
	Unknown Life = "unknown" // could not be read: never taken as dead
)

// Sight is what could be seen of an attachment from where one stands.
type Sight struct {
	// Netns is what stands at the recorded path: its id, zero when nothing is there.
	Netns NamespaceID
	// NetnsUnknown says that the path could not be read, or means something else here.
	NetnsUnknown bool
	// Links are the claim's links that still exist by identity.
	Links []Link
	// LinksUnknown says that the kernel could not be asked.
	LinksUnknown bool
}

// Judge decides the liveness of a claim (design: "Safety", rule 3): live while it
// has seen no DEL and its netns is the recorded one, or while an own link still
// exists by identity. A teardown that was begun ends it.
func (c Claim) Judge(here Node, s Sight) Life {
	if c.Node.Now.BootID != here.Now.BootID || c.Node.Netns != here.Netns {
		return Dead // another boot, or another node's journal: nothing of it can be here
	}
	if c.Torn {
		return Dead // and claims nothing: one that still held its pod's rules would hand them to the next pod
	}
	if len(s.Links) > 0 {
		return Live
	}
	if s.LinksUnknown {
		return Unknown
	}
	if c.DelSeen {
		return Dead
	}
	if s.NetnsUnknown || c.NetnsID.IsZero() {
		if len(c.Links) > 0 {
			return Dead // its own link went, and links go with their netns
		}
		if !s.NetnsUnknown && s.Netns.IsZero() {
			return Dead // whatever its netns was, nothing is there: it went before the ADD could read it
		}
		return Unknown
	}
	if s.Netns == c.NetnsID {
		return Live
	}
	return Dead
}
