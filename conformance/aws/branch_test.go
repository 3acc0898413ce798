package aws

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/internal/testnode"
	"github.com/backstop-cni/backstop/internal/testnode/uml"
)

// umlEnv says that the process is the guest's.
const umlEnv = "BACKSTOP_AWS_UML"

var (
	sg = pod{"a", "sg"}
	// later is a pod that gets the branch ENI's id, with another address.
	later = pod{"b", "sg-later"}
)

// branches are the situations of pods with a branch ENI (security groups for pods), in both modes. Their vlan links
// need a kernel that has them.
var branches = func() (all []row) {
	for _, mode := range []string{"strict", "standard"} {
		of := inGroups([]row{
			{group: "Branch ENI, " + mode, name: "the daemon is up", play: with(sg)},
			{name: "the daemon is killed", play: with(sg, killed)},
			{name: "the daemon is killed, the netns is gone before the DEL", play: story(added(sg), killed, gone(sg), deleted(sg))},
			{name: "the daemon is killed, the DEL comes without a netns", play: story(added(sg), killed, withoutNetns(sg), gone(sg))},
			{name: "the daemon is up, the DEL comes without a netns", play: story(added(sg), withoutNetns(sg), gone(sg))},
			{name: "the daemon is killed, the runtime's cache entry is lost", play: with(sg, killed, cacheLost)},
			{name: "the DEL never comes", play: story(added(sg), gone(sg))},
			{name: "the DEL never comes, and another pod gets the id",
				play: story(added(sg), gone(sg), added(later), kept(swept, "vlan.eth.7", settled(1)), deleted(later), gone(later))},
			{name: "the daemon is killed at the DEL, and another pod gets the id before the netns is gone",
				play: story(added(sg), killed, deleted(sg), up(""), added(later), kept(swept, "vlan.eth.7", settled(1)), gone(sg), deleted(later), gone(later))},
		})
		for i := range of {
			of[i].branch = mode
		}
		all = append(all, of...)
	}
	return all
}()

const branchPreface = `
The rows of branch ENIs (security groups for pods) are played on a kernel with vlan links (user-mode-linux), where
netfilter is not looked at.
`

// played is a line of the guest's output.
const played = "PLAYED "

type branchOutcome struct {
	Row, Mode string
	Outcome   outcome
	Err       string
}

// playBranches plays all of them, each in a node of the guest's.
func playBranches() int {
	for _, r := range branches {
		for _, mode := range modes {
			b := branchOutcome{Row: r.title(), Mode: mode}
			var err error
			if b.Outcome, err = inNode(context.Background(), r, mode); err != nil {
				b.Err = err.Error()
			}
			line, err := json.Marshal(b)
			if err != nil {
				return 1
			}
			fmt.Printf("\n%s%s\n", played, line)
		}
	}
	return 0
}

// branchReport boots the guest and judges what it says.
func branchReport(t *testing.T, p testnode.Programs) string {
	all := map[string]branchOutcome{}
	for line := range strings.Lines(boot(t, p.CNIPath())) {
		text, is := strings.CutPrefix(strings.TrimSpace(line), played)
		var b branchOutcome
		if !is {
			continue
		}
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			t.Fatalf("the guest said %q: %v", line, err)
		}
		all[b.Row+"/"+b.Mode] = b
	}
	each := make([][]outcome, len(branches))
	for i, r := range branches {
		for _, mode := range modes {
			b, there := all[r.title()+"/"+mode]
			if !there || b.Err != "" {
				t.Errorf("%s/%s: played %v: %s", r.title(), mode, there, b.Err)
				continue
			}
			t.Run(r.title()+"/"+mode, func(t *testing.T) { judge(t, r, mode, b.Outcome) })
			each[i] = append(each[i], b.Outcome)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return branchPreface + tables(branches, each)
}

// boot runs this test's program as the only one of a user-mode-linux that has the machine's files.
func boot(t *testing.T, path string) string {
	script, err := os.ReadFile("testdata/guest")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	defer cancel()
	var out bytes.Buffer
	g := uml.Guest{
		Dir: "../bin/uml", Memory: "768M", Modules: []string{"llc", "stp", "mrp", "garp", "8021q", "veth", "dummy"}, Script: string(script), Stdout: &out,
		Env: []string{"PROGRAM=" + os.Args[0], "HERE=" + here, "CNI_PATH=" + path, "PATH=" + path + ":/usr/sbin:/usr/bin:/sbin:/bin", umlEnv + "=1"},
	}
	if err := g.Run(ctx, t.TempDir()); err != nil && !strings.Contains(out.String(), played) {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}
