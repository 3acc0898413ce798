package conformance

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// cell is one way to tell a story: a value for each of its variables, in the order of the story's Matrix line.
type cell []struct{ key, value string }

// name is the cell as a test name: its values.
func (c cell) name() string {
	if len(c) == 0 {
		return "once"
	}
	var values []string
	for _, v := range c {
		values = append(values, v.value)
	}
	return strings.Join(values, "-")
}

// value is what the cell gives to a variable.
func (c cell) value(key string) (string, bool) {
	for _, v := range c {
		if v.key == key {
			return v.value, true
		}
	}
	return "", false
}

// readMatrix are the cells of a story. A line `# Matrix: A=1,2 B=x,y` in the comment on top makes four; a story
// without one is told once, as it is.
func readMatrix(file string) ([]cell, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the scenario: %w", err)
	}
	cells, err := parseMatrix(string(text))
	if err != nil {
		return nil, fmt.Errorf("reading the scenario %s: %w", file, err)
	}
	return cells, nil
}

func parseMatrix(story string) ([]cell, error) {
	cells := []cell{nil}
	for line := range strings.Lines(story) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		variables, ok := strings.CutPrefix(line, "# Matrix:")
		if !ok {
			continue
		}
		for _, field := range strings.Fields(variables) {
			key, values, ok := strings.Cut(field, "=")
			if !ok {
				return nil, fmt.Errorf("%q in its matrix is not of the form KEY=value,value", field)
			}
			var more []cell
			for _, c := range cells {
				for value := range strings.SplitSeq(values, ",") {
					more = append(more, append(slices.Clip(c), struct{ key, value string }{key, value}))
				}
			}
			cells = more
		}
	}
	return cells, nil
}

func TestParseMatrix(t *testing.T) {
	cells, err := parseMatrix("# A story.\n#\n# Matrix: PRIMARY=ptp,bridge FAMILY=v4,v6\n\n# Matrix: LATER=is,text\nsnap a\n")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range cells {
		names = append(names, c.name())
	}
	if want := []string{"ptp-v4", "ptp-v6", "bridge-v4", "bridge-v6"}; !slices.Equal(names, want) {
		t.Errorf("cells %q, want %q", names, want)
	}
	if family, _ := cells[1].value("FAMILY"); family != "v6" {
		t.Errorf("the second cell's FAMILY is %q", family)
	}
	if cells, err := parseMatrix("# No matrix.\n"); err != nil || len(cells) != 1 {
		t.Errorf("without a matrix: %d cells, %v; want one", len(cells), err)
	}
	if _, err := parseMatrix("# Matrix: PRIMARY\n"); err == nil {
		t.Error("a variable without values was accepted")
	}
}
