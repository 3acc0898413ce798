package conformance

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// cell is one way to tell a story: a value for each of its variables, in the order of the story's Matrix line.
type cell []setting

type setting struct {
	key, value string
	only       bool // no other cell has another value
}

// name is the cell as a test name: the values that tell it from the others.
func (c cell) name() string {
	var values []string
	for _, v := range c {
		if !v.only {
			values = append(values, v.value)
		}
	}
	if len(values) == 0 {
		return "once"
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
	for _, line := range headLines(story, "# Matrix:") {
		var err error
		if cells, err = multiply(cells, strings.Fields(line)); err != nil {
			return nil, err
		}
	}
	return cells, nil
}

// headLines are the lines with a prefix in the comment on top of a story, without it.
func headLines(story, prefix string) (found []string) {
	for line := range strings.Lines(story) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			found = append(found, rest)
		}
	}
	return found
}

// multiply gives each cell every value of some variables, each in the form KEY=value,value.
func multiply(cells []cell, variables []string) ([]cell, error) {
	for _, variable := range variables {
		key, list, ok := strings.Cut(variable, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not of the form KEY=value,value", variable)
		}
		values := strings.Split(list, ",")
		var more []cell
		for _, c := range cells {
			for _, value := range values {
				more = append(more, append(slices.Clip(c), setting{key, value, len(values) == 1}))
			}
		}
		cells = more
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
