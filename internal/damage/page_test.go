package damage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const pageFile = "../../docs/damage.md"

const pageHead = `# Damage

What the plugin does, what is said and what to do when the journal is spoilt, in the way, or on a disk that takes nothing.
internal/damage plays each of these with both programs in a throw-away node and writes this page: what is quoted was
said, what is typed was typed, and pods started and stopped meanwhile. To write it anew:
` + "`go test ./internal/damage -write`" + `. Other trouble is in [failure-modes.md](failure-modes.md).

In all of it DEL succeeds, so that the rest of the list is reached; CHECK raises no false alarm; stdout has the CNI result
or a CNI error and nothing else; an ADD that fails changes nothing, in the kernel or on disk.

The new pod's record is, with the default ` + "`\"onJournalError\": \"warn\"`" + `,

- **stored**, as if nothing were wrong;
- **stored anew**: the damaged file was put aside, as ` + "`journal.db.corrupt-TIME`" + `, and a new journal begun from the spool and the
  runtime's cache, so that pods of before are recorded, too;
- **in the spool** beside the journal, on disk, until somebody can store it;
- **in memory**, under ` + "`/run/backstop`" + `, where nothing can be written beside the journal: until somebody can store it, or a reboot.

With ` + "`\"onJournalError\": \"fail\"`" + ` the ADD succeeds where the record is stored, else it is CNI error 5.

Bytes flipped at random, in any page in use, end as "stored", where they are in a record or a page that nobody needs, or as
"stored anew".

`

// store hands what came of a damage to the process outside of the node.
func store(t *testing.T, i int, got told) {
	t.Helper()
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(toldFile(i), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func toldFile(i int) string { return filepath.Join(os.Getenv(binEnv), fmt.Sprintf("told-%d.json", i)) }

// compare holds docs/damage.md against what came of them.
func compare(t *testing.T) {
	t.Helper()
	var table, said strings.Builder
	for i, d := range damages {
		b, err := os.ReadFile(toldFile(i))
		if os.IsNotExist(err) {
			return // -run chose some of them only
		}
		if err != nil {
			t.Fatal(err)
		}
		var got told
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		d.row(&table, got)
		d.section(&said, got)
	}
	page := pageHead + "| damage | `warn`: the record is | `fail` | `journal check` | `journal export` | the pods of before |\n| --- | --- | --- | --- | --- | --- |\n" +
		table.String() + "\n## In their words\n" + said.String()
	if *write {
		if err := os.WriteFile(pageFile, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	old, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(old) != page {
		t.Errorf("docs/damage.md is stale: go test ./internal/damage -write, and look at the difference; first at %s", firstDifference(string(old), page))
	}
}

func firstDifference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range bs {
		if i >= len(as) || as[i] != bs[i] {
			return fmt.Sprintf("line %d: %q", i+1, bs[i])
		}
	}
	return "the end"
}

var places = map[string]string{"journal": "stored", "anew": "stored anew", "spool": "in the spool", "memory": "in memory"}

func (d damage) row(w *strings.Builder, got told) {
	fail, before := "succeeds", "recorded"
	if d.fails {
		fail = "CNI error 5"
	}
	switch {
	case d.fresh:
		before = "none"
	case d.loses:
		before = "from prevResult and the kernel at DEL"
	}
	fmt.Fprintf(w, "| [%s](#%s) | %s | %s | exit code %d | exit code %d | %s |\n", d.name, anchor(d.name), places[d.record], fail, got.CLI.Code, got.Export, before)
}

// anchor is what a heading's link is called.
func anchor(title string) string {
	return strings.ReplaceAll(regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

func (d damage) section(w *strings.Builder, got told) {
	fmt.Fprintf(w, "\n### %s\n\n", strings.ToUpper(d.name[:1])+d.name[1:])
	quote(w, "The plugin's log:", logged(got.Warn.Stderr))
	if d.fails {
		quote(w, "The error with `fail`:", cniError(got.Fail.Stdout))
	}
	quote(w, "`backstopctl journal check`:", got.CLI.Stdout+got.CLI.Stderr)
	fmt.Fprintf(w, "To recover: %s\n", d.words)
	if d.recover != "" {
		fmt.Fprintf(w, "\n    %s\n", strings.ReplaceAll(d.recover, "\n", "\n    "))
	}
}

func quote(w *strings.Builder, title, text string) {
	text = strings.TrimSpace(normal(text))
	if text == "" {
		return
	}
	fmt.Fprintf(w, "%s\n\n    %s\n\n", title, strings.ReplaceAll(text, "\n", "\n    "))
}

// normal takes out what differs from run to run.
func normal(s string) string {
	for _, r := range []struct{ from, to string }{
		{`\.corrupt-\d{8}T[0-9.]+`, ".corrupt-TIME"},
		{`/\d{20}-\d+\.json`, "/TIME-PID.json"},
	} {
		s = regexp.MustCompile(r.from).ReplaceAllString(s, r.to)
	}
	return s
}

// logged gives the lines of a log without what each has.
func logged(stderr string) string {
	var out []string
	for line := range strings.Lines(stderr) {
		var l struct{ Level, Msg, Error, Spool, File string }
		if json.Unmarshal([]byte(line), &l) != nil {
			out = append(out, line)
			continue
		}
		out = append(out, l.Level+": "+l.Msg, "  error: "+l.Error)
		if at := cmp.Or(l.Spool, l.File); at != "" {
			out = append(out, "  where: "+at)
		}
	}
	return strings.Join(out, "\n")
}

func cniError(stdout string) string {
	var e struct {
		Code         int
		Msg, Details string
	}
	if err := json.Unmarshal([]byte(stdout), &e); err != nil {
		return stdout
	}
	return fmt.Sprintf("code %d: %s\n%s", e.Code, e.Msg, e.Details)
}
