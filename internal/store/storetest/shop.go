// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/window"
)

const (
	holdMicros = int64(30 * time.Minute / time.Microsecond)
	dollar     = int64(1_000_000_000)
)

// shop is one workspace with a limit of every kind.
type shop struct {
	workspace, key string
	// budget, in nano-dollars, reserves in an hour's window; slots run at once;
	// rpm and tpm fill buckets; cap bounds the day's spend; credit is the
	// balance's line.
	budget, slots, rpm, tpm, cap, credit int64
	zone                                 *time.Location
	zoneEpoch                            uint32
}

func newShop(workspace string) *shop {
	return &shop{
		workspace: workspace, key: "key_1", budget: 100 * dollar, slots: 1000, rpm: 1_000_000, tpm: 1_000_000_000,
		cap: 1_000_000 * dollar, credit: 1_000_000 * dollar, zone: time.UTC, zoneEpoch: 1,
	}
}

func (s *shop) counter(limit string) ledger.Counter {
	c := ledger.Counter{Workspace: s.workspace, Limit: limit, Epoch: 1, Subject: s.key}
	if limit == "funds" {
		c.Subject = ""
	}
	return c
}

func (s *shop) checks() []ledger.Check {
	return []ledger.Check{
		{Counter: s.counter("funds"), Kind: ledger.KindFunds, Mode: ledger.Observe, Charges: ledger.Spend, Credit: s.credit, Code: fault.InsufficientBalance},
		{Counter: s.counter("days"), Kind: ledger.KindDays, Mode: ledger.Observe, Charges: ledger.Spend, Amount: s.cap, Span: 1, Zone: s.zone, ZoneEpoch: s.zoneEpoch, Code: fault.DayLimitReached},
		{Counter: s.counter("rpm"), Kind: ledger.KindBucket, Mode: ledger.Take, Wants: ledger.Requests, Amount: s.rpm, Code: fault.APIKeyRPMExceeded},
		{Counter: s.counter("tpm"), Kind: ledger.KindBucket, Mode: ledger.Take, Wants: ledger.Input, Charges: ledger.Tokens, Amount: s.tpm, Code: fault.APIKeyTPMExceeded},
		{Counter: s.counter("slots"), Kind: ledger.KindGauge, Mode: ledger.Take, Wants: ledger.Slots, Amount: s.slots, Code: fault.APIKeyConcurrencyExceeded},
		s.budgetCheck("budget", ledger.Spend, s.budget),
	}
}

func (s *shop) budgetCheck(limit string, metric ledger.Metric, amount int64) ledger.Check {
	return ledger.Check{
		Counter: s.counter(limit), Kind: ledger.KindFixed, Mode: ledger.Reserve, Wants: metric, Charges: metric, Amount: amount,
		Window: window.Spec{Length: int64(time.Hour / time.Microsecond)}, Code: fault.BudgetExceeded,
	}
}

// admit asks to run one request on a model, with its worst case.
func (s *shop) admit(d *desk, model string, spend int64) *ledger.Op {
	op := s.admission(model, spend, d.newID())
	op.Name(d.store.Now())
	return op
}

func (s *shop) admission(model string, spend int64, id ledger.ID) *ledger.Op {
	return &ledger.Op{
		Verb: ledger.Admit, ID: id, Workspace: s.workspace, Process: "p1", HoldMicros: holdMicros,
		Subjects: ledger.Subjects{Key: s.key, User: "ada", Team: "red", Project: "x", Tags: []string{"t1"}},
		Checks:   s.checks(), Note: []byte("note"), ClientID: "client-1",
		Candidates: []ledger.Candidate{{
			Model: model, Provider: "acme", Price: "price_1",
			Wants:  ledger.Amounts{Spend: spend, Tokens: 300, Input: 100, Requests: 1, Slots: 1},
			Checks: []ledger.Check{s.budgetCheck("model:"+model, ledger.Tokens, 1_000_000_000)},
		}},
	}
}

// settle ends a request with one attempt's use.
func (s *shop) settle(r *ledger.Reservation, spend int64) *ledger.Op {
	return &ledger.Op{
		Verb: ledger.Settle, Workspace: s.workspace, Reservation: r,
		Settlement: &ledger.Settlement{
			Outcome: "ok", Note: []byte("end"),
			Attempts: []ledger.Attempt{{
				Model: r.Model, Provider: r.Provider, Price: r.Price, Spend: spend, Tokens: 120, Input: 100, Detail: []byte("usage"),
			}},
		},
	}
}

func (s *shop) end(verb ledger.Verb, r *ledger.Reservation) *ledger.Op {
	return &ledger.Op{Verb: verb, Workspace: s.workspace, Reservation: r, HoldMicros: holdMicros, Settlement: &ledger.Settlement{}}
}

// open admits a request that must pass.
func (s *shop) open(t *testing.T, d *desk, spend int64) *ledger.Reservation {
	t.Helper()
	result := d.do(t, s.admit(d, "m1", spend))
	if result.Verdict != ledger.Admitted {
		t.Fatalf("admit: verdict %d, refusal %+v", result.Verdict, result.Refusal)
	}
	return result.Reservation
}
