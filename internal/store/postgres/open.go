// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

const (
	// connectTimeout bounds one attempt to connect.
	connectTimeout = 3 * time.Second
	// reportTimeout bounds one statement of a report.
	reportTimeout = 60 * time.Second
	// schemaLock is the advisory lock of those who change the schema.
	schemaLock = 0x77656972 // "weir"
	// pruneLock is that of whoever drops what is old.
	pruneLock = schemaLock + 1
)

func (o *Options) defaults() {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&o.Connections, DefaultConnections)
	set(&o.Reporting, DefaultReporting)
	o.Reporting = max(o.Reporting, 2) // a migration runs under a lock that another one holds
	set(&o.CounterCache, DefaultCounterCache)
	if o.Local == nil {
		o.Local = clock.System()
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = DefaultLockTimeout
	}
	if o.BatchTimeout <= 0 {
		o.BatchTimeout = DefaultBatchTimeout
	}
}

// Open connects, checks that the server and the role can carry the book, brings
// the schema up to date and takes up its time. Close ends it.
//
// Errors: ErrNewerSchema, ErrOlderSchema, ErrUnfinished, ErrClock, ErrUnavailable,
// and sentences that say what the server or the role lacks.
func Open(ctx context.Context, o Options) (*Book, error) {
	b, config, err := newBook(o)
	if err != nil {
		return nil, err
	}
	if err := b.start(ctx, config); err != nil {
		for _, pool := range []*pgxpool.Pool{b.batches, b.reports} {
			if pool != nil {
				pool.Close()
			}
		}
		return nil, b.named(config, err)
	}
	return b, nil
}

// named says which database an error is about.
func (b *Book) named(config *pgxpool.Config, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("open the database %s on %s: %w", config.ConnConfig.Database, config.ConnConfig.Host, err)
}

// newBook is one that is not connected.
func newBook(o Options) (*Book, *pgxpool.Config, error) {
	o.defaults()
	config, pooling, err := parse(o.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("open the database: %w", err)
	}
	o.Pooling = o.Pooling || pooling
	if o.Process == "" {
		o.Process = rand.Text()
	}
	b := &Book{
		options: o, wake: make(chan struct{}, 1), shapes: newShapes(),
		counters: newRecent[ledger.Counter, row](o.CounterCache), opened: newRecent[openKey, opened](maxOpened),
		generations: newRecent[string, int64](maxGenerations),
		instant:     &instant{test: o.Clock, local: o.Local, onStep: o.OnClockStep},
		files:       o.Migrations,
	}
	b.head = &statement{name: "weir_settings", sql: b.settingsSQL()}
	if b.files == nil {
		b.files = Migrations()
	}
	if b.migrations, err = shelf.Migrations(b.files); err != nil {
		return nil, nil, err
	}
	return b, config, nil
}

// parse reads a URL and takes the book's own parameter out of it. A URL may name
// several hosts with ports, which is none to package url.
func parse(address string) (*pgxpool.Config, bool, error) {
	pooling := false
	if base, raw, found := strings.Cut(address, "?"); found && strings.HasPrefix(base, "postgres") {
		query, err := url.ParseQuery(raw)
		if err != nil {
			return nil, false, fmt.Errorf("read the URL's parameters: %w", err)
		}
		switch mode := query.Get("pooling"); mode {
		case "", "session":
		case "transaction":
			pooling = true
		default:
			return nil, false, fmt.Errorf("pooling=%s: it is transaction or session", mode)
		}
		query.Del("pooling")
		address = base + "?" + strings.ReplaceAll(query.Encode(), "+", "%20") // the driver takes a plus for itself
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, false, fmt.Errorf("read the URL: %w", err)
	}
	return config, pooling, nil
}

func (b *Book) start(ctx context.Context, config *pgxpool.Config) error {
	if err := b.connect(ctx, config); err != nil {
		return err
	}
	if err := b.checkServer(ctx); err != nil {
		return err
	}
	if err := b.suit(ctx, config); err != nil {
		return err
	}
	if err := b.checkRights(ctx); err != nil {
		return err
	}
	if err := b.unfilled(ctx); err != nil {
		return err
	}
	if err := b.begins(ctx); err != nil {
		return err
	}
	if err := b.recount(ctx); err != nil {
		return err
	}
	if err := b.makeDays(ctx, b.Now(), daysAhead); inUse(err) {
		b.tell(ctx, err) // without a day's partition its rows lie in the default one
	} else if err != nil {
		return err
	}
	return b.openBatches(ctx, config)
}

// connect opens the pool of reports, which the start uses too.
func (b *Book) connect(ctx context.Context, base *pgxpool.Config) (err error) {
	reports := base.Copy()
	b.configure(reports, b.options.Reporting)
	// Whoever reads does not find out that a server has gone and come back.
	reports.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true }
	if !b.options.Pooling {
		reports.ConnConfig.RuntimeParams["statement_timeout"] = milliseconds(reportTimeout)
		reports.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = milliseconds(reportTimeout)
	}
	if b.reports, err = pgxpool.NewWithConfig(ctx, reports); err != nil {
		return errors.Join(store.ErrUnavailable, err)
	}
	if err := b.reports.Ping(ctx); err != nil {
		return unconnected(err)
	}
	return nil
}

