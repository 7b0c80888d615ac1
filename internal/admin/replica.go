// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

const (
	// aliveMicros since its last sign of life a process is taken to live: it gives
	// one every ten seconds.
	aliveMicros = 25_000_000
	// silentMicros make it dead for all others (SPEC section 12, RES-5).
	silentMicros = 45_000_000
	// leftPage is how many reservations of a dead process are read at once.
	leftPage = 256
)

// ReplicaListRequest lists the processes that share the store.
type ReplicaListRequest struct{}

// ReplicaListAnswer is all of them, the first started first.
type ReplicaListAnswer struct {
	Replicas []ReplicaAnswer `json:"replicas"`
}

// ReplicaAnswer is one process.
type ReplicaAnswer struct {
	ID        string `json:"id"`
	Name      string `json:"name" doc:"host and process number"`
	Version   string `json:"version"`
	State     string `json:"state" enum:"running,silent,dead,stopped" doc:"silent: no sign of life for 25 seconds; dead: for 45, its slots are free again"`
	StartedAt string `json:"started_at"`
	SeenAt    string `json:"seen_at" doc:"its last sign of life"`
	Open      int64  `json:"open" doc:"its requests that have not ended"`
}

// ReplicaForgetRequest charges what a dead process left open, now.
type ReplicaForgetRequest struct {
	ID string `path:"id"`
}

// ReplicaForgetAnswer tells what that came to.
type ReplicaForgetAnswer struct {
	ID    string `json:"id"`
	Swept int64  `json:"swept" doc:"requests that were charged at their worst case"`
}

// ReplicaList lists the processes that share the store.
func (s *Service) ReplicaList(ctx context.Context, a Actor, _ ReplicaListRequest) (ReplicaListAnswer, error) {
	out := ReplicaListAnswer{Replicas: []ReplicaAnswer{}}
	list, err := s.replicas(ctx, a, OpReplicaList)
	if err != nil {
		return out, err
	}
	for i := range list.List {
		r := &list.List[i]
		out.Replicas = append(out.Replicas, ReplicaAnswer{
			ID: r.ID, Name: r.Name, Version: r.Version, State: stateOf(r, list.Now),
			StartedAt: instant(r.StartedAt), SeenAt: instant(r.SeenAt), Open: r.Open,
		})
	}
	return out, nil
}

func (s *Service) replicas(ctx context.Context, a Actor, op Op) (store.Replicas, error) {
	if err := permit(a, op); err != nil {
		return store.Replicas{}, err
	}
	if s.Shared == nil {
		return store.Replicas{}, fault.New(fault.InvalidRequest, "this store is one process's alone: it has no replicas")
	}
	list, err := s.Shared.Replicas(ctx)
	return list, answer(err)
}

func stateOf(r *store.Replica, now int64) string {
	switch age := now - r.SeenAt; {
	case r.Stopped:
		return "stopped"
	case age < aliveMicros:
		return "running"
	case age < silentMicros:
		return "silent"
	default:
		return "dead"
	}
}

// ReplicaForget charges what a dead process left open at its worst case, instead
// of at the end of its holds (SPEC RES-5). Should it come back with what was used,
// that corrects the charge (SPEC RES-2).
func (s *Service) ReplicaForget(ctx context.Context, a Actor, r ReplicaForgetRequest) (ReplicaForgetAnswer, error) {
	out := ReplicaForgetAnswer{ID: r.ID}
	list, err := s.replicas(ctx, a, OpReplicaForget)
	if err != nil {
		return out, err
	}
	known := false
	for i := range list.List {
		if one := &list.List[i]; one.ID == r.ID {
			known = true
			if stateOf(one, list.Now) == "running" {
				return out, fault.New(fault.Conflict, "replica %s gave a sign of life %d seconds ago: stop it first", document.Quote(r.ID), (list.Now-one.SeenAt)/1_000_000)
			}
		}
	}
	if !known {
		return out, fault.New(fault.NotFound, "there is no replica %s", document.Quote(r.ID))
	}
	if out.Swept, err = s.sweepLeft(ctx, r.ID); err != nil {
		return out, answer(err)
	}
	if err := s.Shared.Forget(ctx, r.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
		return out, answer(err)
	}
	return out, nil
}

func (s *Service) sweepLeft(ctx context.Context, process string) (swept int64, err error) {
	for after := (*ledger.Reservation)(nil); ; {
		list, err := s.Shared.Left(ctx, process, after, leftPage)
		if err != nil {
			return swept, err
		}
		for _, r := range list {
			result, err := s.Decider.Submit(ctx, &ledger.Op{Verb: ledger.Sweep, Workspace: r.Workspace, Reservation: r})
			if err != nil {
				return swept, err
			}
			if result.Verdict == ledger.Done && !r.Tombstone {
				swept++
			}
		}
		if len(list) < leftPage {
			return swept, nil
		}
		after = list[len(list)-1]
	}
}
