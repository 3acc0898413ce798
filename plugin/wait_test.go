package plugin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/testnode"
)

// A DEL that waits for the primary keeps nobody from the journal, and ends when the primary answers.
func TestDelWaitsForThePrimary(t *testing.T) {
	testnode.Run(t, func(t *testing.T) {
		waits := func(wait string) string {
			return strings.Replace(dressed, `"primary":{`, fmt.Sprintf(`"primary":{"wait":%q,`, wait), 1)
		}
		dressWithRules(t)
		if out, log, ok := invoke(t, "ADD", dressed); !ok {
			t.Fatal(out, log)
		}
		full := view(t)
		began := time.Now()
		ended := make(chan bool)
		go func() {
			out, log, ok := invoke(t, "DEL", waits("1m"))
			ended <- ok && out == "" && log == ""
		}()
		// It would be refused the journal, and say so, if that were locked for the time.
		for i := range 3 {
			other := fmt.Sprint("CNI_CONTAINERID=other", i)
			if out, log, ok := invoke(t, "ADD", strings.ReplaceAll(dressed, "10.9.9.9", "10.9.8.7"), other); !ok || strings.Contains(log, "not recorded") {
				t.Errorf("an ADD beside it: %v, %s%s", ok, out, log)
			}
		}
		select {
		case <-ended:
			t.Fatal("the DEL did not wait")
		default:
		}
		accepting(t, "/run/none.sock")
		if !<-ended || time.Since(began) > 30*time.Second {
			t.Errorf("the DEL failed, or it ended only after %v", time.Since(began))
		}
		if r := recorded(t); r.State != attachment.Deferred {
			t.Errorf("the record is %s, the primary was there in time", r.State)
		}
		if diff := testnode.Diff(full, view(t)); diff != "" {
			t.Errorf("the node changed by\n%s", diff)
		}
	})
}

// It never comes: the DEL waits for as long as it is told to, and cleans up by itself then.
func TestDelWaitsInVain(t *testing.T) {
	testnode.Run(t, func(t *testing.T) {
		before := view(t)
		dressWithRules(t)
		if out, log, ok := invoke(t, "ADD", dressed); !ok {
			t.Fatal(out, log)
		}
		const wait = time.Second
		began := time.Now()
		if out, log, ok := invoke(t, "DEL", strings.Replace(dressed, `"primary":{`, `"primary":{"wait":"1s",`, 1)); !ok || out != "" || log != "" {
			t.Error(ok, out, log)
		}
		if took := time.Since(began); took < wait*8/10 || took > 20*wait {
			t.Errorf("the DEL took %v, told to wait for %v", took, wait)
		}
		if diff := testnode.Diff(before, view(t)); diff != "" || recorded(t).State != attachment.Owed {
			t.Errorf("left:\n%s", diff)
		}
	})
}
