package conformance

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// A report is what somebody met in the field, told again with its values. It is named for the tracker that it is in:
// aws-vpc-cni-2048 is aws/amazon-vpc-cni-k8s#2048. docs/field-reports.md lists them all.
type report struct {
	name  string
	story string // the file in reports/
	cells []cell
}

// TestFieldReports plays each report by its name. A story in reports/ serves those of one kind: each of its lines
// `# Report: NAME KEY=value,value …` is a test, with these values, in every combination.
func TestFieldReports(t *testing.T) {
	programs := need(t)
	for _, r := range readReports(t) {
		t.Run(r.name, func(t *testing.T) {
			if len(r.cells) == 1 {
				t.Parallel()
				testnode.Run(t, func(t *testing.T) { tell(t, programs, r.story, r.cells[0]) })
				return
			}
			for _, c := range r.cells {
				t.Run(c.name(), func(t *testing.T) {
					t.Parallel()
					testnode.Run(t, func(t *testing.T) { tell(t, programs, r.story, c) })
				})
			}
		})
	}
}

// readReports are the reports of all stories, in the order of their names.
func readReports(t *testing.T) []report {
	t.Helper()
	files, err := filepath.Glob("reports/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no story of a report found: %v", err)
	}
	named := map[string]report{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found, err := parseReports(string(text))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: want at least one line `# Report: NAME`: %v", file, err)
		}
		for _, r := range found {
			if other, twice := named[r.name]; twice {
				t.Fatalf("%s tells of %s, as does %s", file, r.name, other.story)
			}
			r.story = file
			named[r.name] = r
		}
	}
	return slices.SortedFunc(maps.Values(named), func(a, b report) int { return strings.Compare(a.name, b.name) })
}

func parseReports(story string) (found []report, err error) {
	for _, line := range headLines(story, "# Report:") {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			return nil, fmt.Errorf("a report without a name")
		}
		cells, err := multiply([]cell{nil}, fields[1:])
		if err != nil {
			return nil, fmt.Errorf("the report %s: %w", fields[0], err)
		}
		found = append(found, report{name: fields[0], cells: cells})
	}
	return found, nil
}

func TestParseReports(t *testing.T) {
	found, err := parseReports("# A story.\n#\n# Report: one A=1,2 B=x\n# Report: two\n\n# Report: later\n")
	if err != nil || len(found) != 2 {
		t.Fatalf("%v, %v", found, err)
	}
	if r := found[0]; r.name != "one" || len(r.cells) != 2 || r.cells[1].name() != "2" {
		t.Errorf("%+v", r)
	}
	if r := found[1]; r.name != "two" || len(r.cells) != 1 {
		t.Errorf("%+v", r)
	}
	for _, bad := range []string{"# Report:\n", "# Report: one A\n"} {
		if found, err := parseReports(bad); err == nil {
			t.Errorf("%q: %v", bad, found)
		}
	}
}

// row matches a row of the page's tables: the report's name and, in the first table, its story.
var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|.*?\\|(?: `reports/([^`]+)` \\|)?$")

// TestFieldReportsPage holds docs/field-reports.md against the tests: each is there, with its story, and nothing else
// is said to be tested; what waits for a later part is no test yet.
func TestFieldReportsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/field-reports.md")
	if err != nil {
		t.Fatal(err)
	}
	tested, later := map[string]string{}, map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		name, story := m[1], m[2]
		if _, twice := tested[name]; twice || later[name] {
			t.Errorf("%s has two rows", name)
		}
		if story == "" {
			later[name] = true
		} else {
			tested[name] = "reports/" + story
		}
	}
	for _, r := range readReports(t) {
		if tested[r.name] != r.story {
			t.Errorf("%s: the page says that it is in %q, it is in %s", r.name, tested[r.name], r.story)
		}
		delete(tested, r.name)
	}
	if len(tested) > 0 {
		t.Errorf("the page says that these are tested: %v", tested)
	}
	if len(later) == 0 {
		t.Error("no row without a story was found: is the page still read right?")
	}
}
