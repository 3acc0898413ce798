package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// Every shape of prevResult that was seen in the field comes back equal as JSON,
// whatever the list's own version, and the next ADD of the same attachment works, too.
func TestPrevResultComesBackEqual(t *testing.T) {
	testnode.Run(t, func(t *testing.T) {
		dress(t)
		files, err := filepath.Glob("testdata/prevresult/*.json")
		if err != nil || len(files) < 26 {
			t.Fatalf("%d files, %v", len(files), err)
		}
		results := map[string]string{"14-thousands": thousands()}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			results[filepath.Base(f)] = string(b)
		}
		for name, prev := range results {
			for _, v := range []string{"", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
				out, log, ok := invoke(t, "ADD", fmt.Sprintf(`{"cniVersion":%q,"name":"n","type":"backstop","prevResult":%s}`, v, prev))
				if !ok {
					t.Errorf("%s at %q: %s %s", name, v, out, log)
					continue
				}
				if got, want := decode(t, out), decode(t, prev); !reflect.DeepEqual(got, want) {
					t.Errorf("%s at %q came back as\n%s", name, v, out)
				}
			}
		}
	})
}

// decode keeps numbers as they are written: 12345678901234567890 is no float.
func decode(t *testing.T, s string) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(s)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %.200s", err, s)
	}
	if d.More() {
		t.Fatalf("more than one JSON value in %.200s", s)
	}
	return v
}

func thousands() string {
	var ifs, routes []string
	for i := range 1000 {
		ifs = append(ifs, fmt.Sprintf(`{"name":"net%d","sandbox":"/run/netns/p"}`, i))
	}
	for i := range 10000 {
		routes = append(routes, fmt.Sprintf(`{"dst":"10.%d.%d.0/24"}`, i/250, i%250))
	}
	return fmt.Sprintf(`{"cniVersion":"1.0.0","interfaces":[%s],"ips":[{"address":"10.9.9.9/32","interface":0}],"routes":[%s]}`,
		strings.Join(ifs, ","), strings.Join(routes, ","))
}
