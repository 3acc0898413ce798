// Package uml runs a script on a kernel of its own: user-mode-linux, Debian's package, with the machine's files as its
// root. conformance/aws needs a kernel with vlan links, conformance/power one that can be killed.
package uml

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Guest is one boot.
type Guest struct {
	// Dir is where the packages user-mode-linux and busybox-static are unpacked: conformance/bin/uml.
	Dir string
	// Memory as the kernel's parameter mem= has it.
	Memory string
	// Modules are loaded in this order, before the script; what is built in is passed over.
	Modules []string
	// Env is exported to the script, and PATH is what it is here.
	Env []string
	// Script is run by sh as the only process, with an empty tmpfs on /mnt: each start of a program out of the machine's
	// files takes long. The guest is powered off at its end.
	Script string
	// Disk is a file that is /dev/ubda in the guest; none if empty.
	Disk string
	// Stdout gets the guest's console.
	Stdout io.Writer
}

// begin is what comes before the script.
const begin = `#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs none /mnt
ip link set lo up
for m in $MODULES; do "$UML"/bin/busybox insmod "$m" 2>/dev/null; done
`

// end powers off.
const end = "\necho o >/proc/sysrq-trigger\nsleep 5\n"

// Run boots the guest and returns when it is off, or when ctx ends: then it is killed, in the middle of whatever it is
// at. home is an empty directory of the guest's, for what the kernel keeps on the machine.
func (g Guest) Run(ctx context.Context, home string) error {
	dir, err := filepath.Abs(g.Dir)
	if err != nil {
		return fmt.Errorf("user-mode-linux: %w", err)
	}
	modules, err := find(dir, g.Modules)
	if err != nil {
		return err
	}
	export := []string{"UML=" + dir, "MODULES=" + strings.Join(modules, " "), "PATH=" + os.Getenv("PATH") + ":/usr/sbin:/usr/bin:/sbin:/bin"}
	var set strings.Builder
	for _, kv := range append(export, g.Env...) {
		name, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&set, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	shebang, rest, _ := strings.Cut(begin, "\n")
	init := filepath.Join(home, "init")
	if err := os.WriteFile(init, []byte(shebang+"\n"+set.String()+rest+g.Script+end), 0o755); err != nil {
		return fmt.Errorf("user-mode-linux: %w", err)
	}
	args := []string{"mem=" + g.Memory, "uml_dir=" + home + "/", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw",
		"init=" + init, "con=null", "con0=null,fd:1", "ssl=null", "quiet"}
	if g.Disk != "" {
		args = append(args, "ubd0="+g.Disk)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "usr/bin/linux.uml"), args...)
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.Stdout = g.Stdout
	// Its processes are the machine's: they hold the output and the disk open.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("user-mode-linux: %w", err)
	}
	return nil
}

// find gives the modules' files. The guest would take long to look for them.
func find(dir string, modules []string) (paths []string, err error) {
	files := map[string]string{}
	err = filepath.WalkDir(filepath.Join(dir, "usr/lib/uml/modules"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[strings.TrimSuffix(filepath.Base(path), ".ko")] = path
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for modules of user-mode-linux: %w", err)
	}
	for _, m := range modules {
		if files[m] != "" {
			paths = append(paths, files[m])
		}
	}
	return paths, nil
}
