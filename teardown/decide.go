package teardown

// Mode is the configuration's "teardown".
type Mode string

const (
	Unreachable Mode = "unreachable" // the default: only when the primary is away
	Always      Mode = "always"      // at once, whether or not the primary is there
	Never       Mode = "never"       // record only
)

// Probe is what asking the primary gave.
type Probe string

const (
	NotConfigured Probe = "not configured"
	Reachable     Probe = "reachable"
	Away          Probe = "unreachable"
)

// Action is what a DEL does.
type Action string

const (
	Nothing  Action = "nothing"   // success, and nothing to remember
	Defer    Action = "defer"     // step aside for the primary and look again after the grace
	TearDown Action = "tear down" // remove now
)

// Situation is what a DEL finds.
type Situation struct {
	Mode          Mode
	Probe         Probe
	HaveRecord    bool
	HaveResult    bool // prevResult on stdin
	DelCount      int  // DELs so far, this one included
	EscalateAfter int
	// Running says that another DEL of the attachment has not finished: it has not failed either.
	Running bool
	// Doubtful says that the DEL names another network than the record, and the attachment is not dead.
	Doubtful bool
}

// MayEscalate reports whether so many DELs came that the primary is taken not to finish.
func (s Situation) MayEscalate() bool {
	return s.Mode == Unreachable && s.Probe == Reachable && s.EscalateAfter > 0 && s.DelCount >= s.EscalateAfter
}

// Decision is what the DEL then does, and why, in words for the log.
type Decision struct {
	Action Action
	// Record says that there is none yet: it is made from prevResult and the kernel first.
	Record bool
	// IfLeft limits a teardown to resources that are really still there.
	IfLeft bool
	Why    string
}

// Decide is the table of "What DEL decides" in the design.
func Decide(s Situation) Decision {
	switch {
	case !s.HaveRecord && (!s.HaveResult || s.Mode == Never):
		return Decision{Action: Nothing, Why: "nothing is recorded of this attachment"}
	case !s.HaveRecord && s.Mode == Unreachable && s.Probe != Away:
		return Decision{Action: Nothing, Why: "nothing is recorded and the primary is there to do it"}
	case s.Doubtful:
		return Decision{Action: Defer, Why: "the DEL is another network's, and the attachment is not dead"}
	case s.Mode == Always:
		return Decision{Action: TearDown, Record: !s.HaveRecord, Why: `teardown is "always"`}
	case s.Mode == Never:
		return Decision{Action: Defer, Why: `teardown is "never"`}
	case s.Probe == Away:
		return Decision{Action: TearDown, Record: !s.HaveRecord, Why: "the primary is unreachable"}
	case s.MayEscalate() && s.Running:
		return Decision{Action: Defer, Why: "the primary is reachable, and another DEL is under way"}
	case s.MayEscalate():
		return Decision{Action: TearDown, IfLeft: true, Why: "the primary answers but does not finish"}
	case s.Probe == NotConfigured:
		return Decision{Action: Defer, Why: "no probe is configured: the primary works by itself"}
	}
	return Decision{Action: Defer, Why: "the primary is reachable"}
}
