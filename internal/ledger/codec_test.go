// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/ledger"
)

// same compares what was decoded: a list of nothing is no list.
func same(t interface{ Fatalf(string, ...any) }, want, got any) {
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("round trip: %s", diff)
	}
}

// inWorkspace gives nested keys the row's workspace: they are packed without it.
func inWorkspace(holds []ledger.Hold, checks []ledger.CheckRecord) {
	for i := range holds {
		holds[i].Counter.Workspace = workspace
	}
	for i := range checks {
		checks[i].Counter.Workspace = workspace
	}
}

func TestBodiesSurviveTheirStore(t *testing.T) {
	t.Run("reservation", rapid.MakeCheck(func(t *rapid.T) {
		want := rapid.Make[ledger.Reservation]().Draw(t, "reservation")
		want.Workspace, want.EndedAt = workspace, 0 // only a call record has ended
		inWorkspace(want.Holds, want.Checks)
		got, err := ledger.DecodeReservation(want.ID, want.Workspace, want.ExpiresAt, want.Encode())
		if err != nil {
			t.Fatal(err)
		}
		same(t, &want, got)
	}))
	t.Run("event", rapid.MakeCheck(func(t *rapid.T) {
		want := rapid.Make[ledger.Event]().Draw(t, "event")
		want.Workspace = workspace
		for i := range want.Charges {
			want.Charges[i].Counter.Workspace = workspace
		}
		for i := range want.Flows {
			want.Flows[i].Counter.Workspace = workspace
		}
		got := ledger.Event{ // what is in columns
			ID: want.ID, Workspace: workspace, Attempt: want.Attempt, Kind: want.Kind, At: want.At,
			AdmittedAt: want.AdmittedAt, Model: want.Model, Spend: want.Spend, Tokens: want.Tokens,
		}
		if err := got.DecodeInto(want.Encode()); err != nil {
			t.Fatal(err)
		}
		same(t, want, got)
	}))
	t.Run("call", rapid.MakeCheck(func(t *rapid.T) {
		want := rapid.Make[ledger.Call]().Draw(t, "call")
		want.Workspace = workspace
		inWorkspace(want.Holds, want.Checks)
		got := ledger.Call{ // what is in columns
			ID: want.ID, Workspace: workspace, Key: want.Key, Outcome: want.Outcome, Code: want.Code,
			At: want.At, EndedAt: want.EndedAt, Model: want.Model, ClientID: want.ClientID,
		}
		if err := got.DecodeInto(want.Encode()); err != nil {
			t.Fatal(err)
		}
		same(t, want, got)
	}))
	t.Run("counter", rapid.MakeCheck(func(t *rapid.T) {
		want := rapid.Make[ledger.State]().Draw(t, "state")
		got := ledger.State{ // what is in columns
			Kind: want.Kind, Settled: want.Settled, Held: want.Held, Warned: want.Warned, At: want.At,
			Days: &ledger.Days{Zone: "of another row"},
		}
		if err := got.DecodeInto(want.Encode()); err != nil {
			t.Fatal(err)
		}
		same(t, want, got)
	}))
}

func TestDamagedBodiesAreRefused(t *testing.T) {
	r := ledger.Reservation{
		Workspace: workspace, Holds: []ledger.Hold{{Counter: counter("b")}}, Subjects: ledger.Subjects{Tags: []string{"t"}},
		Checks: []ledger.CheckRecord{{Counter: counter("b")}},
	}
	whole := r.Encode()
	for cut := range whole {
		if _, err := ledger.DecodeReservation(r.ID, workspace, 0, whole[:cut]); err == nil {
			t.Fatalf("cut to %d of %d bytes, and read all the same", cut, len(whole))
		}
	}
	if _, err := ledger.DecodeReservation(r.ID, workspace, 0, append(bytes.Clone(whole), 0)); err == nil {
		t.Fatal("a byte too many")
	}
	later := bytes.Clone(whole)
	later[0]++
	if _, err := ledger.DecodeReservation(r.ID, workspace, 0, later); err == nil {
		t.Fatal("a later version")
	}
}

func TestIDsSortByTimeAndHaveOneSpelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Int64Range(0, 1<<47).Draw(t, "at") * 1000
		random := [10]byte(rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "random"))
		a := ledger.NewID(at, random)
		if b := ledger.NewID(at+1000, [10]byte{}); a.Compare(b) >= 0 || strings.Compare(a.String(), b.String()) >= 0 {
			t.Fatalf("%s is not before %s", a, b)
		}
		if a.Millis() != at/1000 {
			t.Fatalf("millis %d, want %d", a.Millis(), at/1000)
		}
		if got, err := ledger.ParseID(a.String()); err != nil || got != a {
			t.Fatalf("%s: %v", a, err)
		}
	})
	good := id(1).String()
	for _, bad := range []string{
		"", "req_", good[4:], "REQ_" + good[4:], strings.ToUpper(good), good + "0", good[:len(good)-1], good + "\n",
		good[:10] + "\n" + good[10:], good[:len(good)-1] + "5", "req_" + strings.Repeat("u", 26),
	} {
		if got, err := ledger.ParseID(bad); err == nil {
			t.Errorf("%q was read as %s", bad, got)
		}
	}
}

