// SPDX-License-Identifier: Apache-2.0

package admit_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/tenant"
)

func TestAListSaysWhichModelsAKeyMayCall(t *testing.T) { // KEY-5, BR-169, BR-170, BR-173, BR-189
	const pass = fault.Code("")
	for _, c := range []struct {
		why, sent string
		list      *[]string
		want      fault.Code
	}{
		{"no list allows all", "big", nil, pass},
		{"an alias too", "fast", nil, pass},
		{"an empty list allows none", "big", &[]string{}, fault.ModelNotAllowed},
		{"nor does one that was never filled", "big", new([]string), fault.ModelNotAllowed},
		{"a listed model", "big", &[]string{"other", "big"}, pass},
		{"a listed model by an unlisted alias", "fast", &[]string{"big"}, pass},
		{"a listed alias", "fast", &[]string{"fast"}, pass},
		{"a listed alias does not open the model's own name", "big", &[]string{"fast"}, fault.ModelNotAllowed},
		{"the alias's target must be allowed", "fast", &[]string{"acme/x"}, fault.ModelNotAllowed},
		{"unknown without a list", "ghost", nil, fault.ModelNotFound},
		{"unknown with a list", "ghost", &[]string{"big"}, fault.ModelNotAllowed},
		{"unknown with an empty list", "ghost", &[]string{}, fault.ModelNotAllowed},
		{"listed, but not there", "ghost", &[]string{"ghost"}, fault.ModelNotAllowed},
		{"no name at all", "", nil, fault.ModelNotFound},
		{"a prefix", "acme/x", &[]string{"acme/*"}, pass},
		{"a longer prefix", "acme/x/y", &[]string{"acme/x/*"}, pass},
		{"a prefix does not match another word", "acmez/x", &[]string{"acme/*"}, fault.ModelNotAllowed},
		{"nor its own beginning", "acme", &[]string{"acme/*"}, fault.ModelNotAllowed},
		{"nor the bare prefix", "acme/", &[]string{"acme/*"}, fault.ModelNotAllowed},
		{"nor a leading slash", "/acme/x", &[]string{"acme/*"}, fault.ModelNotAllowed},
		{"nor a later place", "x/acme/y", &[]string{"acme/*"}, fault.ModelNotAllowed},
		{"nor itself", "acme/*", &[]string{"acme/*"}, fault.ModelNotAllowed},
		{"a prefix does not match an alias", "acme/alias", &[]string{"acme/*"}, fault.ModelNotAllowed},
		{"which may be listed itself", "acme/alias", &[]string{"acme/alias"}, pass},
		{"other letters", "BIG", &[]string{"big"}, fault.ModelNotAllowed},
		{"other letters without a list", "BIG", nil, fault.ModelNotFound},
		{"a space", " big", nil, fault.ModelNotFound},
		{"what cannot be seen", "big\u200b", nil, fault.ModelNotFound},
		{"other letters in the list", "big", &[]string{"BIG"}, fault.ModelNotAllowed},
	} {
		t.Run(c.why, func(t *testing.T) {
			w := newWorld(t)
			for _, name := range []string{"acme/x", "acme/x/y", "acmez/x", "acme", "acme/", "/acme/x", "x/acme/y"} {
				w.targets = append(w.targets, w.target(name, row(name, "1", "1")))
			}
			w.targets = append(w.targets, w.target("plain", row("plain", "1", "1"), "acme/alias"))
			w.key.AllowedModels = c.list
			if listed := slices.Contains(w.snapshot().Models(w.key), c.sent); listed != (c.want == pass) {
				t.Errorf("shown by /v1/models: %v", listed)
			}
			if c.want == pass {
				w.admit(chat(c.sent))
				return
			}
			f := w.refuse(chat(c.sent), c.want)
			if f.Param != "model" || !f.NoRetry || f.RetryAfterSeconds != 0 {
				t.Errorf("fault %+v", f)
			}
		})
	}
}

