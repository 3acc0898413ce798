package crashtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// act is a situation with one call in it that is killed.
type act struct {
	name  string
	fresh bool // on a journal of its own, which is not there yet
	play  func(*trial) error
	// points are those that the short run kills it at.
	points string
}

var acts = []act{
	{name: "ADD", points: "plugin.begun plugin.opened add.captured add.stored add.committed add.healed journal.commit journal.committing journal.committed", play: func(t *trial) error {
		p, err := t.pod("n")
		return errors.Join(err, t.addVictim(p))
	}},
	{name: "ADD that waits", points: "lock.waiting spool.begun spool.written spool.renamed spool.drop", play: addThatWaits},
	{name: "ADD beside what waits", points: "takein.placed takein.committed takein.removed spool.locked", fresh: true, play: takeIn("ADD")},
	{name: "ADD over a dead pod's rules", play: addOverDead},
	{name: "first ADDs", points: "begin.before begin.written begin.renamed", fresh: true, play: func(t *trial) error { return t.together(func() error { return nil }) }},
	{name: "ADD that cannot store", points: "spool.keep spool.synced", fresh: true, play: addThatCannotStore},
	{name: "DEL, primary away", points: "lock.wanted lock.held del.probed teardown.intended teardown.planned teardown.released teardown.settled remove.before remove.after release.removed", play: func(t *trial) error {
		p, err := t.attached("n")
		return errors.Join(err, t.delVictim(p))
	}},
	{name: "DEL, primary up", points: "del.deferred", play: func(t *trial) error {
		p, err := t.attached("n")
		return errors.Join(err, p.up(), t.delVictim(p))
	}},
	{name: "DEL without a record", play: func(t *trial) error {
		p, err := t.pod("n")
		return errors.Join(err, t.delVictim(p))
	}},
	{name: "DEL beside what waits", fresh: true, play: takeIn("DEL")},
	{name: "sweep", points: "sweep.decided", play: sweep},
	{name: "sweep beside what waits", fresh: true, play: takeIn("sweep")},
	{name: "teardown of a network", points: "group.marked group.compared group.removed", play: teardownNetwork},
	{name: "replay", points: "replay.begun replay.private replay.acknowledged replay.told", play: replay},
	{name: "compaction", points: "compact.copying compact.copied compact.renamed", play: func(t *trial) error {
		return t.victim(t.ctl(t.death, t.journal, "journal", "compact"))
	}},
	{name: "ADD, damaged journal", points: "quarantine.adopted quarantine.filled quarantine.aside quarantine.renamed", play: damaged("ADD")},
	{name: "DEL, damaged journal", play: damaged("DEL")},
}

