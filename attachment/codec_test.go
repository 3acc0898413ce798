package attachment

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"testing"
	"time"
)

// fill sets every field that a type has, so that one which the generated codec
// does not know yet is missing from what it writes.
func fill(v reflect.Value, n *int64) {
	*n++
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"kept":[1,null,"as it is"]}`))
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1_800_000_000+*n, 0).UTC()))
	case v.Type() == reflect.TypeFor[netip.Addr]():
		v.Set(reflect.ValueOf(netip.AddrFrom4([4]byte{10, 0, byte(*n >> 8), byte(*n)})))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes([]byte{byte(*n), 0, 255})
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case v.Kind() == reflect.String:
		v.SetString("text <&> \u2028 " + time.Duration(*n).String())
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(*n)
	case v.CanUint():
		v.SetUint(uint64(*n) % 256)
	default:
		panic(v.Type())
	}
}

// The generated codec and encoding/json agree on every field: run `go generate
// ./attachment` after a change of the types.
func TestCodecKnowsEveryField(t *testing.T) {
	var n int64
	for name, v := range map[string]any{"record": &Record{}, "claim": &Claim{}} {
		fill(reflect.ValueOf(v).Elem(), &n)
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		switch x := v.(type) {
		case *Record:
			got, err = x.Encode()
		case *Claim:
			got, err = x.Encode()
		}
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal(want, &a) != nil || json.Unmarshal(got, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s: encoding/json writes\n%s\nthe codec\n%s", name, want, got)
		}
	}
}

func TestCodecReadsEveryField(t *testing.T) {
	var n int64
	var c Claim
	fill(reflect.ValueOf(&c).Elem(), &n)
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeClaim(b); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("claim: %+v, %v", got, err)
	}
	var r Record
	fill(reflect.ValueOf(&r).Elem(), &n)
	r.Version, r.Key, r.Resources, r.Pod = RecordVersion, Key{"n", "c", "eth0"}, []Resource{}, []Resource{}
	if b, err = json.Marshal(r); err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	got.Resources, got.Pod = []Resource{}, []Resource{}
	if !reflect.DeepEqual(*got, r) {
		t.Errorf("record: got\n%+v\nwant\n%+v", *got, r)
	}
	for i, x := range everyKind(&n) {
		r.Resources = []Resource{x}
		if b, err = json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		if got, err := Decode(b); err != nil || !reflect.DeepEqual(got.Resources, r.Resources) {
			t.Errorf("resource %d: %+v, %v", i, got, err)
		}
	}
}

func everyKind(n *int64) []Resource {
	out := []Resource{
		{Kind: KindLink, Link: &Link{}}, {Kind: KindRule, Rule: &Rule{}}, {Kind: KindRoute, Route: &Route{}},
		{Kind: KindNeighbour, Neigh: &Neighbour{}}, {Kind: KindAddress, Address: &Address{}},
	}
	for i := range out {
		v := reflect.ValueOf(&out[i]).Elem()
		for j := range v.NumField() {
			if f := v.Field(j); f.Kind() == reflect.Pointer && !f.IsNil() {
				fill(f.Elem(), n)
			}
		}
		out[i].Share = Own
	}
	return out
}
