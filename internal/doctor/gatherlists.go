package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/backstop-cni/backstop/internal/conflist"
	"github.com/backstop-cni/backstop/internal/install"
	"github.com/backstop-cni/backstop/internal/primary"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/plugin"
	cniversion "github.com/containernetworking/cni/pkg/version"
)

type subnet struct {
	netip.Prefix
	network string
}

// lists reads the conf directory, and asks the probes of its entries.
func (x *gathering) lists(ctx context.Context) error {
	files, bad, err := conflist.Read(x.ConfDir)
	if errors.Is(err, fs.ErrPermission) {
		x.unread(err)
	} else if err != nil {
		return err
	}
	for _, b := range bad {
		if errors.Is(b, fs.ErrPermission) {
			x.unread(b)
		} else {
			x.f.BadFiles = append(x.f.BadFiles, b.Error())
		}
	}
	picked, perr := install.Pick(x.ConfDir)
	if perr != nil && err == nil {
		x.f.NoPick = perr.Error()
	}
	x.f.Picked = picked.Path
	for _, file := range files {
		x.list(ctx, file)
	}
	if len(x.f.Journals) == 0 || x.Journal != "" {
		x.named("", x.Journal)
	}
	return nil
}

func (x *gathering) list(ctx context.Context, file conflist.File) {
	l := List{Path: file.Path, Network: file.Name, CNIVersion: highest(file.Raw)}
	for i, p := range file.Plugins {
		typ := conflist.Type(p)
		l.Types = append(l.Types, typ)
		x.aws = x.aws || typ == "aws-cni"
		if typ != "backstop" {
			continue
		}
		cfg, problems, err := plugin.ParseConfig(p)
		if err != nil {
			continue // it was read with the file
		}
		e := Entry{At: i, Journal: cfg.Journal, Probed: len(cfg.Probe) > 0, Unknown: cfg.Unknown}
		for _, problem := range problems {
			e.Problems = append(e.Problems, problem.Error())
		}
		l.Entries = append(l.Entries, e)
		x.f.Plugin.Needed = true
		x.settings = append(x.settings, place{file.Name, cfg.Settings()})
		x.named(file.Name, cfg.Journal)
		x.probes(ctx, file.Path, cfg)
	}
	if len(l.Entries) > 0 {
		x.subnets = append(x.subnets, subnets(file)...)
	}
	x.f.Lists = append(x.f.Lists, l)
}

// named notes a journal and a network that is recorded in it. With --journal the others are not looked at.
func (x *gathering) named(network, path string) {
	if path == "" {
		path = journal.DefaultPath
	}
	if x.Journal != "" && path != x.Journal {
		return
	}
	i := slices.IndexFunc(x.f.Journals, func(j Journal) bool { return j.Path == path })
	if i < 0 {
		i = len(x.f.Journals)
		x.f.Journals = append(x.f.Journals, Journal{Path: path})
	}
	if j := &x.f.Journals[i]; network != "" && !slices.Contains(j.Networks, network) {
		j.Networks = append(j.Networks, network)
	}
}

// highest is the highest version that a list says, "0.1.0" where it says none, as libcni takes it.
func highest(raw []byte) string {
	var l struct {
		CNIVersion  string   `json:"cniVersion"`
		CNIVersions []string `json:"cniVersions"`
	}
	_ = json.Unmarshal(raw, &l)
	best := "0.1.0"
	for _, v := range append(l.CNIVersions, l.CNIVersion) {
		if more, err := cniversion.GreaterThan(v, best); err == nil && more {
			best = v
		}
	}
	return best
}

// subnets are those that a list's plugins give addresses from, wherever in the list they say so.
func subnets(file conflist.File) (out []subnet) {
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				walk(k, inner)
			}
		case []any:
			for _, inner := range v {
				walk(key, inner)
			}
		case string:
			if p, err := netip.ParsePrefix(v); err == nil && key == "subnet" && p.Bits() > 0 {
				out = append(out, subnet{p.Masked(), file.Name})
			}
		}
	}
	for _, p := range file.Plugins {
		var v any
		_ = json.Unmarshal(p, &v)
		walk("", v)
	}
	return out
}

// probes asks each probe of an entry by itself.
func (x *gathering) probes(ctx context.Context, path string, cfg *plugin.Config) {
	from := len(x.f.Probes)
	answered := false
	for _, p := range cfg.Probe {
		s := ask(ctx, p, cfg.ProbeTimeout)
		if s != Answers && os.Geteuid() != 0 {
			x.unread(errors.New(path + ": whether " + p + " answers is not for everybody to see"))
			continue
		}
		answered = answered || s == Answers
		x.f.Probes = append(x.f.Probes, Probe{Path: path, Address: p, State: s})
	}
	for i := range x.f.Probes[from:] {
		x.f.Probes[from+i].Answered = answered
	}
}

func ask(ctx context.Context, probe string, timeout time.Duration) ProbeState {
	u, err := url.Parse(probe)
	if err != nil {
		return WrongKind
	}
	if u.Scheme != "tcp" {
		fi, err := os.Stat(u.Path)
		switch {
		case err != nil:
			return Missing
		case u.Scheme == "file":
			return Answers
		case fi.Mode().Type() != fs.ModeSocket:
			return WrongKind
		}
	}
	if primary.Reachable(ctx, []string{probe}, timeout) {
		return Answers
	}
	return Refused
}

// about is what the plugin says of itself when it is started without a verb.
var aboutPlugin = regexp.MustCompile(`(?m)^backstop (\S+), a chained CNI plugin`)

// plugin looks at the binary, and starts it without a verb: it says its version and ends.
func (x *gathering) plugin(ctx context.Context) {
	p := &x.f.Plugin
	p.Path = filepath.Join(x.BinDir, "backstop")
	fi, err := os.Stat(p.Path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			x.unread(err)
		}
		return
	}
	p.There, p.Executable = true, fi.Mode().IsRegular() && fi.Mode().Perm()&0o111 != 0
	if !p.Executable || !p.Needed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, p.Path)
	c.Env = []string{"CNI_COMMAND="}
	out, _ := c.CombinedOutput() // what does not start says no version
	if m := aboutPlugin.FindSubmatch(out); m != nil {
		p.Version = string(m[1])
	}
}
