package journal

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

func formatPage(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../docs/journal-format.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFormatPageListsTheBuckets(t *testing.T) {
	_, table, _ := strings.Cut(formatPage(t), "\n## Buckets\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var listed, coded []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(table, -1) {
		listed = append(listed, m[1])
	}
	for _, b := range allBuckets {
		coded = append(coded, string(b))
	}
	if listed = slices.Compact(listed); !reflect.DeepEqual(listed, coded) {
		t.Errorf("the page has %v\nthe code has %v", listed, coded)
	}
}

// The page's record is read, and written again with the same fields.
func TestFormatPageShowsARecord(t *testing.T) {
	_, example, _ := strings.Cut(formatPage(t), "```json\n")
	example, _, _ = strings.Cut(example, "```")
	r, err := attachment.Decode([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	j := newJournal(t)
	put(t, j, r)
	stored := contents(t, j, bucketAttachments)["attachments"][r.Key.String()]
	var got, want any
	if err := errors.Join(json.Unmarshal([]byte(stored), &got), json.Unmarshal([]byte(example), &want)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("stored as %v\nthe page has %v", got, want)
	}
}
