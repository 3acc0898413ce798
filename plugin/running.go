package plugin

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/backstop-cni/backstop/attachment"
)

// anotherDel reports whether another process is at a DEL of the attachment: a plugin of its list, or backstop itself.
// Runtimes send several DELs at once, and a primary that is still at the first one has not failed. The environment says it
// (CNI spec, "Parameters"); a process that may not be looked at is passed over, and so is whoever called this one: a meta
// plugin has the same environment.
func anotherDel(k attachment.Key) bool {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	own := ancestors(os.Getpid())
	for _, d := range dirs {
		if slices.Contains(own, filepath.Base(d)) {
			continue
		}
		env, err := os.ReadFile(d + "/environ")
		if err == nil && has(env, "CNI_COMMAND=DEL") && has(env, "CNI_CONTAINERID="+k.ContainerID) && has(env, "CNI_IFNAME="+k.IfName) {
			return true
		}
	}
	return false
}

// has looks for a variable in a process's environment (proc_pid_environ(5)).
func has(environ []byte, variable string) bool {
	for v := range bytes.SplitSeq(environ, []byte{0}) {
		if string(v) == variable {
			return true
		}
	}
	return false
}

// ancestors are a process and those that it descends from.
func ancestors(pid int) (out []string) {
	for pid > 0 && len(out) < 64 {
		out = append(out, strconv.Itoa(pid))
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return out
		}
		// pid (comm) state ppid, and comm may hold anything (proc_pid_stat(5))
		pid = 0
		if f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]); len(f) > 1 {
			pid, _ = strconv.Atoi(string(f[1]))
		}
	}
	return out
}
