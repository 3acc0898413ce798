package doctor

import (
	"fmt"
	"slices"
	"strings"

	cniversion "github.com/containernetworking/cni/pkg/version"
)

// checkPicked: the list that the runtime would pick has no entry.
func checkPicked(f *Facts) (out []Finding) {
	if f.NoPick != "" {
		return []Finding{found("BS001", f.NoPick, "install the primary CNI, then `backstopctl install`; or name the right directory with --conf-dir")}
	}
	i := slices.IndexFunc(f.Lists, func(l List) bool { return l.Path == f.Picked })
	if i < 0 || len(f.Lists[i].Entries) > 0 {
		return nil
	}
	for _, l := range f.Lists {
		if len(l.Entries) > 0 && strings.HasSuffix(l.Path, ".conflist") {
			return []Finding{found("BS003", fmt.Sprintf("the runtime picks %s, which comes before %s: backstop's entry is in the second", f.Picked, l.Path),
				fmt.Sprintf("`backstopctl install` puts an entry into %s; or remove that file, or give it a name that comes later", f.Picked))}
		}
	}
	return []Finding{found("BS001", fmt.Sprintf("%s, which the runtime picks, has no entry of backstop", f.Picked), "`backstopctl install`")}
}

// checkOrder: backstop is not the last plugin.
func checkOrder(f *Facts) (out []Finding) {
	for _, l := range f.Lists {
		for _, e := range l.Entries {
			if e.At < len(l.Types)-1 {
				out = append(out, found("BS002", fmt.Sprintf("%s: backstop is plugin %d of %d, %s come after it: what they make is not recorded", l.Path, e.At+1, len(l.Types), strings.Join(l.Types[e.At+1:], ", ")),
					"`backstopctl uninstall` and then `backstopctl install`, or move the entry to the end by hand"))
			}
		}
	}
	return out
}

// checkStatus: the list's version has no STATUS (CNI spec 1.1), so that no runtime asks whether the primary is there.
func checkStatus(f *Facts) (out []Finding) {
	for _, l := range f.Lists {
		probed := slices.ContainsFunc(l.Entries, func(e Entry) bool { return e.Probed })
		if old, err := cniversion.GreaterThanOrEqualTo(l.CNIVersion, "1.1.0"); probed && (err != nil || !old) {
			out = append(out, found("BS004", fmt.Sprintf("%s has cniVersion %q: runtimes call STATUS from 1.1.0 on, and so start pods while the primary is away", l.Path, l.CNIVersion),
				"set cniVersion 1.1.0 where the runtime (containerd 2, CRI-O 1.31) and the other plugins know it; else nothing: DEL does not depend on it"))
		}
	}
	return out
}

// checkValues: what of an entry's keys cannot be used, or is not known.
func checkValues(f *Facts) (out []Finding) {
	for _, l := range f.Lists {
		for _, e := range l.Entries {
			if len(e.Problems) > 0 {
				out = append(out, found("BS005", fmt.Sprintf("%s: backstop's entry has values that cannot be used, each ADD fails", l.Path), "correct them, see the README's table of keys", e.Problems...))
			}
			if len(e.Unknown) > 0 {
				out = append(out, found("BS006", fmt.Sprintf("%s: backstop's entry has keys that this version ignores", l.Path), "correct the spelling, or install the backstop that knows them", e.Unknown...))
			}
		}
	}
	return out
}

// checkFiles: files that no runtime can use.
func checkFiles(f *Facts) []Finding {
	if len(f.BadFiles) == 0 {
		return nil
	}
	return []Finding{found("BS007", fmt.Sprintf("files in %s are no network configuration", f.ConfDir), "correct or remove them: a runtime may fail on them, or pick another list", f.BadFiles...)}
}

// checkNetworks: who shares a journal with whom.
func checkNetworks(f *Facts) (out []Finding) {
	used := 0
	for _, j := range f.Journals {
		if len(j.Networks) > 0 {
			used++
		}
		if len(j.Networks) > 1 {
			out = append(out, found("BS008", fmt.Sprintf("networks %s are recorded in one journal, %s", strings.Join(j.Networks, ", "), j.Path), "nothing, if that is meant: their records keep apart by the network's name"))
		}
	}
	if used > 1 {
		var paths []string
		for _, j := range f.Journals {
			paths = append(paths, j.Path)
		}
		out = append(out, found("BS009", "the conflists name several journals: each command needs --journal, and no record of one is seen from another", "name one journal in all, unless that is meant", paths...))
	}
	return out
}
