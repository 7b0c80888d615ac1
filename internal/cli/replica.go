// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strconv"

	"github.com/weirhq/weir/internal/admin"
)

type replicasCmd struct {
	List   replicasListCmd   `cmd:"" help:"List the processes that share the store."`
	Forget replicasForgetCmd `cmd:"" help:"Charge what a dead process left open, now."`
}

type replicasListCmd struct{ reach }

func (c *replicasListCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.ReplicaList(s.ctx, admin.ReplicaListRequest{})
		return show(a, answer, err, writeReplicas)
	})
}

func writeReplicas(w io.Writer, answer *admin.ReplicaListAnswer) error {
	t := &table{empty: "no processes", columns: []column{
		{"id", left},
		{"name", left},
		{"version", left},
		{"state", left},
		{"open", right},
		{"clock", right},
		{"file", left},
		{"started", left},
		{"last seen", left},
	}}
	for i := range answer.Replicas {
		r := &answer.Replicas[i]
		t.add(r.ID, r.Name, r.Version, r.State, strconv.FormatInt(r.Open, 10), clockWord(r), fileWord(r), r.StartedAt, r.SeenAt)
	}
	return t.write(w)
}

// clockWord is how far a process's own clock is from the store's.
func clockWord(r *admin.ReplicaAnswer) string {
	word := fmt.Sprintf("%+d ms", -r.ClockOffsetMillis)
	if r.ClockOff {
		word += " (off)"
	}
	return word
}

func fileWord(r *admin.ReplicaAnswer) string {
	switch {
	case r.File == "":
		return "none"
	case r.FileInForce:
		return r.File
	default:
		return r.File + " (not in force)"
	}
}

type replicasForgetCmd struct {
	ID string `arg:"" placeholder:"ID" help:"Id of a process that is dead, as the list gives it."`
	reach
}

func (c *replicasForgetCmd) Help() string {
	return `A dead process's slots are free after 45 seconds by themselves, and what its requests
may have cost is charged at the end of their holds. This charges it now, at the worst
case. Should the process come back with what was used, that corrects the charge.`
}

func (c *replicasForgetCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.ReplicaForget(s.ctx, admin.ReplicaForgetRequest{ID: c.ID})
		return show(a, answer, err, func(w io.Writer, f *admin.ReplicaForgetAnswer) error {
			return line(w, fmt.Sprintf("%s: %d requests charged at their worst case", printable(f.ID), f.Swept))
		})
	})
}
