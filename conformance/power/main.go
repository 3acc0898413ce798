// Power cuts the power under backstop: a kernel of its own (user-mode-linux) with an ext4 disk has pods come and go with
// the real plugin, and is killed at a moment that nobody chose. After the next boot the journal has to be sound, every
// ADD that was acknowledged has to be in it, and no DEL that was acknowledged may be undone.
//
// `make power` at the top builds what it needs and runs it; docs/robustness.md says what a killed guest proves.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "guest" {
		if err := guest(os.Stdout); err != nil {
			fmt.Println("GUEST", err)
		}
		return
	}
	l := lab{}
	flag.StringVar(&l.programs, "bin", "../bin", "directory of backstop and backstopctl")
	flag.StringVar(&l.uml, "uml", "bin/uml", "directory with the unpacked user-mode-linux")
	cuts := flag.Int("cuts", 50, "how often the power is cut")
	seed := flag.Uint64("seed", 1, "chooses the moments")
	longest := flag.Duration("longest", 6*time.Second, "how long after the first acknowledgement a cut may come")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	all, err := l.cuts(ctx, *cuts, *longest, rand.New(rand.NewPCG(*seed, 0)))
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAILED:", err)
		stop()
		os.Exit(1)
	}
	fmt.Printf("seed %d\n%s", *seed, all)
	if all.faulty() {
		os.Exit(1)
	}
}

// atOnce is how many guests there are at a time.
const atOnce = 2

// cuts cuts so often, each at a moment before the longest, and prints what is wrong as it comes.
func (l lab) cuts(ctx context.Context, times int, longest time.Duration, r *rand.Rand) (results, error) {
	all, errs := make(results, times), make([]error, times)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for n := range times {
		after := time.Duration(r.Int64N(int64(longest)))
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if all[n], errs[n] = l.cut(ctx, after); errs[n] != nil {
				errs[n] = fmt.Errorf("cut %d: %w", n+1, errs[n])
				stop()
			}
			for _, f := range all[n].faults {
				fmt.Printf("cut %d: %s\n", n+1, f)
			}
		})
	}
	group.Wait()
	return all, errors.Join(errs...)
}