func TestARefusalDoesNotTellWhetherAModelExists(t *testing.T) { // KEY-5
	w := newWorld(t)
	w.key.AllowedModels = &[]string{"free"}
	exists, not := w.refuse(chat("big"), fault.ModelNotAllowed), w.refuse(chat("xyz"), fault.ModelNotAllowed)
	if strings.ReplaceAll(exists.Message, "big", "xyz") != not.Message || *exists.Details != *not.Details {
		t.Errorf("%q and %q differ", exists.Message, not.Message)
	}
}

func TestWhatAWorkspaceDeclaresTakesANameFromWhatIsShared(t *testing.T) { // SPEC 14, KEY-5
	shared := func(w *world, name string, aliases ...string) *admit.Target {
		target := w.target(name, nil, aliases...)
		target.Shared = true
		return target
	}
	for _, c := range []struct {
		name    string
		targets func(w *world) []*admit.Target
		sent    string
		want    string // the model; "": nothing
		own     bool
	}{
		{"a model", func(w *world) []*admit.Target {
			return []*admit.Target{shared(w, "m"), w.target("m", nil)}
		}, "m", "m", true},
		{"a model, whatever comes first", func(w *world) []*admit.Target {
			return []*admit.Target{w.target("m", nil), shared(w, "m")}
		}, "m", "m", true},
		{"the aliases of a model that was replaced are gone", func(w *world) []*admit.Target {
			return []*admit.Target{shared(w, "m", "a"), w.target("m", nil)}
		}, "a", "", false},
		{"an alias", func(w *world) []*admit.Target {
			return []*admit.Target{shared(w, "m", "a"), w.target("n", nil, "a")}
		}, "a", "n", true},
		{"a model's name by an alias", func(w *world) []*admit.Target {
			return []*admit.Target{shared(w, "m", "b"), w.target("n", nil, "m")}
		}, "m", "n", true},
		{"and the shared model is not reached by its alias then", func(w *world) []*admit.Target {
			return []*admit.Target{shared(w, "m", "b"), w.target("n", nil, "m")}
		}, "b", "", false},
		{"an alias's name by a model", func(w *world) []*admit.Target {
			return []*admit.Target{shared(w, "m", "n"), w.target("n", nil)}
		}, "n", "n", true},
		{"other shared names stay", func(w *world) []*admit.Target {
			return []*admit.Target{shared(w, "m", "a", "b"), w.target("n", nil, "a")}
		}, "b", "m", false},
		{"a model without a provider can't be called", func(w *world) []*admit.Target {
			lost := w.target("m", nil, "a")
			lost.Provider = nil
			return []*admit.Target{shared(w, "m"), shared(w, "x", "a"), lost}
		}, "m", "", false},
		{"and gives up none of its names", func(w *world) []*admit.Target {
			lost := w.target("m", nil, "a")
			lost.Provider = nil
			return []*admit.Target{shared(w, "m"), shared(w, "x", "a"), lost}
		}, "a", "", false},
		{"among equals the first alias stays", func(w *world) []*admit.Target {
			return []*admit.Target{w.target("m", nil, "a"), w.target("n", nil, "a")}
		}, "a", "m", true},
		{"and a model goes before an alias", func(w *world) []*admit.Target {
			return []*admit.Target{w.target("m", nil, "n"), w.target("n", nil)}
		}, "n", "n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			s := admit.NewSnapshot(1, w.ws, time.UTC, nil, c.targets(w))
			got, via := s.Resolve(c.sent)
			if (got == nil) != (c.want == "") {
				t.Fatalf("got %+v", got)
			}
			if shown := slices.Contains(s.Models(w.key), c.sent); shown != (got != nil) {
				t.Errorf("shown %v", shown)
			}
			if got == nil {
				return
			}
			if got.Model.Name != c.want || got.Shared == c.own {
				t.Errorf("leads to %s, shared %v", got.Model.Name, got.Shared)
			}
			if alias := c.sent != c.want; alias != slices.Equal(via, []string{c.sent}) {
				t.Errorf("by way of %v", via)
			}
		})
	}
}

