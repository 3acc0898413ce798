package reconcile

import (
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

// Between its primary's ADD and backstop's the journal does not know a pod: what carries its address or its link's name
// is left to it, and the dead pod's record stays until somebody can say which of it the new one uses. Otherwise a rule that
// misroutes the new pod would stay for the new pod's whole life.
func TestLeftToAnADDUnderWay(t *testing.T) {
	for name, c := range map[string]struct {
		pod  func(b *bench, id, ip string, table string) *attachment.Record
		ip   string // the new pod's
		lost string
	}{
		"by address": {
			pod: func(b *bench, id, ip, table string) *attachment.Record {
				return b.addPod(id, "eni-"+id, ip, map[string]int{"101": 101, "102": 102}[table])
			},
			ip: "10.0.0.5", lost: "- rule4 1536: from 10.0.0.5 lookup 101",
		},
		"by name": {
			pod: func(b *bench, id, ip, table string) *attachment.Record { return b.addBranchPod(id, ip, table) },
			ip:  "10.0.0.6", lost: "- rule4 10: from all iif vlan1 lookup 101",
		},
	} {
		t.Run(name, func(t *testing.T) {
			onNode(t, func(t *testing.T, b *bench) {
				b.admit(c.pod(b, "old", "10.0.0.5", "101"))
				b.kill("old", map[string]string{"by address": "eni-old", "by name": "vlan1"}[name])
				rec := c.pod(b, "new", c.ip, "102")
				before := b.view()
				torn := b.tearDown(attachment.Owed, "old")
				if torn[0].Outcome.Err != nil {
					t.Error(torn[0].Outcome.Err)
				}
				b.changed(before)
				if r := b.state("old", attachment.Tearing); r.LastError != "" || !noted(r, "not recorded") {
					t.Errorf("%+v", r)
				}
				b.admit(rec)
				b.sweep()
				b.changed(before, c.lost)
				b.state("old", attachment.Owed)
			})
		})
	}
}
