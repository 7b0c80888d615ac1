// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/ledger"
)

// machine draws operations at random and remembers what was answered.
type machine struct {
	*book
	at       int64
	next     int
	admitted []*ledger.Reservation // every state that an answer has shown
	ops      []*ledger.Op          // every admission that was sent
	modest   bool                  // nothing uses more than it asked for
	verdicts map[ledger.ID]int     // admissions by id
	funded   int
}

func newMachine(modest bool) *machine {
	return &machine{book: newBook(), at: start, modest: modest, verdicts: map[ledger.ID]int{}}
}

// own are the limits that are narrowed to a model.
func own(model string) []ledger.Check {
	bucket, window := tpm(500), sliding(ledger.Requests, 3, 30*minute)
	bucket.Counter, window.Counter = counter("tpm of "+model), counter("rule of "+model)
	return []ledger.Check{budget("of "+model, ledger.Reserve, 3*dollar), budget("of all models", ledger.Observe, 3*dollar), bucket, window}
}

func (m *machine) common() []ledger.Check {
	checks := []ledger.Check{
		funds(ledger.Reserve, dollar), capOf(1, 4*dollar, nil, 1), capOf(7, 9*dollar, nil, 1),
		budget("hard", ledger.Reserve, 5*dollar), budget("hard", ledger.Observe, 4*dollar), budget("soft", ledger.Track, dollar),
		rpm(30), tpm(2000), slots(4), sliding(ledger.Tokens, 3000, hour),
	}
	for i := range checks {
		if checks[i].Kind == ledger.KindFixed {
			checks[i].Counter.Window, _ = checks[i].Window.Bounds(m.at)
		}
	}
	return checks
}

func (m *machine) candidates(t *rapid.T) []ledger.Candidate {
	var list []ledger.Candidate
	for range rapid.IntRange(1, 3).Draw(t, "candidates") {
		model := rapid.SampledFrom([]string{"m", "n", "o"}).Draw(t, "model")
		w := wants(rapid.Int64Range(0, dollar).Draw(t, "spend"), rapid.Int64Range(0, 300).Draw(t, "in"), rapid.Int64Range(0, 300).Draw(t, "out"))
		c := candidate(model, w, own(model)...)
		for i := range c.Checks {
			if c.Checks[i].Kind == ledger.KindFixed {
				c.Checks[i].Counter.Window, _ = c.Checks[i].Window.Bounds(m.at)
			}
		}
		list = append(list, c)
	}
	return list
}

func (m *machine) draw(t *rapid.T) *ledger.Op {
	verbs := []ledger.Verb{
		ledger.Admit, ledger.Admit, ledger.Admit, ledger.Move, ledger.Settle, ledger.Settle, ledger.Void,
		ledger.Undo, ledger.Renew, ledger.Sweep, ledger.Fund,
	}
	if !m.modest {
		verbs = append(verbs, ledger.Adjust)
	}
	verb := rapid.SampledFrom(verbs).Draw(t, "verb")
	switch {
	case verb == ledger.Fund:
		m.funded++
		return fund(1000+m.funded, rapid.Int64Range(1, 3*dollar).Draw(t, "top-up"), funds(ledger.Reserve, dollar))
	case verb == ledger.Admit || m.next == 0:
		return m.drawAdmission(t)
	case len(m.admitted) == 0 || verb == ledger.Undo && rapid.Bool().Draw(t, "by id"):
		n := rapid.IntRange(1, m.next).Draw(t, "id")
		return &ledger.Op{Verb: ledger.Undo, ID: id(n), Workspace: workspace, HoldMicros: holdFor}
	}
	r := rapid.SampledFrom(m.admitted).Draw(t, "reservation")
	op := end(verb, r)
	switch verb {
	case ledger.Move:
		op.Checks, op.Candidates = m.common(), m.candidates(t)
		op.Name(m.at)
	case ledger.Adjust:
		op.Entry = &ledger.Entry{
			Number:  rapid.Int32Range(0, 2).Draw(t, "number"),
			Amounts: ledger.Amounts{Spend: rapid.Int64Range(-dollar, dollar).Draw(t, "delta"), Tokens: rapid.Int64Range(-99, 99).Draw(t, "tokens")},
		}
	case ledger.Settle:
		op.Settlement = &ledger.Settlement{Attempts: m.drawAttempts(t, r)}
	default:
	}
	return op
}

func (m *machine) drawAdmission(t *rapid.T) *ledger.Op {
	if len(m.ops) > 0 && rapid.IntRange(0, 5).Draw(t, "again") == 0 {
		again := *rapid.SampledFrom(m.ops).Draw(t, "which")
		again.Again = true
		return &again
	}
	m.next++
	op := &ledger.Op{
		Verb: ledger.Admit, ID: id(m.next), Workspace: workspace, HoldMicros: holdFor, Checks: m.common(),
		Candidates: m.candidates(t), Subjects: ledger.Subjects{Key: "key_1"},
	}
	m.ops = append(m.ops, op)
	return op
}

