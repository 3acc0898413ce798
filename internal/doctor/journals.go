package doctor

import (
	"fmt"
	"slices"
	"time"

	"github.com/backstop-cni/backstop/attachment"
)

// How little room is too little: the journal of a node with 10,000 records takes some tens of megabytes.
const (
	leastBytes   = 64 << 20
	leastPercent = 2
	leastNodes   = 1000
)

// checkDisk: where the journal is.
func checkDisk(f *Facts) (out []Finding) {
	for _, j := range f.Journals {
		if j.FileSystem != "" {
			out = append(out, found("BS030", fmt.Sprintf("%s is on %s, which a reboot empties: addresses that are owed then stay reserved for ever", j.Path, j.FileSystem), `name a place on disk in the entry's key "journal"`))
		}
		if j.nearlyFull() {
			out = append(out, found("BS031", fmt.Sprintf("the disk of %s has %d MiB left of %d", j.Path, j.Free>>20, j.Size>>20), "make room; records wait in the spool when nothing can be written"))
		}
		if j.Nodes > 0 && j.FreeNodes < leastNodes && j.FreeNodes*100 < j.Nodes*leastPercent {
			out = append(out, found("BS032", fmt.Sprintf("the disk of %s has %d inodes left of %d", j.Path, j.FreeNodes, j.Nodes), "remove small files: df -i tells, and `backstopctl gc --runtime-cache` removes stale cache entries"))
		}
	}
	return out
}

// nearlyFull: a small disk has little left before it is a small part of it.
func (j Journal) nearlyFull() bool {
	return j.Size > 0 && (j.Free*100 < j.Size*leastPercent || j.Free < leastBytes && j.Free*10 < j.Size)
}

// checkJournal: whether it can be read.
func checkJournal(f *Facts) (out []Finding) {
	for _, j := range f.Journals {
		switch {
		case j.Newer:
			out = append(out, found("BS034", j.Err, j.Advice))
		case j.Damaged:
			out = append(out, found("BS033", j.Err, j.Advice))
		case j.Err != "":
			out = append(out, found("BS033", j.Path+" cannot be read: "+j.Err, j.Advice))
		}
		if j.Undecoded != "" {
			out = append(out, found("BS038", fmt.Sprintf("%s has records that cannot be read: %s", j.Path, j.Undecoded), "`backstopctl journal check` tells more; `journal export` keeps what can be read"))
		}
	}
	return out
}

// checkAside: what is left of damaged journals.
func checkAside(f *Facts) (out []Finding) {
	for _, j := range f.Journals {
		if len(j.Aside) > 0 {
			out = append(out, found("BS035", fmt.Sprintf("%s was damaged, put aside and begun anew", j.Path),
				"`backstopctl --journal FILE journal export --show-secrets >records.json`, `backstopctl journal import records.json`, then remove the file; and look at the disk", j.Aside...))
		}
	}
	return out
}

// waitsLong is when a record in the spool should have been taken in.
const waitsLong = 10 * time.Minute

// checkSpool: records that nobody has stored.
func checkSpool(f *Facts) (out []Finding) {
	for _, j := range f.Journals {
		var things []string
		for _, w := range j.Waiting {
			switch {
			case w.Bad:
				things = append(things, w.File+", which could not be read")
			case w.Age > waitsLong:
				things = append(things, fmt.Sprintf("%s, for %s", w.File, w.Age.Round(time.Minute)))
			}
		}
		if len(things) > 0 {
			out = append(out, found("BS036", fmt.Sprintf("records wait to be stored in %s", j.Path), "`backstopctl journal check` says what keeps them; `backstopctl sweep --yes` takes them in; remove those that end in .bad after a look", things...))
		}
	}
	return out
}

// checkPermissions: who else could read or change the journal.
func checkPermissions(f *Facts) (out []Finding) {
	for _, j := range f.Journals {
		if len(j.Wrong) > 0 {
			out = append(out, found("BS037", fmt.Sprintf("owner and mode of %s are not what they should be: it has secrets of pods, and says what is removed", j.Path), "chown root, chmod 0700 the directory and 0600 the files", j.Wrong...))
		}
	}
	return out
}

const (
	owedLong = time.Hour
	lateLong = 15 * time.Minute
)

// checkOwed: what no primary has acknowledged for long.
func checkOwed(f *Facts) []Finding {
	return about(f, func(r Record) bool { return r.State == attachment.Owed && r.SinceDel > owedLong }, func(things []string) Finding {
		return found("BS040", fmt.Sprintf("%d records are owed for more than %s: the primary has not acknowledged their DEL, its addresses may be reserved", len(things), owedLong),
			"`backstopctl replay`, and see what keeps it", things...)
	})
}

// checkSwept: what a sweep should have looked at.
func checkSwept(f *Facts) []Finding {
	return about(f, func(r Record) bool {
		return !r.Never && r.Overdue > lateLong && (r.State == attachment.Deferred || r.State == attachment.Tearing || r.State == attachment.Attached && r.Life == attachment.Dead)
	}, func(things []string) Finding {
		return found("BS041", fmt.Sprintf("%d records are past their grace for more than %s, and nothing sweeps them", len(things), lateLong),
			"`backstopctl sweep`; leave `backstopctl agent` running, or a timer", things...)
	})
}

func about(f *Facts, which func(Record) bool, make func([]string) Finding) []Finding {
	var things []string
	for _, r := range f.Records {
		if which(r) {
			things = append(things, r.Key.String())
		}
	}
	if len(things) == 0 {
		return nil
	}
	slices.Sort(things)
	return []Finding{make(things)}
}
