package damage

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/internal/testnode"
	"github.com/backstop-cni/backstop/journal"
)

// TestDamage plays each damage: what backstopctl says of it, an ADD that has to fail for it, one that has not to, CHECK and
// DEL meanwhile, the way back, and that nothing is left in the node in the end. Two nodes share the work.
func TestDamage(t *testing.T) {
	t.Parallel()
	const nodes = 2
	t.Run("nodes", func(t *testing.T) {
		for n := range nodes {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				testnode.Run(t, func(t *testing.T) {
					sh(t, "mount -t tmpfs damage /root") // for what is put out of the way
					empty := kernel(t)
					for i := n; i < len(damages); i += nodes {
						t.Run(damages[i].name, func(t *testing.T) { store(t, i, damages[i].play(t, empty)) })
					}
				})
			})
		}
	})
	if !inNode && !t.Failed() {
		compare(t)
	}
}

// told is what came of a damage.
type told struct {
	CLI, Fail, Warn said
	Export          int // exit code
}

func (d damage) play(t *testing.T, empty string) told {
	d.set(t)
	defer d.clear(t)
	var got told
	got.CLI = start(t, "", nil, "backstopctl", "journal", "check")
	got.Export = start(t, "", nil, "backstopctl", "journal", "export").Code
	if got.CLI.Code != d.check {
		t.Errorf("journal check: exit code %d, want %d:\n%s%s", got.CLI.Code, d.check, got.CLI.Stdout, got.CLI.Stderr)
	}
	newer.dress(t)
	if got.Fail = d.mustFail(t); d.fails {
		got.Warn = newer.cni(t, "ADD", "")
	} else {
		got.Warn = got.Fail // nothing came to where they differ
	}
	d.started(t, got.Warn)
	if d.fails { // and is shown, whatever else cannot be read
		s := start(t, "", nil, "backstopctl", "list")
		if !regexp.MustCompile(`(?m)^n +q .* waits to be stored: /`).MatchString(s.Stdout) {
			t.Errorf("backstopctl list does not show what waits: %s%s", s.Stdout, s.Stderr)
		}
	}
	if s := newer.cni(t, "CHECK", ""); s.Code != 0 {
		t.Errorf("CHECK: %s", s.Stdout)
	}
	if s := older.cni(t, "CHECK", ""); s.Code != 0 && !d.fresh {
		t.Errorf("CHECK of the older pod: %s", s.Stdout)
	}
	if s := newer.cni(t, "DEL", ""); s.Code != 0 {
		t.Errorf("DEL: %s", s.Stdout)
	}
	if d.record == "journal" || d.record == "anew" {
		if k := kernel(t); strings.Contains(k, newer.address) {
			t.Errorf("after DEL:\n%s", k)
		}
	}
	if d.recover != "" {
		sh(t, d.recover)
	}
	d.recovered(t)
	for _, p := range []pod{older, newer} {
		if s := p.cni(t, "DEL", ""); s.Code != 0 || strings.Contains(s.Stderr, `"error"`) {
			t.Errorf("DEL of %s after recovery: %s%s", p.id, s.Stdout, s.Stderr)
		}
		p.remove()
	}
	if k := kernel(t); k != empty {
		t.Errorf("in the end the node has\n%s\nand had\n%s", k, empty)
	}
	return got
}

// set makes the node of before, with the older pod, and the damage.
func (d damage) set(t *testing.T) {
	t.Helper()
	sh(t, "mkdir -m 700 "+dir)
	if d.stage != "" {
		sh(t, d.stage)
	}
	older.dress(t)
	if !d.fresh {
		if s := older.cni(t, "ADD", ""); s.Code != 0 || s.Stderr != "" {
			t.Fatalf("ADD before: %s%s", s.Stdout, s.Stderr)
		}
		if d.stage != "" && !d.holes { // it is the second change that gives the file its blocks
			older.cni(t, "ADD", "")
		}
	}
	d.make(t)
}

// clear takes all of it away.
func (d damage) clear(t *testing.T) {
	t.Helper()
	older.remove()
	newer.remove()
	sh(t, "chattr -i "+dir+" "+file+" 2>/dev/null || true; umount "+dir+" 2>/dev/null || true; rm -rf "+dir+" "+journal.FallbackDir+" /root/* /run/ext4")
}

// mustFail is an ADD that has to fail where nothing can be recorded: it names the file, and changes nothing.
func (d damage) mustFail(t *testing.T) said {
	t.Helper()
	node, disk, held := kernel(t), files(t), start(t, "", nil, "backstopctl", "journal", "export")
	s := newer.cni(t, "ADD", `,"onJournalError":"fail"`)
	if (s.Code != 0) != d.fails {
		t.Errorf(`ADD with "fail": exit code %d, %s%s`, s.Code, s.Stdout, s.Stderr)
	}
	if k := kernel(t); k != node {
		t.Errorf("an ADD with \"fail\" made of\n%s\nthis:\n%s", node, k)
	}
	if !d.fails {
		return s
	}
	if now := files(t); now != disk {
		t.Errorf("an ADD that failed made of\n%s\nthis:\n%s", disk, now)
	}
	if now := start(t, "", nil, "backstopctl", "journal", "export"); now != held {
		t.Errorf("an ADD that failed made of\n%s\nthis:\n%s", held.Stdout, now.Stdout)
	}
	if !strings.Contains(s.Stdout, file) {
		t.Errorf("the error does not name the journal: %s", s.Stdout)
	}
	return s
}

// started wants the new pod's record where the contract has it, and a word about it in the log.
func (d damage) started(t *testing.T, s said) {
	t.Helper()
	if s.Code != 0 {
		t.Fatalf("ADD: %s%s", s.Stdout, s.Stderr)
	}
	want := d.record
	if want == "anew" {
		want = "journal"
	}
	if at := where(t, newer); at != want {
		t.Errorf("the new pod's record is in the %s, want %s\n%s", at, want, s.Stderr)
	}
	if (s.Stderr == "") != (d.record == "journal") {
		t.Errorf("the log says %q", s.Stderr)
	}
}

// recovered wants a sound journal with the older pod in it.
func (d damage) recovered(t *testing.T) {
	t.Helper()
	if s := start(t, "", nil, "backstopctl", "journal", "check"); s.Code != 0 || strings.Contains(s.Stdout, "wait") {
		t.Errorf("journal check after recovery: exit code %d, %s%s", s.Code, s.Stdout, s.Stderr)
	}
	if got := listed(t)[older.id]; (got == "") != (d.loses || d.fresh) {
		t.Errorf("after recovery the older pod is %q", got)
	}
}