func (m *machine) drawAttempts(t *rapid.T, r *ledger.Reservation) []ledger.Attempt {
	if m.modest {
		// The book's own row may have moved to a dearer or cheaper candidate.
		worst := r.Worst
		model, provider := r.Model, r.Provider
		if open := m.open[r.ID]; open != nil {
			worst, model, provider = open.Worst, open.Model, open.Provider
		} else if swept := m.ended[r.ID].Swept; swept != nil {
			worst, model, provider = swept.Worst, swept.Model, swept.Provider
		}
		return []ledger.Attempt{{
			Model: model, Provider: provider,
			Spend:  rapid.Int64Range(0, worst.Spend).Draw(t, "spend"),
			Tokens: rapid.Int64Range(0, worst.Tokens).Draw(t, "tokens"),
		}}
	}
	var list []ledger.Attempt
	for range rapid.IntRange(0, 2).Draw(t, "attempts") {
		model := rapid.SampledFrom([]string{"m", "n", "o"}).Draw(t, "of")
		list = append(list, attempt(model, rapid.Int64Range(0, 2*dollar).Draw(t, "used"), rapid.Int64Range(0, 900).Draw(t, "tokens")))
	}
	return list
}

// step decides one batch of random operations; what is carried is sent again.
func (m *machine) step(t *rapid.T) {
	m.at += rapid.Int64Range(0, 20*minute).Draw(t, "pause")
	most := 4
	if m.modest {
		most = 1 // a move in the same batch changes what another operation holds
	}
	ops := make([]*ledger.Op, rapid.IntRange(1, most).Draw(t, "batch"))
	for i := range ops {
		ops[i] = m.draw(t)
	}
	for len(ops) > 0 {
		var carried []*ledger.Op
		for i, r := range m.apply(m.at, ops...) {
			if r.Verdict == ledger.Invalid && ops[i].Verb != ledger.Adjust {
				t.Fatalf("verb %d is invalid", ops[i].Verb)
			}
			if r.Verdict == ledger.Carry {
				carried = append(carried, ops[i].Carried(&r))
			}
			if r.Verdict == ledger.Admitted {
				m.admitted = append(m.admitted, r.Reservation)
				if ops[i].Verb == ledger.Admit && !ops[i].Again {
					m.verdicts[ops[i].ID]++
				}
			}
		}
		ops = carried
	}
}

func (m *machine) check(t *rapid.T) {
	for _, d := range m.verify(m.at) {
		t.Fatalf("%s of %s: have %d, want %d", d.Figure, d.Counter.Limit, d.Have, d.Want)
	}
	for c, s := range m.counters {
		if s.Held < 0 || s.Deficit < 0 {
			t.Fatalf("%s: %+v", c.Limit, s)
		}
	}
	endings := map[ledger.ID]int{}
	type key struct {
		id      ledger.ID
		attempt int32
		kind    ledger.EventKind
	}
	unique := map[key]bool{}
	for i := range m.events {
		e := &m.events[i]
		if e.Kind <= ledger.EventUndone && e.Attempt == 0 {
			endings[e.ID]++
		}
		k := key{e.ID, e.Attempt, e.Kind}
		if unique[k] {
			t.Fatalf("event %s %d %s twice", e.ID, e.Attempt, e.Kind)
		}
		unique[k] = true
	}
	for _, r := range m.admitted {
		want := 1
		if m.open[r.ID] != nil {
			want = 0
		}
		if endings[r.ID] != want {
			t.Fatalf("%s has %d endings, want %d", r.ID, endings[r.ID], want)
		}
	}
	for id, n := range m.verdicts {
		if n != 1 {
			t.Fatalf("%s was admitted %d times", id, n)
		}
	}
}

func TestNoOrderOfOperationsUnbalancesTheBooks(t *testing.T) {
	// RES-2, RES-7: after every batch, held is what open reservations hold,
	// settled is what events charged, and each reservation ends exactly once.
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(false)
		t.Repeat(map[string]func(*rapid.T){"batch": m.step, "": m.check})
	})
}

func TestNoHardLimitIsEverPassedWhenUseStaysWithinTheHold(t *testing.T) {
	// BUD-2, RES-5: charge <= hold when use <= held, whatever happens in between.
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(true)
		t.Repeat(map[string]func(*rapid.T){
			"batch": m.step,
			"": func(t *rapid.T) {
				m.check(t)
				for c, s := range m.counters {
					most := int64(math.MaxInt64)
					switch c.Limit {
					case "hard":
						most = 5 * dollar
					case "of m", "of n", "of o":
						most = 3 * dollar
					case "funds":
						most = dollar + s.Credits
					case "slots":
						most = 4
					}
					if s.Settled+s.Held > most {
						t.Fatalf("%s: settled %d + held %d > %d", c.Limit, s.Settled, s.Held, most)
					}
				}
			},
		})
	})
}

func TestTheSameOperationsGiveTheSameBooks(t *testing.T) {
	// Replay: one function of page, operations and instant.
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(false)
		twin := newBook()
		for range rapid.IntRange(1, 10).Draw(t, "batches") {
			m.at += rapid.Int64Range(0, hour).Draw(t, "pause")
			ops := []*ledger.Op{m.draw(t), m.draw(t)}
			a, b := m.apply(m.at, ops...), twin.apply(m.at, ops...)
			for i := range a {
				if a[i].Verdict != b[i].Verdict {
					t.Fatalf("verdicts %d and %d", a[i].Verdict, b[i].Verdict)
				}
				if a[i].Verdict == ledger.Admitted {
					m.admitted = append(m.admitted, a[i].Reservation)
				}
			}
		}
		if len(m.events) != len(twin.events) || len(m.counters) != len(twin.counters) {
			t.Fatal("the books differ")
		}
		for c, s := range m.counters {
			if other := twin.state(c); string(s.Encode()) != string(other.Encode()) || s.Settled != other.Settled || s.Held != other.Held {
				t.Fatalf("%s differs", c.Limit)
			}
		}
	})
}
