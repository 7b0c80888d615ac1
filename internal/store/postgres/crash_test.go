// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store/postgres"
)

// TestACrashOfTheServerLosesNothingAcknowledged stops the server at once, twice,
// while requests run; nobody helps it up but its start (ENGINE 4).
func TestACrashOfTheServerLosesNothingAcknowledged(t *testing.T) {
	for name, early := range map[string]bool{"FlushedUnderLocks": false, "LocksReleasedEarly": true} {
		t.Run(name, func(t *testing.T) {
			url := server.Database(t)
			s := newStorm(t, postgres.Options{URL: url, EarlyRelease: early}, 2)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range 2 {
					pause(t, url)
					crash(t)
				}
			}()
			admitted := s.run(t, 12, 200)
			<-done
			t.Logf("%d admitted", admitted)
			s.exact(t, admitted)
		})
	}
}

// pause lets the server wait for a moment.
func pause(t *testing.T, url string) {
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Errorf("connect: %v", err)
		return
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(context.Background(), `SELECT pg_sleep(0.2)`); err != nil {
		t.Errorf("wait: %v", err)
	}
}

func crash(t *testing.T) {
	if err := server.Crash(); err != nil {
		t.Errorf("crash: %v", err)
	}
	if err := server.Start(); err != nil {
		t.Errorf("start: %v", err)
	}
}

// TestWithoutTheBarrierACrashLoses is the control of the test above: the same
// commits, without waiting for the disk, do not survive.
func TestWithoutTheBarrierACrashLoses(t *testing.T) {
	// The server flushes nothing by itself for so long.
	server.Admin(t, `ALTER SYSTEM SET wal_writer_delay = '10s'`)
	server.Admin(t, `SELECT pg_reload_conf()`)
	defer func() {
		server.Admin(t, `ALTER SYSTEM RESET wal_writer_delay`)
		server.Admin(t, `SELECT pg_reload_conf()`)
	}()
	for _, lossy := range []bool{true, false} {
		o := postgres.Options{URL: server.Database(t), EarlyRelease: true}
		if lossy {
			o.LoseWhatIsNotFlushed()
		}
		book := open(t, o)
		const requests = 50
		for range requests {
			results, err := book.Apply(t.Context(), []*ledger.Op{cycle(newID(book.Now()), "acme", "", book.Now())})
			if err != nil || results[0].Verdict != ledger.Admitted {
				t.Fatalf("admit: %+v, %v", results, err)
			}
		}
		crash(t)
		left := len(balanced(t, book).Reservations)
		if lossy && left == requests || !lossy && left != requests {
			t.Errorf("lossy %t: %d of %d reservations survived", lossy, left, requests)
		}
	}
}
