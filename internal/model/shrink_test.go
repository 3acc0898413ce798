package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// shrunkSettle is how long a shorter run may take to come to rest: a wrong guess must not cost much.
const shrunkSettle = 4 * time.Second

// shrink looks for a shorter list of operations that fails, too, for as long as the budget lasts: first without the
// end that was not played, then without ever smaller parts. What needs two things to meet in time may not fail again; then
// the failure stays as it is.
func shrink(seed uint64, ops []op, f *failure, budget time.Duration) ([]op, *failure) {
	end := time.Now().Add(budget)
	ops = slices.Clone(ops[:min(f.played, len(ops))])
	if again := fails(seed, ops); again == nil {
		return ops, f
	}
	for part := max(len(ops)/2, 1); ; part = max(part/2, 1) {
		shorter := false
		for at := 0; at < len(ops) && time.Now().Before(end); {
			without := slices.Delete(slices.Clone(ops), at, min(at+part, len(ops)))
			if again := fails(seed, without); again != nil {
				ops, f, shorter = without, again, true
			} else {
				at += part
			}
		}
		if time.Now().After(end) || part == 1 && !shorter {
			return ops, f
		}
	}
}

func fails(seed uint64, ops []op) *failure {
	for range 2 { // a grace may be over sooner or later than it was
		if f, err := playRun(seed, ops, shrunkSettle); f != nil && err == nil {
			return f
		}
	}
	return nil
}

// only picks the operations with the given numbers, as -only has them.
func only(ops []op, numbers string) ([]op, error) {
	if numbers == "" {
		return ops, nil
	}
	var out []op
	for n := range strings.SplitSeq(numbers, ",") {
		i, err := strconv.Atoi(n)
		if err != nil || i < 0 || i >= len(ops) {
			return nil, fmt.Errorf("-only=%s: no operation has the number %q", numbers, n)
		}
		out = append(out, ops[i])
	}
	return out, nil
}

func numbers(ops []op) string {
	var out []string
	for _, o := range ops {
		out = append(out, fmt.Sprint(o.n))
	}
	return strings.Join(out, ",")
}