// hold takes the journal's lock, as another call would.
func hold(journal string) (release func(), err error) {
	f, err := os.OpenFile(journal+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	return func() { f.Close() }, err
}

// spooled waits until a call has put its record into the spool, or has ended.
func spooled(c *call, journal string) error {
	return testnode.Until(patience, func() error {
		if found, _ := filepath.Glob(fmt.Sprintf("%s.spool/*-%d.json", journal, c.cmd.Process.Pid)); len(found) > 0 || len(c.ended) > 0 {
			return nil
		}
		return errors.New("nothing in the spool")
	})
}

func addThatWaits(t *trial) error {
	p, err := t.pod("n")
	if err != nil {
		return err
	}
	release, err := hold(t.journal)
	defer release()
	if err != nil {
		return err
	}
	c, err := t.verb(t.death, "ADD", p)
	if err != nil {
		return err
	}
	err = spooled(c, t.journal)
	release()
	if err = errors.Join(err, t.victim(c, nil)); err == nil && !t.verdict.died {
		err = t.added(p)
	}
	return err
}

// takeIn has a call killed that finds records in the spool: one whose process was killed, and one whose process waits
// behind it and is told by the entry's end that it is stored.
func takeIn(what string) func(*trial) error {
	return func(t *trial) error {
		there, err := t.attached("n")
		if err != nil {
			return err
		}
		dead, derr := t.pod("n")
		next, nerr := t.pod("n")
		behind, berr := t.pod("n")
		release, err := hold(t.journal)
		defer release()
		if err = errors.Join(derr, nerr, berr, err); err != nil {
			return err
		}
		c, err := t.verb(death{point: "spool.renamed", pass: 1}, "ADD", dead)
		if err != nil {
			return err
		}
		if died, err := c.wait(); err != nil || !died {
			return fmt.Errorf("the ADD that should die in the spool: died %v, %w", died, err)
		}
		switch what {
		case "ADD":
			c, err = t.verb(t.death, "ADD", next)
		case "DEL":
			t.ending(there)
			c, err = t.verb(t.death, "DEL", there)
		default:
			c, err = t.ctl(t.death, t.journal, "sweep", "--yes")
		}
		if err == nil {
			err = waits(c, t.journal)
		}
		if err != nil {
			return err
		}
		second, err := t.verb(death{}, "ADD", behind)
		if err == nil {
			err = spooled(second, t.journal)
		}
		release()
		if err = errors.Join(err, t.victim(c, nil)); err == nil && what == "ADD" && !t.verdict.died {
			err = t.added(next)
		}
		return errors.Join(err, works(second, nil), t.added(behind))
	}
}

// waits waits until a call waits for the lock, as the kernel lists it ("->" in proc(5)'s /proc/locks), or has ended.
func waits(c *call, journal string) error {
	var lock unix.Stat_t
	if err := unix.Stat(journal+".lock", &lock); err != nil {
		return err
	}
	return testnode.Until(patience, func() error {
		list, err := os.ReadFile("/proc/locks")
		if err != nil || len(c.ended) > 0 {
			return err
		}
		for line := range strings.Lines(string(list)) {
			if strings.Contains(line, "->") && strings.Contains(line, fmt.Sprintf(" %d ", c.cmd.Process.Pid)) && strings.Contains(line, fmt.Sprintf(":%d ", lock.Ino)) {
				return nil
			}
		}
		return errors.New("it does not wait for the journal")
	})
}

// addOverDead: a pod died, its veth went, its rules are there, and the next pod gets its address.
func addOverDead(t *trial) error {
	dead := t.newPod(0, "n", t.journal)
	dead.to, dead.from = 513, 1537
	t.pods = append(t.pods, dead)
	if err := errors.Join(dead.dress(), t.add(dead)); err != nil {
		return err
	}
	t.ending(dead)
	if err := errors.Join(ip("", "link del "+dead.link), dead.up(), works(t.verb(death{}, "DEL", dead)), dead.down()); err != nil {
		return err
	}
	p := t.newPod(0, "n", t.journal)
	t.pods = append(t.pods, p)
	return errors.Join(p.dress(), t.addVictim(p))
}

// together has the victim's ADD and two others at once on a journal that is not there yet.
func (t *trial) together(meanwhile func() error) error {
	var calls []*call
	var err error
	for range 3 {
		_, perr := t.pod("n")
		err = errors.Join(err, perr)
	}
	for i, p := range t.pods {
		d := death{}
		if i == 0 {
			d = t.death
		}
		c, cerr := t.verb(d, "ADD", p)
		if err = errors.Join(err, cerr); err != nil {
			return err
		}
		calls = append(calls, c)
	}
	if verr := t.victim(calls[0], nil); verr != nil {
		return verr
	}
	if !t.verdict.died {
		err = t.added(t.pods[0])
	}
	for i, c := range calls[1:] {
		err = errors.Join(err, works(c, nil), t.added(t.pods[i+1]))
	}
	return errors.Join(err, meanwhile())
}

// addThatCannotStore: what stands in the journal's place is no file, until after the kill.
func addThatCannotStore(t *trial) error {
	if err := errors.Join(os.Mkdir(filepath.Dir(t.journal), 0o700), os.Mkdir(t.journal, 0o700)); err != nil {
		return err
	}
	return t.together(func() error { return os.Remove(t.journal) })
}

// sweep: pods whose primary said that it had finished, and left everything.
func sweep(t *trial) error {
	for range 3 {
		p, err := t.attached("n")
		if err != nil {
			return err
		}
		t.ending(p)
		if err := errors.Join(p.up(), works(t.verb(death{}, "DEL", p)), p.down(), p.uncache()); err != nil {
			return err
		}
	}
	return t.victim(t.ctl(t.death, t.journal, "sweep", "--yes"))
}

func teardownNetwork(t *trial) error {
	for range 5 {
		if _, err := t.attached("g"); err != nil {
			return err
		}
	}
	for _, p := range t.pods {
		t.ending(p)
	}
	return t.victim(t.ctl(t.death, t.journal, "teardown", "--network", "g", "--yes"))
}

// replay: the primary is back and is told of a DEL that it missed; the one that is killed has to be told again.
func replay(t *trial) error {
	p, err := t.attached("n")
	if err != nil {
		return err
	}
	t.ending(p)
	if err := errors.Join(works(t.verb(death{}, "DEL", p)), p.up(), ignoreMissing(os.Remove(toldFile))); err != nil {
		return err
	}
	if err := t.victim(t.ctl(t.death, t.journal, "replay", p.key().String(), "--yes")); err != nil {
		return err
	}
	if _, err := os.Lstat(p.cacheFile()); err == nil { // not settled: the next one does
		if err := works(t.ctl(death{}, t.journal, "replay", "--yes", p.key().String())); err != nil {
			return err
		}
	}
	told, err := os.ReadFile(toldFile)
	if err == nil && !strings.Contains(string(told), p.id) {
		err = fmt.Errorf("nobody told the primary of %s", p.id)
	}
	return err
}

// damaged has the call killed that finds the journal damaged. What the runtime's cache knows has to be in the next one.
func damaged(verb string) func(*trial) error {
	return func(t *trial) error {
		p, err := t.pod("n")
		if err == nil && verb == "DEL" {
			err = t.add(p)
		}
		if err != nil {
			return err
		}
		if _, err := t.attached("n"); err != nil {
			return err
		}
		if err := t.damage(); err != nil {
			return err
		}
		if verb == "ADD" {
			err = t.addVictim(p)
		} else {
			err = t.delVictim(p)
		}
		aside, _ := filepath.Glob(t.journal + ".corrupt-*")
		for _, f := range aside { // where the killed one had linked it only, the next one does so again
			err = errors.Join(err, ignoreMissing(os.Remove(f)))
		}
		return err
	}
}

// damage overwrites both meta pages, or cuts off everything. No worker's pod lives meanwhile: its ADD may be stored and not yet in the
// runtime's cache.
func (t *trial) damage() error {
	t.gate.Lock()
	defer t.gate.Unlock()
	if t.rand.IntN(3) == 0 {
		return os.Truncate(t.journal, 0)
	}
	f, err := os.OpenFile(t.journal, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt([]byte(strings.Repeat("damage", 2000)), 0)
	return err
}
