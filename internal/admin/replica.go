// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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
	// clockOffMicros from the store's makes a process's clock one that is off.
	clockOffMicros = 5_000_000
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
	// ClockOffsetMillis is the store's clock less its own.
	ClockOffsetMillis int64  `json:"clock_offset_ms" doc:"the store's clock less its own, as it last measured it; the store's time decides"`
	ClockOff          bool   `json:"clock_off" doc:"more than five seconds"`
	File              string `json:"file" doc:"what tells its configuration file from others; empty: it runs without one"`
	FileInForce       bool   `json:"file_in_force" doc:"the file that was applied last declares the same"`
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
	_, inForce := FileInForce(list.List, "")
	for i := range list.List {
		out.Replicas = append(out.Replicas, viewReplica(&list.List[i], inForce, list.Now))
	}
	return out, nil
}

func viewReplica(r, inForce *store.Replica, now int64) ReplicaAnswer {
	return ReplicaAnswer{
		ID: r.ID, Name: r.Name, Version: r.Version, State: stateOf(r, now),
		StartedAt: instant(r.StartedAt), SeenAt: instant(r.SeenAt), Open: r.Open,
		ClockOffsetMillis: r.OffsetMicros / 1000, ClockOff: ClockOff(r.OffsetMicros),
		File: r.File, FileInForce: inForce != nil && r.File == inForce.File,
	}
}

// ClockOff tells whether a process's clock is more than five seconds from the
// store's (ENGINE 7).
func ClockOff(offsetMicros int64) bool {
	return offsetMicros > clockOffMicros || offsetMicros < -clockOffMicros
}

// FileInForce finds a process among all, and the one that has applied a
// configuration file last of all; nil: there is none (SPEC STO-2).
func FileInForce(list []store.Replica, process string) (own, last *store.Replica) {
	for i := range list {
		r := &list[i]
		if r.ID == process {
			own = r
		}
		if r.File != "" && (last == nil || r.AppliedAt > last.AppliedAt) {
			last = r
		}
	}
	return own, last
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
	at := slices.IndexFunc(list.List, func(one store.Replica) bool { return one.ID == r.ID })
	if at < 0 {
		return out, fault.New(fault.NotFound, "there is no replica %s", document.Quote(r.ID))
	}
	one := &list.List[at]
	if stateOf(one, list.Now) == "running" {
		return out, fault.New(fault.Conflict, "replica %s gave a sign of life %d seconds ago: stop it first", document.Quote(r.ID), (list.Now-one.SeenAt)/1_000_000)
	}
	if out.Swept, err = s.sweepLeft(ctx, r.ID); err != nil {
		return out, answer(err)
	}
	entry, err := forgotten(viewReplica(one, nil, list.Now), out)
	if err != nil {
		return out, err
	}
	entry.At, entry.Actor, entry.Name = s.Clock.Now(), a.Name, one.Name
	if err := s.Shared.Forget(ctx, r.ID, entry); err != nil && !errors.Is(err, store.ErrNotFound) {
		return out, answer(err)
	}
	return out, nil
}

// forgotten is the entry of the audit (SPEC ADM-3): no workspace's, as the process
// is none's.
func forgotten(was ReplicaAnswer, done ReplicaForgetAnswer) (entry store.Audit, err error) {
	entry = store.Audit{Action: string(OpReplicaForget), Kind: "replica", ID: was.ID}
	if entry.Before, err = json.Marshal(was); err == nil {
		entry.After, err = json.Marshal(done)
	}
	if err != nil {
		return entry, fmt.Errorf("write an audit entry: %w", err)
	}
	return entry, nil
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
