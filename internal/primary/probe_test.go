package primary

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/internal/testnode"
)

func TestValidate(t *testing.T) {
	for probe, want := range map[string]string{
		"unix:///var/run/aws-node/ipamd.sock": "",
		"file:///run/ready":                   "",
		"tcp://127.0.0.1:50051":               "",
		"grpc+unix:///run/x.sock":             "",
		"grpc+unix://run/x.sock":              "three slashes",
		"grpc+tcp://127.0.0.1:50051":          "unix:///path",
		"tcp://[::1]:50051":                   "",
		"tcp://localhost:50051/":              "",
		"unix://var/run/ipamd.sock":           "three slashes", // "var" is a host then
		"unix:run/ipamd.sock":                 "three slashes",
		"file://ready":                        "three slashes",
		"unix://":                             "three slashes",
		"tcp://127.0.0.1":                     "host:port",
		"tcp://127.0.0.1:":                    "host:port",
		"tcp://127.0.0.1:50051/healthz":       "host:port",
		"tcp:///run/x.sock":                   "host:port",
		"http://127.0.0.1:61679/":             "unix:///path",
		"/var/run/ipamd.sock":                 "unix:///path",
		"":                                    "unix:///path",
		"tcp://127.0.0.1:port":                "not a URL",
		"unix:///var/run/%zz":                 "not a URL",
	} {
		err := Validate(probe)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), probe)) {
			t.Errorf("%q: %v, want an error with %q", probe, err, want)
		}
	}
}

const short = 100 * time.Millisecond

func TestReachable(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	listen(t, "unix", at("live.sock"))
	port := listen(t, "tcp", "127.0.0.1:0")

	dead := listen(t, "unix", at("dead.sock")).(*net.UnixListener)
	dead.SetUnlinkOnClose(false) // as after SIGKILL: the file stays
	dead.Close()
	refused := listen(t, "tcp", "127.0.0.1:0")
	refused.Close()
	for name, text := range map[string]string{"plain": "x", "empty": ""} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"dangling": "missing", "link.sock": "live.sock"} {
		if err := os.Symlink(at(to), at(name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(at("dead.sock")); err != nil {
		t.Fatalf("the dead daemon's socket file has to be there: %v", err)
	}

	live, away := "unix://"+at("live.sock"), "unix://"+at("missing.sock")
	for name, c := range map[string]struct {
		probes []string
		want   bool
	}{
		"a socket":                            {[]string{live}, true},
		"a socket behind a symlink":           {[]string{"unix://" + at("link.sock")}, true},
		"no socket":                           {[]string{away}, false},
		"a socket that nobody listens on":     {[]string{"unix://" + at("dead.sock")}, false},
		"a plain file for a socket":           {[]string{"unix://" + at("plain")}, false},
		"a directory for a socket":            {[]string{"unix://" + dir}, false},
		"a port":                              {[]string{"tcp://" + port.Addr().String()}, true},
		"a port that refuses":                 {[]string{"tcp://" + refused.Addr().String()}, false},
		"a readiness file":                    {[]string{"file://" + at("plain")}, true},
		"an empty readiness file":             {[]string{"file://" + at("empty")}, true},
		"no readiness file":                   {[]string{"file://" + at("missing")}, false},
		"a readiness file that leads to none": {[]string{"file://" + at("dangling")}, false},
		"the last of several":                 {[]string{away, "file://" + at("missing"), live}, true},
		"none of several":                     {[]string{away, "tcp://" + refused.Addr().String()}, false},
		"no probe":                            {nil, false},
		"no URL":                              {[]string{"unix:///%zz"}, false},
	} {
		if got := Reachable(t.Context(), c.probes, 10*time.Second); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// full is the probe of a daemon that takes no further connection. free makes room.
func full(t *testing.T) (probe string, free func()) {
	t.Helper()
	path, free := testnode.FullSocket(t)
	return "unix://" + path, free
}

// slack is what a loaded machine may add to a bounded wait; an unbounded one takes minutes.
const slack = 3 * time.Second

func TestASocketThatAcceptsNothing(t *testing.T) {
	probe, free := full(t)
	began := time.Now()
	if Reachable(t.Context(), []string{probe}, short) {
		t.Error("a socket that accepts nothing is reachable")
	}
	if took := time.Since(began); took < short || took > short+slack {
		t.Errorf("asked for %v, the timeout is %v: a daemon that is only busy would be passed over", took, short)
	}
	// A daemon that is busy for a moment is there.
	began = time.Now()
	answer := make(chan bool)
	go func() { answer <- Reachable(t.Context(), []string{probe}, time.Minute) }()
	free()
	if !<-answer || time.Since(began) > time.Minute/2 {
		t.Errorf("a socket that has room again is not reachable after %v", time.Since(began))
	}
}

// A stopped daemon's socket takes connections, and no more than that: to be asked for a greeting tells it from one that
// is there. What else may listen there does not greet as a gRPC server does, with its settings.
func TestAGRPCServerGreets(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		says string
		want bool
	}{
		"empty settings":                {"\x00\x00\x00\x04\x00\x00\x00\x00\x00", true},
		"settings":                      {"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x40\x00", true},
		"settings, cut off":             {"\x00\x00\x06\x04\x00", false},
		"only the client's are settled": {"\x00\x00\x00\x04\x01\x00\x00\x00\x00", false},
		"settings of a stream":          {"\x00\x00\x00\x04\x00\x00\x00\x00\x01", false},
		"it goes away":                  {"\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", false},
		"HTTP/1.1":                      {"HTTP/1.1 400 Bad Request\r\n\r\n", false},
		"nothing":                       {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			wants := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
			greeter := listen(t, "unix", filepath.Join(t.TempDir(), "s"))
			heard := make(chan string, 1)
			go func() {
				conn, err := greeter.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				b := make([]byte, len(wants))
				_, _ = io.ReadFull(conn, b)
				heard <- string(b)
				_, _ = conn.Write([]byte(c.says))
			}()
			if got := Reachable(t.Context(), []string{"grpc+unix://" + greeter.Addr().String()}, time.Minute); got != c.want {
				t.Errorf("reachable: %v, want %v", got, c.want)
			}
			if got := <-heard; got != wants {
				t.Errorf("the server heard %q", got)
			}
		})
	}
	silent := listen(t, "unix", filepath.Join(dir, "silent.sock"))
	began := time.Now()
	if Reachable(t.Context(), []string{"grpc+unix://" + silent.Addr().String()}, short) || time.Since(began) > short+slack {
		t.Errorf("a server that does not greet is reachable, or it took too long: %v", time.Since(began))
	}
	if Reachable(t.Context(), []string{"grpc+unix://" + filepath.Join(dir, "missing.sock")}, time.Minute) {
		t.Error("no socket is reachable")
	}
}

// A probe that hangs keeps nobody from hearing the one that answers.
func TestProbesAreAskedAtOnce(t *testing.T) {
	hangs, _ := full(t)
	live := "unix://" + filepath.Join(t.TempDir(), "live.sock")
	listen(t, "unix", strings.TrimPrefix(live, "unix://"))
	began := time.Now()
	if !Reachable(t.Context(), []string{hangs, live}, time.Minute) || time.Since(began) > time.Minute/2 {
		t.Errorf("not reachable, or only after %v", time.Since(began))
	}
}
