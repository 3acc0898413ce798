package journal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

// helpers are what the test binary does when it is started as another process.
// Each gets the journal and its further arguments.
var helpers = map[string]func(*Journal, []string) error{
	"hold": hold, "count": count, "commit": commit,
}

const helperEnv = "BACKSTOP_JOURNAL_TEST_HELPER"

func TestMain(m *testing.M) {
	args := strings.Split(os.Getenv(helperEnv), "\n")
	if helper := helpers[args[0]]; helper != nil {
		if err := helper(At(args[1]), args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is the test binary at work as a helper.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, name string, j *Journal, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command("/proc/self/exe")}
	p.Env = append(os.Environ(), helperEnv+"="+strings.Join(append([]string{name, j.Path()}, args...), "\n"))
	p.Stderr = os.Stderr
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewScanner(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	return p
}

// line waits for the helper's next line.
func (p *process) line(t *testing.T) string {
	t.Helper()
	if !p.out.Scan() {
		t.Fatalf("the helper ended: %v", p.out.Err())
	}
	return p.out.Text()
}

// hold keeps the lock until its input ends.
func hold(j *Journal, _ []string) error {
	s, err := j.LockWithin(context.Background(), patience)
	if err != nil {
		return err
	}
	defer s.Unlock()
	fmt.Println("held")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// count adds to a record's number of attempts, each time with a session of its
// own in which it reads first and writes then.
func count(j *Journal, args []string) error {
	times, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for range times {
		if err := increment(j); err != nil {
			return err
		}
	}
	return nil
}

func increment(j *Journal) error {
	s, err := j.LockWithin(context.Background(), patience)
	if err != nil {
		return err
	}
	defer s.Unlock()
	var r *attachment.Record
	if err := s.View(func(tx *Tx) (err error) { r, err = tx.Get(key("counter")); return err }); err != nil {
		return err
	}
	r.Attempts++
	return s.Update(func(tx *Tx) error { return tx.Put(r) })
}

// Reading, removing and writing the outcome are one session: nobody may come in
// between, in the same process or in another.
func TestSessionsOfManyProcessesAreInARow(t *testing.T) {
	const processes, goroutines, times = 3, 3, 8
	j := newJournal(t)
	put(t, j, rec("counter", "10.0.0.2", "veth1", 12))
	var others []*process
	for range processes {
		others = append(others, start(t, "count", j, fmt.Sprint(times)))
	}
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			if err := count(j, []string{fmt.Sprint(times)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, p := range others {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	view(t, j, func(tx *Tx) error {
		r, err := tx.Get(key("counter"))
		if want := (processes + goroutines) * times; err != nil || r.Attempts != want {
			t.Errorf("counted to %d, %v; want %d", r.Attempts, err, want)
		}
		return nil
	})
}

// The first pods of a node start together.
func TestManyBeginAJournalAtOnce(t *testing.T) {
	const many = 8
	j := newJournal(t)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			err := j.UpdateWithin(context.Background(), patience, func(tx *Tx) error {
				return tx.Put(rec(fmt.Sprintf("c%d", i), "10.0.0.2", "veth1", 12))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := 0
	view(t, j, func(tx *Tx) error { return tx.Each(func(*attachment.Record) error { n++; return nil }) })
	if n != many {
		t.Errorf("%d records, want %d", n, many)
	}
}
