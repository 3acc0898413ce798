package crashtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// row is a line of the table.
type row struct {
	Point                              string
	Kills, Lost, Foreign, Left, Faults int
}

// report prints the table of all nodes.
func report(t *testing.T, dir string) {
	files, err := filepath.Glob(dir + "/rows*.json")
	if err != nil || len(files) != nodes {
		t.Errorf("%d of %d nodes have told, %v", len(files), nodes, err)
	}
	var all []row
	for _, f := range files {
		b, err := os.ReadFile(f)
		var rows []row
		if err == nil {
			err = json.Unmarshal(b, &rows)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rows...)
	}
	fmt.Printf("seed %d\n%s", *seedFlag, table(all))
}

// table is the rows by their names, one of each, and their sum.
func table(all []row) string {
	slices.SortStableFunc(all, func(a, b row) int { return strings.Compare(a.Point, b.Point) })
	var rows []row
	sum := row{Point: "all"}
	for _, r := range all {
		if n := len(rows); n == 0 || rows[n-1].Point != r.Point {
			rows = append(rows, row{Point: r.Point})
		}
		rows[len(rows)-1].add(r)
		sum.add(r)
	}
	var b strings.Builder
	b.WriteString("| point | kills | acknowledged records lost | foreign removals | leftovers |\n| --- | ---: | ---: | ---: | ---: |\n")
	for _, r := range append(rows, sum) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", r.Point, r.Kills, r.Lost, r.Foreign, r.Left)
	}
	return b.String()
}

func (r *row) add(o row) {
	r.Kills, r.Lost, r.Foreign, r.Left, r.Faults = r.Kills+o.Kills, r.Lost+o.Lost, r.Foreign+o.Foreign, r.Left+o.Left, r.Faults+o.Faults
}
