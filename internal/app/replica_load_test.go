// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
)

// connections counts what programs have of the database, until the returned
// function is called, and tells the most that there were.
func (w *world) connections() (most func() int) {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	conn, err := pgx.Connect(ctx, w.store)
	if err != nil {
		w.t.Fatal(err)
	}
	highest, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			n := 0
			if err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'weir%'").Scan(&n); err == nil {
				highest = max(highest, n)
			}
		}
	}()
	return func() int {
		stop()
		<-done
		_ = conn.Close(context.Background()) // nothing is to be written
		return highest
	}
}

// TestAThousandCallsOnOneBudgetTakeNoMoreConnectionsThanTheirPools: BR-165, RES-8.
// Two replicas of eight connections each; what finds no place in time is answered
// 503, and nothing is left taken afterwards.
func TestAThousandCallsOnOneBudgetTakeNoMoreConnectionsThanTheirPools(t *testing.T) {
	const calls, fit = 1000, 300
	w := newSharedWorld(t, "postgres: {connections: 4, reporting_connections: 3}\n"+replicaModel+`
budgets: [{name: b, scope: org, metric: spend, limit: "0.1533", period: day, enforcement: hard}]
keys:
  - {name: k, secret: `+limitKey+`}
`)
	w.http.Transport.(*http.Transport).MaxIdleConnsPerHost = calls
	replicas := []*world{w, w.replica()}
	most := w.connections()
	answers := volley(calls, calls, func(i int) answer { return replicas[i%2].chat(limitKey, "m") })
	admitted, refused := count(answers, 200), 0
	for _, a := range answers {
		switch {
		case a.status == 200:
		case a.status == 429 && a.code() == "budget_exceeded", a.status == 503 && a.code() == "service_unavailable":
			refused++
		default:
			t.Errorf("got %v (%v)", a, a.err)
		}
	}
	w.atRest()
	for admitted < fit { // those that were answered 503 have taken nothing
		w.must(replicas[admitted%2].chat(limitKey, "m"), 200, "")
		admitted++
	}
	w.atRest()
	for _, r := range replicas {
		r.must(r.chat(limitKey, "m"), 429, "budget_exceeded")
	}
	if n := most(); n > 16 || n < 2 {
		t.Errorf("%d connections were open, want at most 16", n)
	}
	if admitted != fit {
		t.Errorf("%d were admitted, want %d", admitted, fit)
	}
	w.settled("1", "10")
}

// TestACounterTellsSinceWhenItCounts: BR-163. After a restart the metric of spend
// begins at zero and says so; what was spent in all is in the ledger.
func TestACounterTellsSinceWhenItCounts(t *testing.T) {
	w := newWorld(t, replicaModel+"keys:\n  - {name: k, secret: "+limitKey+"}\n")
	counter := func() (spent, created float64) {
		t.Helper()
		body := w.do(t.Context(), "GET", "/metrics", "", "", "Accept", "application/openmetrics-text; version=1.0.0").body
		for _, m := range []struct {
			name string
			into *float64
		}{{"total", &spent}, {"created", &created}} {
			found := regexp.MustCompile(`(?m)^weir_spend_dollars_` + m.name + `\{model="m",workspace="default"\} (\S+)$`).FindStringSubmatch(body)
			if found == nil {
				t.Fatalf("no weir_spend_dollars_%s in\n%s", m.name, body)
			}
			var err error
			if *m.into, err = strconv.ParseFloat(found[1], 64); err != nil {
				t.Fatal(err)
			}
		}
		return spent, created
	}
	once := func() {
		t.Helper()
		w.must(w.chat(limitKey, "m"), 200, "")
		w.atRest()
	}
	once()
	once()
	spent, created := counter()
	w.restart()
	once()
	after, since := counter()
	if spent != 2*0.000511 || after != 0.000511 || since <= created {
		t.Errorf("%v USD since %v, and after a restart %v since %v", spent, created, after, since)
	}
	if got := w.spend("").String(); got != "0.001533" {
		t.Errorf("the ledger says %s USD", got)
	}
}