func TestEventKindsHaveOneWordEach(t *testing.T) {
	for k := ledger.EventSettled; k <= ledger.EventAdjustment; k++ {
		if got, ok := ledger.ParseEventKind(k.String()); !ok || got != k {
			t.Errorf("%s: %d", k, got)
		}
	}
	for _, bad := range []string{"", "unknown", "Settled"} {
		if _, ok := ledger.ParseEventKind(bad); ok {
			t.Errorf("%q is no kind", bad)
		}
	}
}

func TestCountersHaveOneOrder(t *testing.T) {
	// ENGINE 5: the order in which books lock them.
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ledger.Counter {
			word := rapid.StringMatching("[ab]?")
			return ledger.Counter{
				Workspace: word.Draw(t, "w"), Limit: word.Draw(t, "l"), Epoch: rapid.Uint32Range(0, 1).Draw(t, "e"),
				Subject: word.Draw(t, "s"), Window: rapid.Int64Range(0, 1).Draw(t, "at"),
			}
		}), 3, 3).Draw(t, "counters")
		a, b, c := all[0], all[1], all[2]
		if a.Less(b) && b.Less(a) || (a == b) == (a.Less(b) || b.Less(a)) || a.Less(b) && b.Less(c) && !a.Less(c) {
			t.Fatalf("no order among %+v", all)
		}
	})
}

func FuzzDecodeReservation(f *testing.F) {
	r := ledger.Reservation{
		Workspace: workspace, Holds: []ledger.Hold{{Counter: counter("b")}}, Checks: []ledger.CheckRecord{{}},
		Flows: []ledger.Flow{{Seq: 1, At: start, Since: start, Of: start}},
	}
	f.Add(r.Encode())
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := ledger.DecodeReservation(ledger.ID{1}, workspace, 1, body)
		if err != nil {
			return
		}
		again, err := ledger.DecodeReservation(ledger.ID{1}, workspace, 1, got.Encode())
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, again)
	})
}

func FuzzDecodeEvent(f *testing.F) {
	e := ledger.Event{
		Charges: []ledger.Charge{{Counter: counter("b")}}, Flows: []ledger.CounterFlow{{Counter: counter("b"), Kind: ledger.KindSliding}}, Subjects: ledger.Subjects{Tags: []string{"t"}},
	}
	f.Add(e.Encode())
	f.Fuzz(func(t *testing.T, body []byte) {
		var got, again ledger.Event
		if got.DecodeInto(body) != nil {
			return
		}
		if err := again.DecodeInto(got.Encode()); err != nil {
			t.Fatal(err)
		}
		same(t, got, again)
	})
}

func FuzzDecodeCall(f *testing.F) {
	c := ledger.Call{
		Checks: []ledger.CheckRecord{{Counter: counter("b")}}, Holds: []ledger.Hold{{}}, Flows: []ledger.Flow{{Seq: 1}, {Seq: 2, Units: -1}},
	}
	f.Add(c.Encode())
	f.Fuzz(func(t *testing.T, body []byte) {
		var got, again ledger.Call
		if got.DecodeInto(body) != nil {
			return
		}
		if err := again.DecodeInto(got.Encode()); err != nil {
			t.Fatal(err)
		}
		same(t, got, again)
	})
}

func FuzzDecodeState(f *testing.F) {
	for _, s := range []ledger.State{
		{},
		{Deficit: 1, Rate: 2, Seq: 3},
		{Credits: -3, Saturated: true},
		{Days: &ledger.Days{Zone: "UTC"}},
		{Seq: 2, Sliding: &ledger.Sliding{Length: minute, Exact: true, Marks: []ledger.Mark{{Slot: start, Units: 1}, {Slot: start + 1, Units: 2}}}},
		{Seq: 1, Sliding: &ledger.Sliding{Length: hour, Restarts: 1, Marks: []ledger.Mark{{Slot: start / minute, Units: 1 << 40}}}},
	} {
		f.Add(s.Encode())
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var got, again ledger.State
		if got.DecodeInto(body) != nil {
			return
		}
		if err := again.DecodeInto(got.Encode()); err != nil {
			t.Fatal(err)
		}
		same(t, got, again)
		if !slices.Equal(got.Clone().Encode(), got.Encode()) {
			t.Fatal("a clone differs")
		}
	})
}
