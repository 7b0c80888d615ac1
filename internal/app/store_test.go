// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/store/postgres/pgtest"
)

// The behaviour tests run on either store: WEIR_TEST_STORE=postgres chooses the
// second one. Those that need several processes run on it always.

// database is this test process's PostgreSQL. It starts with the first test that
// needs it. A day's tables are made before the tests of that day.
var database = pgtest.Server{Prepare: func(url string) error {
	b, err := postgres.Open(context.Background(), postgres.Options{URL: url, Clock: clock.NewManual(start)})
	if err != nil {
		return err
	}
	return b.Close()
}}

func TestMain(m *testing.M) {
	served, err := app.ServedLoad()
	code := 0
	if !served {
		code = m.Run()
		err = database.Stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func onPostgres() bool { return os.Getenv("WEIR_TEST_STORE") == "postgres" }

// embedded is the store of a test that is about its file.
const embedded = "sqlite:"

// newStore is where a world keeps its books unless its test says otherwise.
func newStore(w *world) string {
	if w.store != "" && w.store != embedded {
		return w.store
	}
	if w.store == "" && onPostgres() {
		return database.Reused(w.t)
	}
	return "sqlite:" + w.storePath()
}

// storePath is the file of an embedded store.
func (w *world) storePath() string { return filepath.Join(filepath.Dir(w.config), "weir.db") }

// spoolPath is the file of settlements that the store could not take.
func (w *world) spoolPath() string {
	if !w.shared() {
		return w.storePath() + ".spool"
	}
	if w.state != "" {
		return filepath.Join(w.state, "weir.spool")
	}
	return filepath.Join(filepath.Dir(w.config), "weir.spool")
}

func (w *world) shared() bool { return w.store != "sqlite:"+w.storePath() }

// outage makes the store refuse every write until the returned function is
// called. What is in it can still be read.
func (w *world) outage() (end func()) {
	if w.shared() {
		return w.lockTables()
	}
	return w.lockFile()
}

// lockTables holds locks on tables of a database that only readers pass, as a
// migration by hand does. Each has a connection of its own: whoever waits for a
// second one deadlocks with a batch.
func (w *world) lockTables() (end func()) {
	w.t.Helper()
	ctx := context.Background()
	var held []*pgx.Conn
	for _, table := range []string{"reservations", "generations"} {
		conn, err := pgx.Connect(ctx, w.store)
		if err == nil {
			_, err = conn.Exec(ctx, "BEGIN; LOCK TABLE "+table+" IN EXCLUSIVE MODE")
		}
		if err != nil {
			w.t.Fatal(err)
		}
		held = append(held, conn)
	}
	end = func() {
		for _, conn := range held {
			_ = conn.Close(ctx) // with it goes the lock
		}
	}
	w.t.Cleanup(end)
	return end
}

// newSharedWorld starts a program on PostgreSQL.
func newSharedWorld(t *testing.T, text string) *world {
	t.Helper()
	return newWorldOn(t, database.Reused(t), start, text, nil)
}

// peersWanted is how many more programs than one the races run on.
func peersWanted() int {
	n, err := strconv.Atoi(os.Getenv("WEIR_TEST_REPLICAS"))
	if err != nil || !onPostgres() {
		return 0
	}
	return n - 1
}

// spread sends the requests that follow to n more programs too.
func (w *world) spread(n int) {
	w.t.Helper()
	for range n {
		w.peers = append(w.peers, w.replica())
	}
}

// quiet waits until nothing runs on the store: what another replica answered is
// settled within 100 ms (RES-11).
func (w *world) quiet() {
	w.t.Helper()
	if len(w.peers) == 0 {
		return
	}
	w.eventually("the settlements of the others", func() bool {
		open, err := w.server.OpenUntil(context.Background())
		return err == nil && len(open) == 0
	})
}

// replica starts one more program on the store of w, with its file.
func (w *world) replica() *world {
	w.t.Helper()
	other := w.another()
	other.start()
	return other
}

// replicaWith is replica with a file of its own.
func (w *world) replicaWith(text string) *world {
	w.t.Helper()
	other := w.another()
	other.config = filepath.Join(other.state, "weir.yaml")
	other.write(text)
	other.start()
	return other
}

// another is one more program on the store of w that has not started.
func (w *world) another() *world {
	other := *w
	other.state, other.server, other.peers, other.turn = w.t.TempDir(), nil, nil, &atomic.Int64{}
	w.t.Cleanup(other.stop)
	return &other
}
