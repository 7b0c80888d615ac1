// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/store/storetest"
	"github.com/weirhq/weir/internal/window"
)

const much = int64(1) << 60

// cycle is one request on four counters of a workspace and, with a key, on four
// of that.
func cycle(id ledger.ID, workspace, key string, at int64) *ledger.Op {
	counter := func(limit, subject string) ledger.Counter {
		return ledger.Counter{Workspace: workspace, Limit: limit, Epoch: 1, Subject: subject}
	}
	hour := window.Spec{Length: int64(time.Hour / time.Microsecond)}
	checks := []ledger.Check{
		{Counter: counter("funds", ""), Kind: ledger.KindFunds, Mode: ledger.Observe, Charges: ledger.Spend, Credit: much, Code: fault.InsufficientBalance},
		{Counter: counter("rpm", ""), Kind: ledger.KindBucket, Mode: ledger.Take, Wants: ledger.Requests, Amount: 1 << 40, Code: fault.WorkspaceRPMExceeded},
		{Counter: counter("slots", ""), Kind: ledger.KindGauge, Mode: ledger.Take, Wants: ledger.Slots, Amount: 1 << 40, Code: fault.WorkspaceConcurrencyExceeded},
		{Counter: counter("budget", ""), Kind: ledger.KindFixed, Mode: ledger.Reserve, Wants: ledger.Spend, Charges: ledger.Spend, Amount: much, Window: hour, Code: fault.BudgetExceeded},
	}
	if key != "" {
		checks = append(checks,
			ledger.Check{Counter: counter("days", key), Kind: ledger.KindDays, Mode: ledger.Observe, Charges: ledger.Spend, Amount: much, Span: 1, ZoneEpoch: 1, Code: fault.DayLimitReached},
			ledger.Check{Counter: counter("key rpm", key), Kind: ledger.KindBucket, Mode: ledger.Take, Wants: ledger.Requests, Amount: 1 << 40, Code: fault.APIKeyRPMExceeded},
			ledger.Check{Counter: counter("key tpm", key), Kind: ledger.KindBucket, Mode: ledger.Take, Wants: ledger.Input, Charges: ledger.Tokens, Amount: 1 << 40, Code: fault.APIKeyTPMExceeded},
			ledger.Check{Counter: counter("key budget", key), Kind: ledger.KindFixed, Mode: ledger.Reserve, Wants: ledger.Spend, Charges: ledger.Spend, Amount: much, Window: hour, Code: fault.BudgetExceeded},
		)
	}
	op := &ledger.Op{
		Verb: ledger.Admit, ID: id, Workspace: workspace, Process: "p1", HoldMicros: int64(30 * time.Minute / time.Microsecond),
		Subjects: ledger.Subjects{Key: key, User: "ada"}, Checks: checks, Note: make([]byte, 100),
		Candidates: []ledger.Candidate{{
			Model: "gpt-5", Provider: "openai", Price: "price_1",
			Wants: ledger.Amounts{Spend: 2_000_000, Tokens: 3000, Input: 1000, Requests: 1, Slots: 1},
		}},
	}
	op.Name(at)
	return op
}

func settle(r *ledger.Reservation, spend int64) *ledger.Op {
	return &ledger.Op{Verb: ledger.Settle, Workspace: r.Workspace, Reservation: r, Settlement: &ledger.Settlement{
		Note: make([]byte, 60),
		Attempts: []ledger.Attempt{{
			Model: r.Model, Provider: r.Provider, Price: r.Price, Spend: spend, Tokens: 2000, Input: 1000, Detail: make([]byte, 40),
		}},
	}}
}

func newID(at int64) ledger.ID {
	var random [10]byte
	_, _ = rand.Read(random[:])
	return ledger.NewID(at, random)
}

// open opens a book until the test's end.
func open(tb testing.TB, o postgres.Options) *postgres.Book {
	tb.Helper()
	b, err := postgres.Open(tb.Context(), o)
	if err != nil {
		tb.Fatalf("open: %v", err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return b
}

// balanced takes the books and checks their equations.
func balanced(tb testing.TB, b *postgres.Book) *storetest.Books {
	tb.Helper()
	books, err := storetest.Take(tb.Context(), b)
	if err == nil {
		err = books.Balance()
	}
	if err != nil {
		tb.Fatalf("books: %v", err)
	}
	return books
}
