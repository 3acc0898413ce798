package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
)

// daemon remembers attachments, across restarts too as long as its file is there.
type daemon struct {
	file string
	pods map[string]*pod
}

// serve answers one question after the other until the process is killed.
func serve(socket, state string) error {
	d := &daemon{file: state, pods: map[string]*pod{}}
	if err := d.load(); err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the socket of an earlier daemon: %w", err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return fmt.Errorf("accepting on %s: %w", socket, err)
		}
		d.answer(c)
	}
}

// answer reads one question and answers it. A caller that only looks whether somebody accepts asks none.
func (d *daemon) answer(c net.Conn) {
	defer c.Close()
	var q request
	if json.NewDecoder(c).Decode(&q) != nil {
		return
	}
	var r reply
	switch q.Op {
	case "recall":
		r.Pod = d.pods[q.Key]
	case "remember":
		d.pods[q.Key] = q.Pod
		r.Error = text(d.save())
	case "release":
		delete(d.pods, q.Key)
		r.Error = text(d.save())
	default:
		r.Error = "no such operation: " + q.Op
	}
	json.NewEncoder(c).Encode(r) // a caller that went away does not need it
}

func text(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

func (d *daemon) load() error {
	data, err := os.ReadFile(d.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remembering: %w", err)
	}
	if err := json.Unmarshal(data, &d.pods); err != nil {
		return fmt.Errorf("remembering from %s: %w", d.file, err)
	}
	return nil
}

func (d *daemon) save() error {
	data, err := json.Marshal(d.pods)
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.file+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(d.file+".new", d.file)
}
