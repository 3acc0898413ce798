package plugin

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/testnode"
	"golang.org/x/sys/unix"
)

// Times in records are CLOCK_BOOTTIME, which goes on while the machine sleeps and which nobody sets. A time namespace
// tells it from CLOCK_MONOTONIC: in there it alone is a day ahead.
func TestRecordsHoldTheBootClock(t *testing.T) {
	testnode.Run(t, func(t *testing.T) {
		const ahead = 24 * time.Hour
		dress(t)
		began := bootClock(t)
		for _, verb := range []string{"ADD", "DEL"} {
			c := exec.Command("unshare", "--time", "--boottime", "86400", "backstop")
			c.Env = append(c.Environ(), "CNI_COMMAND="+verb, "CNI_CONTAINERID=c1", "CNI_NETNS=/run/netns/p", "CNI_IFNAME=eth0", "CNI_PATH=/opt/cni/bin")
			c.Stdin = strings.NewReader(strings.Replace(dressed, `"primary":{"probe":["unix:///run/none.sock"]}`, `"grace":"1h"`, 1))
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%s a day ahead: %v: %s", verb, err, out)
			}
		}
		ended := bootClock(t)
		r := recorded(t)
		if r == nil || r.State != attachment.Deferred {
			t.Fatalf("the record: %+v", r)
		}
		for what, m := range map[string]time.Duration{
			"the ADD": r.Node.Now.BootTime - ahead, "the DEL": r.Del.Last.BootTime - ahead, "due": r.Due.BootTime - ahead - time.Hour,
		} {
			if m < began || m > ended {
				t.Errorf("%s: at %v, it was between %v and %v", what, m, began, ended)
			}
		}
	})
}

func bootClock(t *testing.T) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}
