// SPDX-License-Identifier: Apache-2.0

// Package observe turns what the other packages report into metrics and logs.
// It is told of things through the small hooks that they declare, decides
// nothing, and never sees a secret or a prompt.
package observe

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
)

// Metrics are the process's Prometheus metrics.
type Metrics struct {
	registry *prometheus.Registry
	refused  *prometheus.CounterVec
	ended    *prometheus.CounterVec
	spend    *prometheus.CounterVec
	tokens   *prometheus.CounterVec
	drift    *prometheus.CounterVec
	took     *prometheus.HistogramVec
	defs     []definition
}

// definition is a metric as docs/metrics.md lists it.
type definition struct{ name, kind, labels, help string }

// nanosPerDollar turns a sum of nano-dollars into Prometheus's floats. Metrics
// are for watching; the ledger is what counts.
const nanosPerDollar = 1e9

// Sources are asked when the metrics are read.
type Sources struct {
	// StoreUp tells whether the store takes what is written to it.
	StoreUp func() bool
	// Spooled is how many settlements are in the spool now, Unspooled how many
	// it could not take since the process started (RES-8).
	Spooled   func() int
	Unspooled func() int64
	// RetainedFrom is the instant that the last run of the retention dropped calls
	// before, in Unix microseconds; 0: it has not come so far. Dropped counts rows
	// since the process started (RES-6).
	RetainedFrom func() int64
	Dropped      func() int64
	// ClockOffset is the store's clock less this process's, as last measured;
	// FileDiffers tells whether another process has applied another configuration
	// file since (STO-2).
	ClockOffset func() time.Duration
	FileDiffers func() bool
}

// NewMetrics registers every metric.
func NewMetrics(version string, from Sources) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.refused = m.counter("weir_refused_total", "Requests refused by the gateway, by error code and workspace.", "code", "workspace")
	m.ended = m.counter("weir_requests_total", "Admitted requests that have ended, by how.", "outcome", "model", "workspace")
	m.spend = m.counter("weir_spend_dollars_total", "US dollars charged since the process started; the ledger is exact, this is a float.", "model", "workspace")
	m.tokens = m.counter("weir_tokens_total", "Tokens charged since the process started.", "model", "workspace")
	m.drift = m.counter("weir_cost_drift_dollars_total", "US dollars by which the costs that providers name in their answers are above or below ours, of answers that name one.", "direction", "model", "workspace")
	m.took = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "weir_request_seconds", Help: "Time from a request's arrival to its settlement.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 14),
	}, []string{"outcome"})
	m.define("weir_request_seconds", "histogram", "Time from a request's arrival to its settlement.", "outcome")
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_build_info", Help: "1, labelled with the version that runs."}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	m.define("weir_build_info", "gauge", "1, labelled with the version that runs.", "version")
	m.watch(from)
	m.registry.MustRegister(m.took, build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watch registers what is asked for only when the metrics are read.
func (m *Metrics) watch(from Sources) {
	for _, w := range []struct {
		name, kind, help string
		value            func() float64
	}{
		{"weir_store_up", "gauge", "1 while the store answers, else 0.", func() float64 { return flag(from.StoreUp()) }},
		{"weir_clock_offset_seconds", "gauge", "The clock of a shared store less this process's, as last measured; the store's time decides. 0 where they may be the same.", func() float64 { return from.ClockOffset().Seconds() }},
		{"weir_file_differs", "gauge", "1 while another process on the store has applied another configuration file since this one has, else 0.", func() float64 { return flag(from.FileDiffers()) }},
		{"weir_spool_operations", "gauge", "Settlements in the spool: the store has not taken them yet.", func() float64 { return float64(from.Spooled()) }},
		{"weir_spool_failures_total", "counter", "Times that a settlement could not be kept in the spool and waited in memory alone.", func() float64 { return float64(from.Unspooled()) }},
		{"weir_retained_from_seconds", "gauge", "Unix time before which the call log has been dropped whole, by this process; 0 until its first run is through. It follows the clock at the distance of `reservation_retention`.", func() float64 { return float64(from.RetainedFrom()) / 1e6 }},
		{"weir_retention_rows_total", "counter", "Records that were older than they must be kept and are dropped, since the process started.", func() float64 { return float64(from.Dropped()) }},
	} {
		if w.kind == "counter" {
			m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: w.name, Help: w.help}, w.value))
		} else {
			m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: w.name, Help: w.help}, w.value))
		}
		m.define(w.name, w.kind, w.help)
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	m.define(name, "counter", help, labels...)
	return c
}

func (m *Metrics) define(name, kind, help string, labels ...string) {
	m.defs = append(m.defs, definition{name, kind, strings.Join(labels, ", "), help})
}

// Handler serves the metrics. Whoever asks for OpenMetrics is told with each
// counter since when it counts: it begins at zero with the process (BR-163).
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, EnableOpenMetricsTextCreatedSamples: true})
}

// Refused counts one of our refusals.
func (m *Metrics) Refused(f *fault.Fault, workspace string) {
	m.refused.WithLabelValues(string(f.Code), workspace).Inc()
}

// Ended counts one admitted request's end and its charge.
func (m *Metrics) Ended(r *ledger.Reservation, c *admit.Charged, took time.Duration) {
	outcome := c.End.Outcome
	m.ended.WithLabelValues(outcome, r.Model, r.Workspace).Inc()
	m.took.WithLabelValues(outcome).Observe(took.Seconds())
	if c.Cost > 0 {
		m.spend.WithLabelValues(r.Model, r.Workspace).Add(float64(c.Cost) / nanosPerDollar)
	}
	if c.Tokens > 0 {
		m.tokens.WithLabelValues(r.Model, r.Workspace).Add(float64(c.Tokens))
	}
	if c.End.Named != nil {
		m.drifted(r, c.End.Named)
	}
}

// drifted counts what a provider's own cost differs by (SPEC USE-4).
func (m *Metrics) drifted(r *ledger.Reservation, n *admit.NamedCost) {
	drift, direction := n.Drift(), "above"
	if drift < 0 {
		drift, direction = -drift, "below"
	}
	m.drift.WithLabelValues(direction, r.Model, r.Workspace).Add(float64(drift) / nanosPerDollar)
}

// Markdown is docs/metrics.md.
func (m *Metrics) Markdown() string {
	var b strings.Builder
	b.WriteString("# Metrics\n\n`GET /metrics` on the admin listener, in Prometheus's format. " +
		strconv.Itoa(len(m.defs)) + " of our own, besides Go's and the process's.\n\n" +
		"Counters begin at zero with the process, and in OpenMetrics each tells since when it counts (`…_created`): ask for `rate()` or `increase()` of them. " +
		"What was spent in all is the ledger's to say: `weir usage`.\n\n| metric | kind | labels | what it says |\n|---|---|---|---|\n")
	for _, d := range m.defs {
		labels := d.labels
		if labels != "" {
			labels = "`" + strings.ReplaceAll(labels, ", ", "`, `") + "`"
		}
		b.WriteString("| `" + d.name + "` | " + d.kind + " | " + labels + " | " + d.help + " |\n")
	}
	return b.String()
}
