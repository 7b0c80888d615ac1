// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/ledger"
)

const (
	limitKey  = "the-secret-of-the-limited-key"
	secondKey = "the-secret-of-the-second-limited-key"
)

// pennyKey is the model of a cent a request, settings of the workspace, and a
// key with further fields.
func pennyKey(settings, key string) string {
	return penny + settings + "keys:\n  - {name: k, secret: " + limitKey + key + "}\n"
}

// limits is what GET /v1/key lists for a key and what its request says of itself.
func (w *world) limits(secret string, headers ...string) []admit.LimitView {
	w.t.Helper()
	return parseLimits(w.t, w.must(w.do(context.Background(), http.MethodGet, "/v1/key", secret, "", headers...), 200, "").body)
}

// limit is one of them, by its name.
func (w *world) limit(secret, name string, headers ...string) admit.LimitView {
	w.t.Helper()
	for _, l := range w.limits(secret, headers...) {
		if l.Name == name {
			return l
		}
	}
	w.t.Fatalf("the key is not shown a limit %q", name)
	return admit.LimitView{}
}

// used fails the test unless a limit shows this use, and nothing held.
func (w *world) used(secret, name, used string, headers ...string) {
	w.t.Helper()
	if l := w.limit(secret, name, headers...); l.Used != used || l.Held != "0" {
		w.t.Fatalf("%s shows %s used and %s held, want %s and 0", name, l.Used, l.Held, used)
	}
}

// rest fails the test unless nothing is held and no slot is taken on any limit of
// the keys, and no reservation is open.
func (w *world) rest(secrets ...string) {
	w.t.Helper()
	for _, secret := range secrets {
		for _, l := range w.limits(secret) {
			if l.Held != "0" || l.Window == "in_flight" && l.Used != "0" {
				w.t.Errorf("%s of %s holds %s at rest, and shows %s used", l.Name, l.Scope, l.Held, l.Used)
			}
		}
	}
	if ends, err := w.server.OpenUntil(context.Background()); err != nil || len(ends) != 0 {
		w.t.Errorf("open reservations at rest: %v (%v)", ends, err)
	}
}

// admitted sends requests until one is refused, and tells how many passed.
func (w *world) admitted(secret, model, code string, headers ...string) int {
	w.t.Helper()
	for n := range 100 {
		if a := w.chat(secret, model, headers...); a.status != 200 {
			if a.code() != code {
				w.t.Fatalf("request %d got %v, want %s", n+1, a, code)
			}
			return n
		}
	}
	w.t.Fatal("a hundred requests passed")
	return 0
}

// outbox lists the events that were written, those of every request that has had
// its answer among them.
func (w *world) outbox() []ledger.Notice {
	w.t.Helper()
	w.limits(limitKey) // is decided after the settlements that wait
	list, err := w.server.Outbox(context.Background())
	if err != nil {
		w.t.Fatalf("outbox: %v", err)
	}
	return list
}

// notices are the events of the outbox, as words.
func (w *world) notices() []string {
	w.t.Helper()
	words := []string{}
	for _, n := range w.outbox() {
		if n.Kind != ledger.NoticeBudgetWarning {
			w.t.Fatalf("an event of the kind %q", n.Kind)
		}
		words = append(words, fmt.Sprintf("%s %s %d %s", n.Name, n.Level, n.Percent, time.UnixMicro(n.Counter.Window).UTC().Format(time.DateOnly)))
	}
	return words
}

// budgetID finds a budget by its name, whoever owns it.
func (w *world) budgetID(name string) string {
	w.t.Helper()
	list, err := w.admin.BudgetList(context.Background(), admin.BudgetListRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Budgets {
		if list.Budgets[i].Name == name {
			return list.Budgets[i].ID
		}
	}
	w.t.Fatalf("no budget %q", name)
	return ""
}

// shown is the record of the request that an answer was for.
func (w *world) shown(a answer) admin.RequestAnswer {
	w.t.Helper()
	var shown admin.RequestAnswer
	w.eventually("the record of the request", func() (found bool) {
		var err error
		shown, err = w.admin.RequestShow(context.Background(), admin.RequestShowRequest{ID: a.header.Get("X-Weir-Request-Id")})
		return err == nil
	})
	return shown
}

// recordedOnce checks that each answer has one record, and that no others are.
func (w *world) recordedOnce(answers []answer) {
	w.t.Helper()
	want := map[string]int{}
	for _, a := range answers {
		want[a.header.Get("X-Weir-Request-Id")]++
	}
	var list admin.RequestListAnswer
	w.eventually("every record", func() bool {
		var err error
		list, err = w.admin.RequestList(context.Background(), admin.RequestListRequest{Limit: 1000})
		return err == nil && len(list.Requests) >= len(answers)
	})
	for _, r := range list.Requests {
		if want[r.ID]--; want[r.ID] < 0 || r.Count != 1 {
			w.t.Errorf("request %s stands in the call log %d times, or once too often", r.ID, r.Count)
		}
	}
	for id, n := range want {
		if n > 0 {
			w.t.Errorf("request %s is not in the call log", id)
		}
	}
}

// reload gives the program another file and waits until a key's limits, or
// whatever so tells, are as the file has them, on each of the programs that so
// asks in turn.
func (w *world) reload(text string, so func() bool) {
	w.t.Helper()
	w.write(text)
	for range len(w.peers) + 1 {
		w.eventually("the changed file", so)
	}
}

// edges of time that tests name.
func at(t *testing.T, clockTime string) int64 {
	t.Helper()
	return instant(t, "2026-07-20T"+clockTime+"Z")
}

// idle keeps the background work from doing anything by itself; eager makes it
// look often.
func idle(o *app.Options)  { o.Idly() }
func eager(o *app.Options) { o.Eagerly() }
