package testnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Node describes a throw-away node. The zero value is the usual one: everything in it is in memory.
type Node struct {
	// Disk puts /var/lib/cni on the machine's disk instead of memory, so that an fsync costs what it costs.
	Disk bool
}

// Command is a program to run in a node.
type Command struct {
	Args           []string // the program and its arguments
	Env            []string // added to the environment of the caller
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// furnish is what happens in the new namespaces before the program starts. The mount points are made on the
// machine itself where it has none: empty directories are all that a node leaves behind.
const furnish = `set -e
for d in /run /var/lib/cni /var/log /etc/cni; do
	mkdir -p "$d"
	mount -t tmpfs testnode "$d"
done
[ -z "$TESTNODE_DISK" ] || mount --bind "$TESTNODE_DISK" /var/lib/cni
mkdir -p /run/netns /etc/cni/net.d
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward
exec "$@"
`

// Exec runs a program in a new node and returns when the program has ended and the node with it.
func (n Node) Exec(ctx context.Context, c Command) error {
	if err := Prerequisites(); err != nil {
		return err
	}
	disk, release, err := n.disk()
	if err != nil {
		return err
	}
	defer release()

	// The parent-death signal follows the thread that started the process: stay on it until the process ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	args := append([]string{"-n", "-m", "-p", "-f", "--kill-child", "--mount-proc", "sh", "-c", furnish, "sh"}, c.Args...)
	cmd := exec.CommandContext(ctx, "unshare", args...)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin", "TESTNODE_DISK="+disk)
	cmd.Env = append(cmd.Env, c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s in a node: %w", c.Args[0], err)
	}
	return nil
}

// disk returns the directory that becomes the node's /var/lib/cni, "" for memory, and what removes it again.
func (n Node) disk() (dir string, release func(), err error) {
	if !n.Disk {
		return "", func() {}, nil
	}
	dir, err = os.MkdirTemp("/var/tmp", "backstop-node.")
	if err != nil {
		return "", nil, fmt.Errorf("making the node's directory on disk: %w", err)
	}
	return dir, func() { os.RemoveAll(dir) }, nil
}

// Prerequisites says what this machine lacks for a node, in words that tell what to install.
func Prerequisites() error {
	var missing []error
	if os.Geteuid() != 0 {
		missing = append(missing, errors.New("a node needs root: run this as root"))
	}
	for program, pkg := range map[string]string{"unshare": "util-linux", "mount": "mount", "ip": "iproute2"} {
		if err := NeedProgram(program, pkg); err != nil {
			missing = append(missing, err)
		}
	}
	return errors.Join(missing...)
}

// NeedProgram says which Debian package to install when a program is missing.
func NeedProgram(program, pkg string) error {
	if _, err := lookPath(program); err != nil {
		return fmt.Errorf("%s is missing: apt-get install %s: %w", program, pkg, err)
	}
	return nil
}

// lookPath finds a program, also where an ordinary user's PATH does not lead.
func lookPath(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin/", "/sbin/"} {
		if path, err := exec.LookPath(dir + program); err == nil {
			return path, nil
		}
	}
	return "", err
}
