package testnode

import (
	"fmt"
	"time"
)

// Until asks again and again until the condition holds, for what happens in the kernel's or another process's own
// time. The condition says what is still missing; nil means that it holds.
func Until(limit time.Duration, condition func() error) error {
	deadline := time.Now().Add(limit)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := condition()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("still not so after %v: %w", limit, err)
		}
		time.Sleep(pause)
	}
}
