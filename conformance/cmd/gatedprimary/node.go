package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	current "github.com/containernetworking/cni/pkg/types/100"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// dress adds what an AWS-style primary adds beside link and address, and says so in the result where it changes it.
func dress(c *config, result *current.Result) (*pod, error) {
	p := &pod{Table: c.Table}
	if host := hostLink(result); host != nil {
		if c.HostName != "" {
			if err := ip("link", "set", host.Name, "name", c.HostName); err != nil {
				return nil, err
			}
			host.Name = c.HostName
		}
		p.HostLink = host.Name
	}
	for _, a := range result.IPs {
		address := a.Address.IP
		if c.Rules {
			if err := errors.Join(
				ip(family(address), "rule", "add", "pref", "512", "to", address.String(), "lookup", "main"),
				ip(family(address), "rule", "add", "pref", "1536", "from", address.String(), "lookup", fmt.Sprint(c.Table)),
			); err != nil {
				return nil, err
			}
			p.Rules = append(p.Rules, address.String())
		}
		if c.HostRoute && p.HostLink != "" {
			if err := ip(family(address), "route", "replace", address.String(), "dev", p.HostLink); err != nil {
				return nil, err
			}
			p.Routes = append(p.Routes, address.String())
		}
	}
	return p, nil
}

// undress removes the rules and routes again.
func undress(p *pod) error {
	var errs []error
	for _, address := range p.Rules {
		family := family(net.ParseIP(address))
		errs = append(errs,
			ip(family, "rule", "del", "pref", "512", "to", address, "lookup", "main"),
			ip(family, "rule", "del", "pref", "1536", "from", address, "lookup", fmt.Sprint(p.Table)))
	}
	for _, address := range p.Routes {
		errs = append(errs, ip(family(net.ParseIP(address)), "route", "del", address, "dev", p.HostLink))
	}
	return errors.Join(errs...)
}

// hostLink is the first interface of a result that is on the node, nil if none is: macvlan has no such thing.
func hostLink(result *current.Result) *current.Interface {
	for _, i := range result.Interfaces {
		if i.Sandbox == "" {
			return i
		}
	}
	return nil
}

func family(address net.IP) string {
	if address.To4() != nil {
		return "-4"
	}
	return "-6"
}

// ip runs the ip program. What is there already when it is added, and what is gone when it is removed, is fine.
func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	for _, fine := range []string{"File exists", "No such file or directory", "No such process", "Cannot find device"} {
		if strings.Contains(string(out), fine) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// writeSeen keeps what the node looks like now as <dir>/last; a story looks at it right after the DEL.
func writeSeen(dir string) error {
	if dir == "" {
		return nil
	}
	seen, err := testnode.View{}.Take()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("writing what this DEL saw: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "last"), []byte(seen.String()), 0o600); err != nil {
		return fmt.Errorf("writing what this DEL saw: %w", err)
	}
	return nil
}