func TestModelsAreListedOnceAndInOrder(t *testing.T) { // KEY-5
	w := newWorld(t)
	got := w.snapshot().Models(w.key)
	if want := []string{"big", "fast", "free", "half", "unpriced"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAModelWithoutAPriceIsRefusedWhereSpendIsLimited(t *testing.T) { // PRC-3, BR-127, BR-031
	for _, c := range []struct {
		name  string
		limit func(w *world)
		want  fault.Code
	}{
		{"nothing limits", func(*world) {}, ""},
		{"a rate limits", func(w *world) { w.key.Limits.TPM = at(int64(1000)) }, ""},
		{"a cap of zero", func(w *world) { w.key.Caps.Day = at(money.Nanos(0)) }, ""},
		{"a day cap", func(w *world) { w.key.Caps.Day = at(money.Dollar) }, fault.ModelUnpriced},
		{"a 30-day cap", func(w *world) { w.key.Caps.ThirtyDay = at(money.Dollar) }, fault.ModelUnpriced},
		{"prepaid funds", func(w *world) { w.ws.Funds = tenant.Prepaid; w.fund(topUp, money.Dollar) }, fault.ModelUnpriced},
		{"held funds", func(w *world) { w.ws.Funds = tenant.PrepaidHold; w.fund(topUp, money.Dollar) }, fault.ModelUnpriced},
	} {
		for _, model := range []string{"unpriced", "half"} { // no row, and one without a price for output
			t.Run(model+" where "+c.name, func(t *testing.T) {
				w := newWorld(t)
				c.limit(w)
				if c.want != "" {
					w.refused(chat(model), c.want)
					w.admit(chat("big"))
					return
				}
				p, r := w.admit(chat(model))
				charged := w.settle(p, r, 100, 20)
				if charged.Cost != 0 || charged.Tokens != 120 || !slices.Contains(charged.End.Marks, "unpriced") {
					t.Errorf("charged %s for %d tokens, marks %v", charged.Cost, charged.Tokens, charged.End.Marks)
				}
				if r.Reservation.Worst.Spend != 0 {
					t.Errorf("a sweep would charge %d", r.Reservation.Worst.Spend)
				}
			})
		}
	}
}

func TestAKeysOutputMaximumRefusesALargerValue(t *testing.T) { // KEY-6
	for _, c := range []struct {
		name    string
		maximum *int64
		sent    int64
		refused bool
	}{
		{"above", at(int64(100)), 101, true},
		{"at it", at(int64(100)), 100, false},
		{"none sent", at(int64(100)), call.NoBound, false},
		{"zero is none", at(int64(0)), 5000, false},
		{"unset is none", nil, 5000, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, request := newWorld(t), chat("big")
			w.key.MaxOutputTokens, request.OutputBound, request.OutputField = c.maximum, c.sent, "max_completion_tokens"
			if !c.refused {
				w.admit(request)
				return
			}
			f := w.refuse(request, fault.MaxOutputTokensExceeded)
			if f.Param != "max_completion_tokens" || f.Details.Amount != "100" || f.Details.Wanted != "101" || !strings.Contains(f.Message, "100") {
				t.Errorf("fault %+v, %+v", f, f.Details)
			}
			w.ws.HideAmounts = true
			f = w.refuse(request, fault.MaxOutputTokensExceeded)
			if f.Details.Amount+f.Details.Wanted != "" || strings.Contains(f.Message, "10") {
				t.Errorf("shows its amounts: %q, %+v", f.Message, f.Details)
			}
		})
	}
}

func TestAHostileNameIsCutInMessageAndRecord(t *testing.T) { // ERR-5, BR-173
	long := strings.Repeat("é", 1<<20)
	w, c := newWorld(t), chat(long)
	c.User = long
	f := w.refuse(c, fault.ModelNotFound)
	note := w.build(c).Op.Note
	if len(f.Message) > 1000 || len(note) > 3000 || !utf8.ValidString(f.Message) {
		t.Errorf("message of %d bytes, note of %d", len(f.Message), len(note))
	}
	var n admit.Note
	if err := json.Unmarshal(note, &n); err != nil || n.Message != f.Message || n.Model == "" || n.User == "" {
		t.Errorf("note %.200s: %v", note, err)
	}
}
