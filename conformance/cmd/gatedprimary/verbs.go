package main

import (
	"context"
	"fmt"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
)

// errAway is the answer while the daemon does not answer.
func errAway(err error) error {
	return types.NewError(types.ErrTryAgainLater, "the daemon is away", err.Error())
}

func add(args *skel.CmdArgs) error {
	c, err := parseConfig(args)
	if err != nil {
		return err
	}
	if _, err := ask(c.Socket, request{Op: "recall", Key: c.key(args)}); err != nil {
		return errAway(err)
	}
	netconf, err := c.delegateConfig()
	if err != nil {
		return err
	}
	made, err := invoke.DelegateAdd(context.TODO(), c.delegateType(), netconf, nil)
	if err != nil {
		return err
	}
	result, err := current.NewResultFromResult(made)
	if err != nil {
		return fmt.Errorf("reading the result of %s: %w", c.delegateType(), err)
	}
	p, err := dress(c, result)
	if err != nil {
		return err
	}
	if _, err := ask(c.Socket, request{Op: "remember", Key: c.key(args), Pod: p}); err != nil {
		return errAway(err)
	}
	return types.PrintResult(result, c.CNIVersion)
}

func del(args *skel.CmdArgs) error {
	c, err := parseConfig(args)
	if err != nil {
		return err
	}
	if err := writeSeen(c.Seen); err != nil {
		return err
	}
	p, err := ask(c.Socket, request{Op: "recall", Key: c.key(args)})
	if err != nil {
		return errAway(err)
	}
	if p == nil {
		return nil // "unknown pod": success, and nothing done
	}
	if err := undress(p); err != nil {
		return err
	}
	netconf, err := c.delegateConfig()
	if err != nil {
		return err
	}
	if err := invoke.DelegateDel(context.TODO(), c.delegateType(), netconf, nil); err != nil {
		return err
	}
	if _, err := ask(c.Socket, request{Op: "release", Key: c.key(args)}); err != nil {
		return errAway(err)
	}
	return nil
}

// check leaves it to the delegate; it sees no host name that was changed after it.
func check(args *skel.CmdArgs) error {
	c, err := parseConfig(args)
	if err != nil {
		return err
	}
	netconf, err := c.delegateConfig()
	if err != nil {
		return err
	}
	return invoke.DelegateCheck(context.TODO(), c.delegateType(), netconf, nil)
}

func status(args *skel.CmdArgs) error {
	c, err := parseConfig(args)
	if err != nil {
		return err
	}
	if _, err := ask(c.Socket, request{Op: "recall"}); err != nil {
		return types.NewError(types.ErrPluginNotAvailable, "the daemon is away", err.Error())
	}
	return nil
}
