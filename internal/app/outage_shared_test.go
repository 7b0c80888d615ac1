// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/admin"
)

// ailments are what a database can have, each with the way to bring it about until
// the returned function is called.
func ailments() map[string]func(*world) (end func()) {
	return map[string]func(*world) (end func()){
		"down":               (*world).databaseDown,
		"restarted":          (*world).databaseRestarted,
		"frozen":             func(w *world) func() { return database.Freeze(w.t) },
		"read-only":          (*world).databaseReadOnly,
		"out of connections": (*world).databaseFull,
		"locked":             (*world).lockTables,
	}
}

func (w *world) databaseDown() (end func()) {
	w.t.Helper()
	if err := database.Crash(); err != nil {
		w.t.Fatal(err)
	}
	up := false
	end = func() {
		if !up {
			up = true
			if err := database.Start(); err != nil {
				w.t.Errorf("start the database: %v", err)
			}
		}
	}
	w.t.Cleanup(end)
	return end
}

// databaseRestarted goes away twice, as in a failover whose second server is not
// ready at once: connections are cut, taken, and cut again.
func (w *world) databaseRestarted() (end func()) {
	w.t.Helper()
	w.databaseDown()()
	return w.databaseDown()
}

// databaseReadOnly refuses every write as a standby does.
func (w *world) databaseReadOnly() (end func()) {
	w.t.Helper()
	w.run(w.store, `CREATE OR REPLACE FUNCTION read_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'cannot execute % in a read-only transaction', TG_OP USING ERRCODE = 'read_only_sql_transaction'; END $$;
CREATE TRIGGER read_only BEFORE INSERT OR UPDATE OR DELETE ON reservations EXECUTE FUNCTION read_only();
CREATE TRIGGER read_only BEFORE INSERT OR UPDATE OR DELETE ON counters EXECUTE FUNCTION read_only()`)
	return func() { w.run(w.store, "DROP TRIGGER read_only ON reservations; DROP TRIGGER read_only ON counters") }
}

// databaseFull takes every connection that the server has, those of the program
// too.
func (w *world) databaseFull() (end func()) {
	w.t.Helper()
	ctx := context.Background()
	server := w.store[:strings.LastIndexByte(w.store, '/')+1]
	var taken []*pgx.Conn
	take := func() {
		for {
			conn, err := pgx.Connect(ctx, server+"postgres?sslmode=disable")
			if err != nil {
				return
			}
			taken = append(taken, conn)
		}
	}
	take()
	for range 3 {
		_, err := taken[0].Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'weir%'")
		if err != nil {
			w.t.Fatal(err)
		}
		take()
	}
	end = func() {
		for _, conn := range taken {
			_ = conn.Close(ctx)
		}
		taken = nil
	}
	w.t.Cleanup(end)
	return end
}

func (w *world) run(address, statements string) {
	w.t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statements); err != nil {
		w.t.Fatal(err)
	}
}

// TestWhateverAilsTheDatabaseNothingIsLostAndNobodyHangs: RES-8, RES-11, BR-157,
// BR-159. What runs is answered without delay and charged once when the database
// is well; what comes is refused with 503 and sent nowhere; it recovers by itself.
func TestWhateverAilsTheDatabaseNothingIsLostAndNobodyHangs(t *testing.T) {
	for name, ail := range ailments() {
		t.Run(name, func(t *testing.T) {
			const running = 24
			w := newSharedWorld(t, outageConfig)
			fresh, err := w.admin.KeyCreate(context.Background(), admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some("fresh")}})
			if err != nil {
				t.Fatal(err)
			}
			w.must(w.look("/readyz"), 200, "")
			answers := w.held(running)
			end := ail(w)
			began := time.Now()
			w.eventually("/readyz to turn red", func() bool { return w.look("/readyz").status == 503 })
			within(t, "/readyz turned red", began, 2*time.Second)
			w.must(w.look("/healthz"), 200, "")
			began = time.Now()
			w.provider.Release()
			if all := <-answers; count(all, 200) != running {
				t.Errorf("%d of %d running requests were answered", count(all, 200), running)
			}
			within(t, "the running requests ended", began, 2*time.Second)
			w.spooled(running)
			for range 3 {
				began = time.Now()
				for _, a := range volley(16, 16, func(int) answer { return w.chat(outageKey, "m") }) {
					if a.status != 503 || a.code() != "service_unavailable" {
						t.Errorf("a request meanwhile: %v", a)
					}
				}
				within(t, "refusing", began, 2*time.Second)
			}
			w.must(w.chat(fresh.Secret, "m"), 503, "service_unavailable") // nobody has looked it up yet
			if n := w.provider.Bill().Requests; n != running {
				t.Errorf("%d requests reached the provider, want %d", n, running)
			}
			end()
			w.eventually("the store to be back", func() bool { return w.look("/readyz").status == 200 })
			w.spooled(0)
			w.must(w.chat(outageKey, "m"), 200, "")
			w.must(w.chat(fresh.Secret, "m"), 200, "")
			w.settled("1", "10")
			if list, err := w.admin.RequestList(context.Background(), admin.RequestListRequest{Outcome: "swept"}); err != nil || len(list.Requests) != 0 {
				t.Errorf("swept: %+v (%v)", list, err)
			}
		})
	}
}

// within allows a loaded machine as much again.
func within(t *testing.T, what string, began time.Time, bound time.Duration) {
	t.Helper()
	if took := time.Since(began); took > 2*bound {
		t.Errorf("%s after %s, want %s", what, took, bound)
	}
}
