package attachment

import (
	"math"
	"testing"
	"time"
)

func TestSinceCountsInOneBoot(t *testing.T) {
	wall := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(boot string, s int, step time.Duration) Moment {
		return Moment{BootID: boot, BootTime: time.Duration(s) * time.Second, Wall: wall.Add(step)}
	}
	for name, c := range map[string]struct {
		then, now Moment
		want      time.Duration
	}{
		"two minutes":                       {at("a", 100, 0), at("a", 220, 0), 2 * time.Minute},
		"the wall clock was set back a day": {at("a", 100, 0), at("a", 220, -24*time.Hour), 2 * time.Minute},
		"still to come":                     {at("a", 220, 0), at("a", 100, time.Hour), -2 * time.Minute},
		"an earlier boot":                   {at("a", 100, 0), at("b", 101, 0), math.MaxInt64},
		"an earlier boot, later in it":      {at("a", 900, 0), at("b", 1, 0), math.MaxInt64},
	} {
		if got := c.then.Since(c.now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestNamespaceIDIsZeroOnlyWhenNothingWasRead(t *testing.T) {
	if !(NamespaceID{}).IsZero() {
		t.Error("nothing read, and not zero")
	}
	for _, id := range []NamespaceID{{Dev: 4}, {Ino: 4}} {
		if id.IsZero() {
			t.Errorf("%+v is zero", id)
		}
	}
}
