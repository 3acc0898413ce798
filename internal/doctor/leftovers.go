package doctor

import (
	"fmt"

	"github.com/backstop-cni/backstop/attachment"
)

// staleLimit and entryLimit are where a cache becomes a burden: each look at it reads every file.
const (
	staleLimit = 100
	entryLimit = 10000
)

// checkCaches: the runtime's result caches.
func checkCaches(f *Facts) (out []Finding) {
	for _, c := range f.Caches {
		live := 0
		for _, r := range f.Records {
			if r.CacheDir == c.Dir && r.Life == attachment.Live && r.State == attachment.Attached {
				live++
			}
		}
		if !c.There && live > 0 {
			out = append(out, found("BS050", fmt.Sprintf("%s/results is not there, and %d live attachments are recorded: the runtime keeps its cache elsewhere, and backstop cannot tell whether a DEL finished", c.Dir, live),
				`name the runtime's cache directory in the entry's key "runtimeCacheDir"`))
		}
		if c.Stale >= staleLimit || c.Entries >= entryLimit {
			out = append(out, found("BS051", fmt.Sprintf("%s/results has %d entries, %d of dead attachments", c.Dir, c.Entries, c.Stale), "`backstopctl gc --runtime-cache`"))
		}
	}
	return out
}

// checkUnrecorded: pods from before the install.
func checkUnrecorded(f *Facts) []Finding {
	var things []string
	for _, c := range f.Caches {
		things = append(things, c.Unknown...)
	}
	if len(things) == 0 {
		return nil
	}
	return []Finding{found("BS052", fmt.Sprintf("%d live attachments are not recorded: they were there before backstop was", len(things)), "`backstopctl adopt`", things...)}
}

// checkVeths: host ends without a pod.
func checkVeths(f *Facts) []Finding {
	var things []string
	for _, v := range f.Veths {
		switch {
		case v.Recorded, v.Peer != 0 && (!v.Away || v.Seen):
		case v.Peer == 0:
			things = append(things, v.Name+", which has no other end")
		default:
			things = append(things, v.Name+", whose other end is in a network namespace that no process and no mount has")
		}
	}
	return some("BS060", "veths lead nowhere, and no record has them", "look (ip -d link show NAME), then ip link del NAME", things)
}

// checkRules: rules for addresses of pods that are gone.
func checkRules(f *Facts) []Finding {
	var things []string
	for _, r := range f.Rules {
		if r.Held == "" && r.Evidence != "" {
			things = append(things, fmt.Sprintf("%s (%s)", r.Text, r.Evidence))
		}
	}
	return some("BS061", "rules are for addresses that nobody has: they send the next pod with one of them wrong", "look (ip rule), then ip rule del with the same words", things)
}

// checkReservations: addresses that IPAM never gets back.
func checkReservations(f *Facts) []Finding {
	var things []string
	for _, r := range f.Reservations {
		things = append(things, fmt.Sprintf("%s of %s: %s", r.File, r.Key, r.Why))
	}
	return some("BS062", "host-local holds addresses of containers that nothing else knows", "`backstopctl gc` releases those of dead pods; of those that nothing knows remove the files by hand when `crictl pods` does not have them either", things)
}

func some(id, seen, do string, things []string) []Finding {
	if len(things) == 0 {
		return nil
	}
	return []Finding{found(id, fmt.Sprintf("%d %s", len(things), seen), do, things...)}
}

// checkKernel: what the kernel does not give.
func checkKernel(f *Facts) (out []Finding) {
	if f.Legacy != "" {
		out = append(out, found("BS070", f.Legacy, "nothing, if no plugin uses them; else move the node to iptables-nft"))
	}
	if older(f.Kernel, 4, 20) {
		out = append(out, found("BS071", fmt.Sprintf("Linux %s has no filters for listings (4.20): each pod's start reads all routes and neighbours", f.Kernel), "update the kernel where pods start slowly"))
	}
	return out
}

// older reads a release such as 6.1.0-18-amd64; one that cannot be read is not old.
func older(release string, major, minor int) bool {
	var x, y int
	if n, _ := fmt.Sscanf(release, "%d.%d", &x, &y); n < 2 {
		return false
	}
	return x < major || x == major && y < minor
}

// checkAgent: whether anything sweeps and replays by itself.
func checkAgent(f *Facts) []Finding {
	if f.Agents > 0 {
		return nil
	}
	return []Finding{found("BS072", "no `backstopctl agent` runs: sweeps happen at the end of ADDs and DELs alone, and nothing replays", "run the agent, or a timer with `backstopctl sweep --yes` and `backstopctl replay --automatic --yes`")}
}

// checkRead: what this run could not look at.
func checkRead(f *Facts) []Finding {
	if len(f.Unread) == 0 {
		return nil
	}
	return []Finding{found("BS090", "not everything could be read: what is wrong there is not told", "run it as root, on the host itself", f.Unread...)}
}
