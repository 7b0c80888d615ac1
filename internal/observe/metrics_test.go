// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/observe"
)

var update = flag.Bool("update", false, "rewrite the generated page")

func TestTheMetricsPageIsCurrent(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "metrics.md")
	want := observe.NewMetrics("test", observe.Sources{}).Markdown()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Fatalf("docs/metrics.md is not what the code defines; run the test with -update")
	}
}

func TestMetricsTellRefusalsChargesAndTheStore(t *testing.T) {
	up := false
	m := observe.NewMetrics("v1", observe.Sources{
		StoreUp: func() bool { return up }, Spooled: func() int { return 3 }, Unspooled: func() int64 { return 4 },
		RetainedFrom: func() int64 { return 5_000_000 }, Dropped: func() int64 { return 6 },
		ClockOffset: func() time.Duration { return -7 * time.Second }, FileDiffers: func() bool { return true },
	})
	m.Refused(fault.New(fault.DayLimitReached, "no"), "default")
	m.Ended(&ledger.Reservation{Model: "m", Workspace: "default"}, &admit.Charged{Cost: 2_500_000_000, Tokens: 7, End: admit.End{Outcome: "ok"}}, time.Second)
	for _, n := range []admit.NamedCost{{Nanos: 8775, OwnNanos: 5850}, {Nanos: 1_000_000_000, OwnNanos: 3_000_000_000}} { // USE-4, BR-091
		m.Ended(&ledger.Reservation{Model: "m", Workspace: "default"}, &admit.Charged{End: admit.End{Outcome: "ok", Named: &n}}, time.Second)
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, line := range []string{
		`weir_refused_total{code="day_limit_reached",workspace="default"} 1`,
		`weir_requests_total{model="m",outcome="ok",workspace="default"} 3`,
		`weir_spend_dollars_total{model="m",workspace="default"} 2.5`,
		`weir_tokens_total{model="m",workspace="default"} 7`,
		`weir_cost_drift_dollars_total{direction="above",model="m",workspace="default"} 2.925e-06`,
		`weir_cost_drift_dollars_total{direction="below",model="m",workspace="default"} 2`,
		`weir_store_up 0`,
		`weir_spool_operations 3`,
		`weir_spool_failures_total 4`,
		`weir_retained_from_seconds 5`,
		`weir_retention_rows_total 6`,
		`weir_clock_offset_seconds -7`,
		`weir_file_differs 1`,
	} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("metrics lack %s", line)
		}
	}
}
