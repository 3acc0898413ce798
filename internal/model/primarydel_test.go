package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// primaryDel is the primary's part of a DEL, whoever asks for it.
func (w *world) primaryDel(k attachment.Key, haveResult bool) error {
	a := w.atts[k]
	if a == nil {
		return fmt.Errorf("no such attachment was ever added: %s", k)
	}
	if a.net.aws {
		return w.awsDel(a, haveResult)
	}
	n := a.net
	if !n.up {
		return errAway
	}
	if n.refuses {
		return errRefused
	}
	if a.sb.alive && len(a.ips) > 0 {
		err := inNetns(a.sb.path, func(h *netlink.Handle) error {
			for _, name := range []string{a.IfName, a.furtherNames[1]} {
				l, err := h.LinkByName(name)
				if err != nil {
					continue // gone already, or there was none
				}
				if err := h.LinkDel(l); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, unix.ENODEV) {
			return err
		}
	}
	// Rules of addresses that are its own by its own IPAM.
	if ips := n.holds(a.owner()); len(ips) > 0 {
		if err := w.delRulesOf(a); err != nil {
			return err
		}
	}
	a.holds = false
	return n.release(a.owner())
}

// awsDel goes by what ipamd knows and, while it is away, by prevResult.
func (w *world) awsDel(a *att, haveResult bool) error {
	ips := a.net.reserved[a.owner()]
	switch {
	case a.net.up && a.net.refuses:
		return errRefused
	case !a.net.up && haveResult:
		ips = a.ips
	case !a.net.up || len(ips) == 0: // no way to know, or an unknown pod
		return nil
	}
	if err := w.delByAddress(ips, a.table); err != nil {
		return err
	}
	if !a.net.up {
		return nil
	}
	a.holds = false
	return a.net.release(a.owner())
}

// delRulesOf removes the attachment's rules, but those by the name of its link when another link has that by now: a
// replay is a late DEL, and of a primary that goes by names backstop can know nothing.
func (w *world) delRulesOf(a *att) error {
	l, err := list()
	if err != nil {
		return err
	}
	renewed := false
	for _, it := range l.items {
		renewed = renewed || it.kind == "link" && it.name == a.link && it.index != a.index
	}
	for _, it := range l.items {
		if it.kind == "rule" && a.wants(it) && (it.name == "" || !renewed) {
			err = errors.Join(err, sendRaw(unix.RTM_DELRULE, it))
		}
	}
	return err
}

// primaryType is the plugin's name in the lists. A replay starts it as a process, which asks the model's own.
const (
	primaryType  = "modelprimary"
	controlPath  = "/run/model/control.sock"
	programs     = "/run/model/bin"
	answerFailed = 999
)

// request is what the process hands on of its call.
type request struct {
	Verb       string
	Key        attachment.Key
	Netns      string
	HaveResult bool
}

// primaryMain is the primary as a process.
func primaryMain() int {
	var conf struct {
		Name       string
		PrevResult json.RawMessage
	}
	b, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = json.Unmarshal(b, &conf)
	}
	var c net.Conn
	if err == nil {
		c, err = net.Dial("unix", controlPath)
	}
	var answer string
	if err == nil {
		defer c.Close()
		err = json.NewEncoder(c).Encode(request{
			Verb: os.Getenv("CNI_COMMAND"), Netns: os.Getenv("CNI_NETNS"), HaveResult: conf.PrevResult != nil,
			Key: attachment.Key{Network: conf.Name, ContainerID: os.Getenv("CNI_CONTAINERID"), IfName: os.Getenv("CNI_IFNAME")},
		})
	}
	if err == nil {
		err = json.NewDecoder(c).Decode(&answer)
	}
	if err != nil {
		answer = err.Error()
	}
	if answer != "" {
		fmt.Printf(`{"cniVersion":"1.1.0","code":%d,"msg":%q}`+"\n", answerFailed, answer)
		return 1
	}
	return 0
}

// serve answers the primary's processes. What one of them removes is forgiven for its own attachment alone: backstop
// sent it.
func (w *world) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		var r request
		answer := ""
		err = json.NewDecoder(c).Decode(&r)
		if err == nil {
			err = w.replayed(r)
		}
		if err != nil {
			answer = err.Error()
		}
		_ = json.NewEncoder(c).Encode(answer)
		c.Close()
	}
}

func (w *world) replayed(r request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.atts[r.Key]; a != nil && a.live() {
		w.lost = append(w.lost, fmt.Sprintf("a replay was sent for %s, which lives", a))
	}
	before, err := list()
	if err != nil {
		return err
	}
	failed := w.primaryDel(r.Key, r.HaveResult)
	after, err := list()
	if err != nil {
		return err
	}
	w.forgive(before, after, w.atts[r.Key])
	w.note("  replay: DEL of %s netns %q: %v", r.Key, r.Netns, failed)
	return failed
}
