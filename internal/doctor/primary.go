package doctor

import "fmt"

// checkProbes: what does not answer. One that does is enough for its entry; a probe of the wrong kind is wrong in any case.
func checkProbes(f *Facts) (out []Finding) {
	for _, p := range f.Probes {
		where := fmt.Sprintf("%s: probe %s", p.Path, p.Address)
		switch {
		case p.State == WrongKind:
			out = append(out, found("BS012", where+" leads to something that is no such server: the primary counts as away for ever, and each DEL is torn down", "give the address that the primary's own CNI plugin talks to, see the README's table"))
		case p.Answered:
		case p.State == Missing:
			out = append(out, found("BS010", where+": nothing is there. The primary is down, or its socket is elsewhere; DELs are torn down meanwhile", "start the primary's daemon, or correct the address"))
		case p.State == Refused:
			out = append(out, found("BS011", where+" does not answer: the primary is down or stuck; DELs are torn down meanwhile", "look at the primary's daemon and its logs; `backstopctl replay` once it is back"))
		}
	}
	return out
}

// checkPlugin: the binary that the lists name.
func checkPlugin(f *Facts) []Finding {
	p := f.Plugin
	switch {
	case !p.Needed:
	case !p.There:
		return []Finding{found("BS020", p.Path+" is not there, and a list names it: every ADD and DEL fails", "`backstopctl install`, or name the runtime's directory with --bin-dir")}
	case !p.Executable:
		return []Finding{found("BS021", p.Path+" is not an executable file: every ADD and DEL fails", "`backstopctl install`, or chmod 0755")}
	case p.Version != f.Version:
		has := "does not say its version"
		if p.Version != "" {
			has = "is version " + p.Version
		}
		return []Finding{found("BS022", fmt.Sprintf("%s %s, this backstopctl is %s", p.Path, has, f.Version), "install both from one build")}
	}
	return nil
}
