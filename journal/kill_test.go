package journal

import (
	"context"
	"fmt"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

// commit puts one record after the other and says which are acknowledged, until
// it is killed.
func commit(j *Journal, args []string) error {
	for i := 0; ; i++ {
		r := rec(fmt.Sprintf("%s-%d", args[0], i), "10.0.0.2", "veth1", 12)
		err := j.UpdateWithin(context.Background(), patience, func(tx *Tx) error {
			if old, err := tx.Get(key(fmt.Sprintf("%s-%d", args[0], i-1))); err == nil && old != nil && i%3 == 0 {
				old.State = attachment.Closed // pages are freed and used again
				if err := tx.Put(old); err != nil {
					return err
				}
			}
			return tx.Put(r)
		})
		if err != nil {
			return err
		}
		fmt.Println(r.ContainerID)
	}
}

// Cancellation of a plugin is SIGKILL.
func TestSIGKILLLosesNoAcknowledgedRecord(t *testing.T) {
	j := newJournal(t)
	acknowledged := map[string]bool{}
	for round, lines := range []int{0, 1, 4, 9, 16} {
		a, b := start(t, "commit", j, fmt.Sprintf("a%d", round)), start(t, "commit", j, fmt.Sprintf("b%d", round))
		for range lines {
			acknowledged[a.line(t)] = true
		}
		for _, p := range []*process{a, b} {
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range []*process{a, b} {
			for p.out.Scan() { // what it said before it died
				acknowledged[p.out.Text()] = true
			}
			_ = p.Wait()
		}
		there := map[string]bool{}
		view(t, j, func(tx *Tx) error {
			note := func(r *attachment.Record) error { there[r.ContainerID] = true; return nil }
			if err := tx.Each(note); err != nil {
				t.Error(err)
			}
			return tx.History(note)
		})
		for id := range acknowledged {
			if !there[id] {
				t.Errorf("round %d: %s was acknowledged and is lost", round, id)
			}
		}
		if j.Exists() {
			rebuilt(t, j, fmt.Sprintf("round %d", round))
		}
	}
}
