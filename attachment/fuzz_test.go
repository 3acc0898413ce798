package attachment

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

func seeds(f *testing.F, pattern string) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds in %s: %v", pattern, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

// Whatever a plugin calls a result: what is read of it are addresses and names, and reading it again gives the same.
func FuzzParseResult(f *testing.F) {
	seeds(f, "../plugin/testdata/prevresult/*")
	f.Fuzz(func(t *testing.T, b []byte) {
		r := ParseResult(b)
		for _, ip := range r.IPs {
			if !ip.IsValid() || ip.Zone() != "" {
				t.Errorf("address %v", ip)
			}
		}
		r.Tables()
		r.BranchLinks()
	})
}

// A record is refused, or it is whole: what is written of it reads the same.
func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"network":"n","containerID":"c","ifName":"eth0","state":"attached","ips":["10.0.0.1"],"resources":[{"kind":"link","share":"own","link":{"index":3,"name":"veth1","kind":"veth"}}],"settings":{"teardown":"always"}}`))
	f.Add([]byte(`{"version":1,"network":"n","containerID":"c","ifName":"eth0","state":"owed","del":{"count":2,"last":{"bootID":"b"}},"replay":{"cacheEntry":{"a":[1]}},"events":[{"at":"2026-03-01T10:00:00Z","what":"x"}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if err != nil || !utf8.Valid(b) { // JSON is text: other bytes are replaced when it is written
			return
		}
		once, err := r.Encode()
		if err != nil {
			t.Skip() // a time that JSON cannot hold
		}
		again, err := Decode(once)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, once)
		}
		twice, err := again.Encode()
		if err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%v\nonce  %s\ntwice %s", err, once, twice)
		}
		if !json.Valid(once) {
			t.Errorf("no JSON: %s", once)
		}
	})
}