// unconnected says what a pooler means that refuses a session's settings.
func unconnected(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == codeProtocol {
		return fmt.Errorf("%s: %w", underPooler, errors.Join(store.ErrUnavailable, err))
	}
	return errors.Join(store.ErrUnavailable, err)
}

// openBatches opens the pool of admission: its connections prepare every
// statement of a batch.
func (b *Book) openBatches(ctx context.Context, base *pgxpool.Config) (err error) {
	batches := base.Copy()
	b.configure(batches, b.options.Connections)
	if !b.options.Pooling {
		for _, s := range b.settings() {
			batches.ConnConfig.RuntimeParams[s.name] = s.value
		}
		batches.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			// The pool bounds the connecting alone: where nothing answers any more, a
			// connection that is being made ready would keep its place for ever.
			ctx, cancel := context.WithTimeout(ctx, b.options.BatchTimeout)
			defer cancel()
			return b.ready(ctx, conn.PgConn(), statements()...)
		}
	}
	// One that takes longer than a batch may is nobody's; its place is another's.
	batches.ConnConfig.ConnectTimeout = min(connectTimeout, b.options.BatchTimeout)
	if b.batches, err = pgxpool.NewWithConfig(ctx, batches); err != nil {
		return errors.Join(store.ErrUnavailable, err)
	}
	if err := b.batches.Ping(ctx); err != nil {
		return unconnected(err)
	}
	return nil
}

func (b *Book) configure(c *pgxpool.Config, connections int) {
	c.MaxConns = int32(connections)
	c.MinConns = 0
	c.ConnConfig.ConnectTimeout = connectTimeout
	c.BeforeConnect = hasten
	// Of its own accord it waits for a minute, and so does whoever closes the pool.
	c.PingTimeout = min(connectTimeout, b.options.BatchTimeout)
	if b.options.onAcquire != nil {
		c.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) { return b.options.onAcquire(ctx, conn), nil }
	}
	if b.options.Pooling {
		// Nothing may be left in a session that is handed on.
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		return
	}
	c.ConnConfig.RuntimeParams["application_name"] = "weir"
	c.ConnConfig.RuntimeParams["client_encoding"] = "UTF8"
}

type setting struct{ name, value string }

// settings are those of a batch. The planner may neither scan a table nor join
// by hash: a plan that was made while a table was empty stays the right one when
// it is large, analysed or not (ENGINE 12). JIT would take the barred plans'
// cost for a reason to compile.
func (b *Book) settings() []setting {
	return append([]setting{
		{"lock_timeout", milliseconds(b.options.LockTimeout)},
		{"statement_timeout", milliseconds(b.options.BatchTimeout)},
		{"idle_in_transaction_session_timeout", milliseconds(b.options.BatchTimeout)},
	}, planSettings...)
}

// settingsSQL sets them for one transaction, where a pooler hands sessions on.
func (b *Book) settingsSQL() string {
	var list []string
	for _, s := range b.settings() {
		list = append(list, "set_config('"+s.name+"', '"+s.value+"', true)")
	}
	return "SELECT " + strings.Join(list, ", ")
}

var planSettings = []setting{
	{"jit", "off"},
	{"plan_cache_mode", "force_generic_plan"},
	{"enable_seqscan", "off"},
	{"enable_hashjoin", "off"},
	{"enable_mergejoin", "off"},
	{"enable_bitmapscan", "off"},
	{"enable_memoize", "off"},
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// begins makes the store's secret and says how far back its schema reaches, if
// nothing says so yet, and takes up its time.
func (b *Book) begins(ctx context.Context) error {
	var secret [32]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return fmt.Errorf("draw the store's secret: %w", err)
	}
	if _, err := b.reports.Exec(ctx, sqlNewMeta, metaSecret, secret[:]); err != nil {
		return known(err)
	}
	if b.reach > 0 {
		if _, err := b.reports.Exec(ctx, sqlNewMeta, metaCompatible, bytesOf(b.reach)); err != nil {
			return known(err)
		}
	}
	var read int64
	sent := b.options.Local.Now()
	if err := b.reports.QueryRow(ctx, `SELECT `+micros).Scan(&read); err != nil {
		return known(err)
	}
	now := b.instant.reading(read)
	b.instant.measure(sent, now)
	if err := b.reports.QueryRow(ctx, sqlLastSeen).Scan(&b.recovery.LastAt); err != nil {
		return known(err)
	}
	if err := b.instant.begin(now, b.recovery.LastAt, b.options.AcceptClock); err != nil || !b.options.AcceptClock {
		return err
	}
	_, err := b.reports.Exec(ctx, sqlAcceptClock, b.instant.latest())
	return known(err)
}
