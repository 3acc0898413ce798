package main

import (
	"encoding/json"
	"fmt"
	"net"
	"time"
)

// pod is what the daemon remembers of an attachment: what its DEL has to undo.
type pod struct {
	Rules    []string `json:"rules"`  // the addresses with rules
	Table    int      `json:"table"`  // where the rules lead
	Routes   []string `json:"routes"` // the addresses with a host route
	HostLink string   `json:"hostLink"`
}

// request is one question to the daemon; each has a connection of its own.
type request struct {
	Op  string `json:"op"` // remember, recall, release
	Key string `json:"key"`
	Pod *pod   `json:"pod,omitempty"`
}

type reply struct {
	Pod   *pod   `json:"pod,omitempty"` // nil: unknown
	Error string `json:"error,omitempty"`
}

// answerLimit is how long a daemon may take; one that was stopped must not hang a plugin.
const answerLimit = 2 * time.Second

// ask puts one question to the daemon.
func ask(socket string, q request) (*pod, error) {
	c, err := net.DialTimeout("unix", socket, answerLimit)
	if err != nil {
		return nil, fmt.Errorf("asking the daemon to %s %s: %w", q.Op, q.Key, err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return nil, fmt.Errorf("asking the daemon to %s %s: %w", q.Op, q.Key, err)
	}
	if err := json.NewEncoder(c).Encode(q); err != nil {
		return nil, fmt.Errorf("asking the daemon to %s %s: %w", q.Op, q.Key, err)
	}
	var r reply
	if err := json.NewDecoder(c).Decode(&r); err != nil {
		return nil, fmt.Errorf("waiting for the daemon's answer to %s %s: %w", q.Op, q.Key, err)
	}
	if r.Error != "" {
		return nil, fmt.Errorf("the daemon could not %s %s: %s", q.Op, q.Key, r.Error)
	}
	return r.Pod, nil
}
