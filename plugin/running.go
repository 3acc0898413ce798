package plugin

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"github.com/backstop-cni/backstop/attachment"
)

// anotherDel reports whether another process is at a DEL of the attachment: a plugin of its list, or backstop itself.
// Runtimes send several DELs at once, and a primary that is still at the first one has not failed. The environment says it
// (CNI spec, "Parameters"); a process that may not be looked at is passed over.
func anotherDel(k attachment.Key) bool {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		if filepath.Base(d) == strconv.Itoa(os.Getpid()) {
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
