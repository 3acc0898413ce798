package attachment

import (
	"net/netip"
	"reflect"
	"testing"
)

func TestParseResultKeepsWhatItUnderstands(t *testing.T) {
	ip := func(s ...string) (out []netip.Addr) {
		for _, x := range s {
			out = append(out, netip.MustParseAddr(x))
		}
		return
	}
	for name, c := range map[string]struct {
		in   string
		want Result
	}{
		"AWS dummy entry and numeric mac": {
			`{"interfaces":[{"name":"eni1"},{"name":"eth0","mac":"254","sandbox":"/n"},{"name":"dummy1","mac":"0","sandbox":"0"}],"ips":[{"address":"10.0.0.2/32","interface":1}]}`,
			Result{[]Interface{{"eni1", "", ""}, {"eth0", "254", "/n"}, {"dummy1", "0", "0"}}, ip("10.0.0.2")},
		},
		"mac that is a JSON number":        {`{"interfaces":[{"name":"eth0","mac":7,"sandbox":"/n"}]}`, Result{[]Interface{{"eth0", "", "/n"}}, nil}},
		"sandbox that is a number":         {`{"interfaces":[{"sandbox":7,"name":"eth0","mac":"aa:bb:cc:dd:ee:ff"}]}`, Result{[]Interface{{"eth0", "aa:bb:cc:dd:ee:ff", ""}}, nil}},
		"upper case mac":                   {`{"interfaces":[{"name":"e","mac":"AA:BB:CC:DD:EE:FF"}]}`, Result{[]Interface{{"e", "aa:bb:cc:dd:ee:ff", ""}}, nil}},
		"Multus without IPAM":              {`{"ips":[{"address":"0.0.0.0/32","gateway":"0.0.0.0"}]}`, Result{}},
		"0.1.0 shape":                      {`{"ip4":{"ip":"10.1.0.9/24"},"ip6":{"ip":"fd00::9/64"}}`, Result{nil, ip("10.1.0.9", "fd00::9")}},
		"an address twice":                 {`{"ips":[{"address":"10.1.0.9/24"},{"address":"10.1.0.9/32"}]}`, Result{nil, ip("10.1.0.9")}},
		"v4 in v6":                         {`{"ips":[{"address":"::ffff:10.1.0.9/128"}]}`, Result{nil, ip("10.1.0.9")}},
		"link-local and loopback":          {`{"ips":[{"address":"fe80::1/64"},{"address":"127.0.0.1/8"}]}`, Result{}},
		"address without prefix":           {`{"ips":[{"address":"10.1.0.9"}]}`, Result{nil, ip("10.1.0.9")}},
		"interfaces null":                  {`{"interfaces":null,"ips":null}`, Result{}},
		"interfaces of a wrong type":       {`{"interfaces":"none","ips":[{"address":"10.1.0.9/24"}]}`, Result{nil, ip("10.1.0.9")}},
		"entries that are no objects":      {`{"interfaces":[null,3,{"name":"x"}],"ips":[null,"y",{"address":"10.1.0.9/24"}]}`, Result{[]Interface{{"x", "", ""}}, ip("10.1.0.9")}},
		"ips[].interface not a number":     {`{"ips":[{"address":"10.1.0.9/24","interface":"zero"}]}`, Result{nil, ip("10.1.0.9")}},
		"stray version of a newer cilium":  {`{"ips":[{"version":"4","address":"10.1.0.9/32","interface":-1}]}`, Result{nil, ip("10.1.0.9")}},
		"not an object":                    {`[1,2]`, Result{}},
		"same name on host and in the pod": {`{"interfaces":[{"name":"eth0"},{"name":"eth0","sandbox":"/n"}]}`, Result{[]Interface{{"eth0", "", ""}, {"eth0", "", "/n"}}, nil}},
		"an interface without a name":      {`{"interfaces":[{"mac":"aa:bb:cc:dd:ee:ff"}]}`, Result{}},
		"an address that is none":          {`{"ips":[{"address":"pod"},{"address":7}]}`, Result{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ParseResult([]byte(c.in)); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestTablesThatAResultNames(t *testing.T) {
	for in, want := range map[string][]uint32{
		`{"interfaces":[{"name":"eni1"},{"name":"eth0","mac":"2","sandbox":"/n"},{"name":"dummy1","mac":"0","sandbox":"0"}]}`:                         {2},
		`{"interfaces":[{"name":"eth0","mac":"254","sandbox":"/n"},{"name":"mNicIf1","mac":"10102","sandbox":"/n"}]}`:                                 {254, 10102},
		`{"interfaces":[{"name":"vlan1"},{"name":"eth0","mac":"0","sandbox":"/n"},{"name":"dummy1","mac":"7"}]}`:                                      nil, // a branch ENI's
		`{"interfaces":[{"name":"eth0","mac":"02:00:00:00:00:02","sandbox":"/n"},{"name":"eth1","mac":"000000000012","sandbox":"/n"},{"name":"lo"}]}`: nil,
		`{}`: nil,
	} {
		if got := ParseResult([]byte(in)).Tables(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", in, got, want)
		}
	}
}

func TestBranchLinksThatAResultNames(t *testing.T) {
	for in, want := range map[string][]string{
		`{"name":"dummy063eac01f91","mac":"7"}`:                  {"vlan.eth.7"},
		`{"name":"dummy063eac01f91","mac":"4094"}`:               {"vlan.eth.4094"},
		`{"name":"dummy063eac01f91","mac":"0"}`:                  nil,
		`{"name":"dummy063eac01f91","mac":"07"}`:                 nil, // no number as AWS writes it
		`{"name":"dummy063eac01f91","mac":"4095"}`:               nil,
		`{"name":"dummy063eac01f91","mac":"70000"}`:              nil,
		`{"name":"dummy063eac01f91","mac":"-7"}`:                 nil,
		`{"name":"dummy063eac01f91","mac":"7","sandbox":"1"}`:    nil, // a pod without branch ENI: the device's number
		`{"name":"eni063eac01f91","mac":"7"}`:                    nil,
		`{"name":"dummy063eac01f91","mac":"02:aa:bb:cc:dd:07"}`:  nil,
		`{"name":"dummy063eac01f91","mac":""},{"name":"dummy0"}`: nil,
	} {
		if got := ParseResult([]byte(`{"interfaces":[` + in + `]}`)).BranchLinks(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
