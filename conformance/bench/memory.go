package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// memory is what a call and the programs' files take.
type memory struct{ rows [][]string }

func (g *memory) at(_ *node, r *report, o options, s state) error {
	if s != empty && s != full {
		return nil
	}
	peak, err := peakOfAdd()
	if err != nil {
		return err
	}
	g.row(r, fmt.Sprintf("memory of an ADD beside %d attachments", s), peak, 10)
	if s != full {
		return nil
	}
	for _, p := range []struct {
		name string
		bar  float64
	}{{"backstop", 5}, {"backstopctl", 0}} {
		fi, err := os.Stat(o.programs.Backstop + "/" + p.name)
		if err != nil {
			return fmt.Errorf("size of %s: %w", p.name, err)
		}
		g.row(r, "file "+p.name, fi.Size(), p.bar)
	}
	return nil
}

func (g *memory) row(r *report, what string, bytes int64, bar float64) {
	b, verdict := r.judge("MB of "+what, float64(bytes)/1e6, bar)
	if b != "" {
		b += " MB"
	}
	g.rows = append(g.rows, []string{what, mb(bytes), b, verdict})
}

func (g *memory) table() table {
	return table{title: "Size", header: []string{"what", "size", "bar", ""}, rows: g.rows,
		note: "Peak resident memory (VmHWM) of the plugin's process at its end; the files as `make build` makes them."}
}

func mb(bytes int64) string { return fmt.Sprintf("%.2f MB", float64(bytes)/1e6) }

// peakOfAdd holds the plugin where it writes its result, which is the last thing that it does, and looks.
// getrusage(2) would not do: its figure begins with what the parent had.
func peakOfAdd() (int64, error) {
	p := pod(1)
	cmd, err := (plugin{name: "backstop"}).command("ADD", "memory", p.netns(), p.result("10.9.2.2"))
	if err != nil {
		return 0, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer out.Close()
	if err := fillPipe(in); err != nil {
		return 0, fmt.Errorf("filling a pipe: %w", err)
	}
	cmd.Stdout = in
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	in.Close()
	pid := cmd.Process.Pid
	for end := time.Now().Add(10 * time.Second); ; {
		// The result is written by the main thread, with write(1, …): system call 1 on amd64, 64 on arm64.
		now, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
		if err == nil && strings.HasPrefix(string(now), fmt.Sprintf("%d 0x1 ", unix.SYS_WRITE)) {
			break
		}
		if time.Now().After(end) {
			return 0, fmt.Errorf("the plugin wrote no result: %s", now)
		}
	}
	peak, err := highWater(pid)
	go io.Copy(io.Discard, out)
	if werr := cmd.Wait(); err == nil && werr != nil {
		err = fmt.Errorf("ADD: %w", werr)
	}
	return peak, err
}

// fillPipe leaves no room in a pipe.
func fillPipe(in *os.File) error {
	size, err := unix.FcntlInt(in.Fd(), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		return err
	}
	_, err = unix.Write(int(in.Fd()), make([]byte, size))
	return err
}

func highWater(pid int) (int64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if kb, ok := strings.CutPrefix(s.Text(), "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(kb), " kB"), 10, 64)
			return n * 1024, err
		}
	}
	return 0, fmt.Errorf("no VmHWM for process %d", pid)
}
