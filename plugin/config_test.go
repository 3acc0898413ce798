package plugin

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestConfigDefaultsAreThoseOfTheReadme(t *testing.T) {
	c, problems, err := ParseConfig([]byte(`{"cniVersion":"1.0.0","name":"n","type":"backstop"}`))
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	if c.ProbeTimeout != 250*time.Millisecond || c.Wait != 0 || c.Teardown != "unreachable" || c.FailOnJournal ||
		c.Journal != "/var/lib/cni/backstop/journal.db" || c.Grace != 2*time.Minute || c.EscalateAfter != 3 ||
		c.RuntimeCacheDir != "/var/lib/cni" || c.ValidAttachments != nil || c.PrevResult != nil {
		t.Errorf("%+v", c)
	}
}

func TestConfigReadsEveryKey(t *testing.T) {
	c, problems, err := ParseConfig([]byte(`{"cniVersion":"1.0.0","name":"n","type":"backstop",
		"primary":{"probe":["unix:///run/a.sock","tcp://127.0.0.1:50051","file:///run/ready"],"timeout":"1s","wait":"45s"},
		"teardown":"always","journal":"/j/x.db","onJournalError":"fail","grace":"10s","escalateAfter":5,"runtimeCacheDir":"/c",
		"ipam":{"type":"host-local","dataDir":"/i"},"logFile":"/l","logLevel":"debug"}`))
	if err != nil || len(problems) > 0 || len(c.Unknown) > 0 {
		t.Fatal(problems, err, c.Unknown)
	}
	if len(c.Probe) != 3 || c.ProbeTimeout != time.Second || c.Wait != 45*time.Second || c.Teardown != "always" || c.Journal != "/j/x.db" ||
		!c.FailOnJournal || c.Grace != 10*time.Second || c.EscalateAfter != 5 || c.RuntimeCacheDir != "/c" || c.IPAM == nil ||
		c.LogFile != "/l" || c.LogLevel.String() != "debug" {
		t.Errorf("%+v", c)
	}
}

func TestConfigNamesTheKeyThatIsWrong(t *testing.T) {
	for key, bad := range map[string][]string{
		"primary":         {`[]`, `"unix:///x"`},
		"primary.probe":   {`"unix:///x"`, `[7]`, `["unix://x"]`, `["unix:x"]`, `["tcp://host"]`, `["http://host:80"]`, `["tcp://:"]`, `["file://etc/x"]`, `[""]`},
		"primary.timeout": {`250`, `"fast"`, `"0s"`, `"-1s"`, `"1h"`},
		"primary.wait":    {`1`, `"61s"`, `"-1s"`},
		"teardown":        {`"sometimes"`, `true`},
		"journal":         {`"relative"`, `7`, `""`},
		"onJournalError":  {`"panic"`, `false`},
		"grace":           {`"2 minutes"`, `120`, `"-2m"`},
		"escalateAfter":   {`"3"`, `-1`, `1.5`},
		"runtimeCacheDir": {`"cni"`, `{}`},
		"ipam":            {`"host-local"`, `{}`, `{"type":""}`, `{"type":"../x"}`, `{"type":"host-local","dataDir":"networks"}`},
		"logFile":         {`"x.log"`, `1`},
		"logLevel":        {`"loud"`, `3`},
		"name":            {`7`},
	} {
		for _, v := range bad {
			conf := `{"type":"backstop","` + key + `":` + v + `}`
			if sub, ok := strings.CutPrefix(key, "primary."); ok {
				conf = `{"type":"backstop","primary":{"` + sub + `":` + v + `}}`
			}
			c, problems, err := ParseConfig([]byte(conf))
			if err != nil || len(problems) != 1 || problems[0].Key != key {
				t.Errorf("%s: problems %v, error %v", conf, problems, err)
				continue
			}
			defaults, _, _ := ParseConfig([]byte(`{"type":"backstop"}`))
			if c.PrevResult = nil; !reflect.DeepEqual(c, defaults) {
				t.Errorf("%s: not the defaults: %+v", conf, c)
			}
			if e := badConfig(problems); e.Code != 7 || !strings.Contains(e.Msg, key) {
				t.Errorf("%s: error %+v", conf, e)
			}
		}
	}
}

func TestConfigUnknownKeysAreNoProblem(t *testing.T) {
	c, problems, err := ParseConfig([]byte(`{"type":"backstop","prevResult":null,"capabilities":{},"runtimeConfig":{},"args":{},"newer":1,"primary":{"probes":[]}}`))
	if err != nil || len(problems) > 0 || !slices.Equal(c.Unknown, []string{"newer", "primary.probes"}) {
		t.Errorf("%v %v %v", c.Unknown, problems, err)
	}
}

func TestConfigThatIsNoObject(t *testing.T) {
	for _, s := range []string{``, `[]`, `"x"`, `{"a":`, `null x`} {
		if _, _, err := ParseConfig([]byte(s)); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

func TestConfigGCList(t *testing.T) {
	for s, want := range map[string]*[]GCAttachment{
		`{}`:                                 nil,
		`{"cni.dev/valid-attachments":null}`: {},
		`{"cni.dev/valid-attachments":[]}`:   {},
		`{"cni.dev/attachments":[{"containerID":"a","ifname":"eth0"}]}`:       {{"a", "eth0"}},
		`{"cni.dev/valid-attachments":[{"containerID":"a","ifname":"eth0"}]}`: {{"a", "eth0"}},
	} {
		c, problems, err := ParseConfig([]byte(s))
		if err != nil || len(problems) > 0 || !reflect.DeepEqual(c.ValidAttachments, want) {
			t.Errorf("%s: %v %v %v", s, c.ValidAttachments, problems, err)
		}
	}
}

func TestErrorsAvoidWhatGoCNITakesForSuccess(t *testing.T) {
	e := fail(5, "x: no such file or directory", errString("y not found"))
	for _, s := range []string{e.Msg, e.Details} {
		if strings.Contains(s, "not found") || strings.Contains(s, "no such file or directory") {
			t.Error(s)
		}
	}
}

type errString string

func (e errString) Error() string { return string(e) }
