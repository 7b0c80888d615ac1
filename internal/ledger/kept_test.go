// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/ledger"
)

func drawEnding(t *rapid.T) *ledger.Op {
	op := &ledger.Op{
		Verb: rapid.SampledFrom([]ledger.Verb{ledger.Settle, ledger.Void, ledger.Undo}).Draw(t, "verb"),
		ID:   rapid.Make[ledger.ID]().Draw(t, "id"), Workspace: workspace, Process: rapid.String().Draw(t, "process"),
		HoldMicros: rapid.Int64().Draw(t, "hold"), Again: rapid.Bool().Draw(t, "again"),
	}
	if rapid.Bool().Draw(t, "reserved") {
		r := rapid.Make[ledger.Reservation]().Draw(t, "reservation")
		r.Workspace = workspace
		inWorkspace(r.Holds, r.Checks)
		op.Reservation = &r
	}
	if rapid.Bool().Draw(t, "settled") {
		s := rapid.Make[ledger.Settlement]().Draw(t, "settlement")
		op.Settlement = &s
	}
	return op
}

// TestAnEndingSurvivesASpool: RES-8. All that applying it takes comes back, and
// nothing that is cut short is taken for whole.
func TestAnEndingSurvivesASpool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawEnding(t)
		b := want.Encode()
		got, err := ledger.DecodeOp(b)
		if err != nil {
			t.Fatal(err)
		}
		same(t, want, got)
		if _, err := ledger.DecodeOp(b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")]); err == nil {
			t.Fatal("a part of an operation was read")
		}
	})
}

func TestOnlyEndingsAreKept(t *testing.T) {
	for v := ledger.Admit; v <= ledger.Read; v++ {
		_, err := ledger.DecodeOp((&ledger.Op{Verb: v, Workspace: workspace}).Encode())
		if v.Keeps() != (err == nil) {
			t.Errorf("verb %d: kept %t, read: %v", v, v.Keeps(), err)
		}
	}
}

func FuzzDecodeOp(f *testing.F) {
	f.Add([]byte(nil))
	f.Add((&ledger.Op{
		Verb: ledger.Settle, Workspace: workspace, Reservation: &ledger.Reservation{Workspace: workspace, Holds: []ledger.Hold{{}}},
		Settlement: &ledger.Settlement{Attempts: []ledger.Attempt{{Model: "m", Spend: 7}}},
	}).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		op, err := ledger.DecodeOp(b)
		if err != nil {
			return
		}
		again, err := ledger.DecodeOp(op.Encode())
		if err != nil {
			t.Fatal(err)
		}
		same(t, op, again)
	})
}
