package teardown

import (
	"reflect"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

// Looking at many records together shows of each what a look at it alone does, with one listing of the rules.
func TestTogetherSeesWhatEachAloneSees(t *testing.T) {
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			recs := []*attachment.Record{s.rec}
			for _, o := range s.others {
				recs = append(recs, o.Record)
			}
			var want []Sight
			for _, r := range recs {
				want = append(want, Observe(s.node, r))
			}
			s.node.dumps = 0
			k := Together(s.node, recs...)
			for i, r := range recs {
				if got := Observe(k, r); !reflect.DeepEqual(got, want[i]) {
					t.Errorf("of %s together:\n%+v\nalone:\n%+v", r.Key, got, want[i])
				}
			}
			if s.node.dumps > 1 {
				t.Errorf("the rules were listed %d times", s.node.dumps)
			}
		})
	}
}
