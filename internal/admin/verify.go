// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// progressEvery is how many rows pass between two reports of progress.
const progressEvery = 10_000

// Verify recomputes every counter of the store from closings, events and open
// reservations, in one consistent snapshot, on a running store too (SPEC RES-7).
func (s *Service) Verify(ctx context.Context, a Actor, r VerifyRequest) (VerifyAnswer, error) {
	if err := permit(a, OpVerify); err != nil {
		return VerifyAnswer{}, err
	}
	at := s.Clock.Now()
	v := ledger.NewVerifier(at)
	if err := s.Verifiable.View(ctx, func(reader store.Reader) error { return feed(ctx, v, reader, r.Progress) }); err != nil {
		return VerifyAnswer{}, answer(err)
	}
	out := VerifyAnswer{At: instant(at), Differences: []DifferenceView{}}
	for _, d := range v.Differences() {
		view := DifferenceView{
			Workspace: d.Counter.Workspace, Limit: d.Counter.Limit, Subject: d.Counter.Subject, Epoch: d.Counter.Epoch,
			Window: d.Counter.Window, Figure: d.Figure, Have: d.Have, Want: d.Want,
		}
		if !d.ID.IsZero() {
			view.Request = d.ID.String()
		}
		out.Differences = append(out.Differences, view)
	}
	out.Counts = VerifyCounts(v.Counts())
	out.Balanced = len(out.Differences) == 0
	return out, nil
}

// feed walks a snapshot in the order that the verifier needs.
func feed(ctx context.Context, v *ledger.Verifier, reader store.Reader, progress func(VerifyCounts)) error {
	rows := 0
	step := func() error {
		if rows++; rows%progressEvery == 0 {
			if progress != nil {
				progress(VerifyCounts(v.Counts()))
			}
			return ctx.Err()
		}
		return nil
	}
	if before, err := reader.Dropped(); err != nil {
		return err
	} else if before > 0 {
		v.Dropped(before)
	}
	whole, err := reader.Whole()
	if err != nil {
		return err
	}
	v.RolledFrom(whole)
	err = reader.Counters(func(c ledger.Counter, state *ledger.State) error {
		v.Counter(c, state)
		return step()
	})
	if err != nil {
		return err
	}
	err = reader.Reservations(func(r *ledger.Reservation) error {
		v.Reservation(r)
		return step()
	})
	if err != nil {
		return err
	}
	err = reader.Closings(func(c store.Closing) error {
		v.Closing(c.Counter, c.Kind, c.Credit, c.Amount)
		return step()
	})
	if err != nil {
		return err
	}
	err = reader.Events(func(e *ledger.Event) error {
		v.Event(e)
		return step()
	})
	if err != nil {
		return err
	}
	err = reader.Calls(func(call *store.Call) error {
		v.Call(&call.Call)
		return step()
	})
	if err != nil {
		return err
	}
	err = reader.Rollups(func(r *ledger.Rollup) error {
		v.Rollup(r)
		return step()
	})
	if err != nil {
		return err
	}
	return reader.Unrolled(func(e *ledger.Event) error {
		v.Unrolled(e)
		return step()
	})
}
