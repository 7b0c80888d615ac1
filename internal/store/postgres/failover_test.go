// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/store/postgres/pgtest"
)

// pair is a primary with a standby that streams from it; its commits wait for that
// one from when follow is called.
func pair(t *testing.T) (primary, standby *pgtest.Server, database string, follow func()) {
	t.Helper()
	primary = &pgtest.Server{}
	t.Cleanup(func() {
		if err := primary.Stop(); err != nil {
			t.Error(err)
		}
	})
	standby = primary.Standby(t, "second")
	primary.Admin(t, `CREATE DATABASE weir TEMPLATE template0`)
	primary.Until(t, `SELECT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming')`)
	return primary, standby, primary.URL("weir"), func() {
		primary.Admin(t, `ALTER SYSTEM SET synchronous_standby_names = 'second'`)
		primary.Admin(t, `SELECT pg_reload_conf()`)
		primary.Until(t, `SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')`)
	}
}

func remarks(t *testing.T, b *postgres.Book) []string {
	t.Helper()
	list, err := b.Remarks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestAFailoverLosesNothingThatASynchronousStandbyHas: the primary is stopped at
// once under load, its address leads to the standby, which is promoted a little
// later. The books find that out by themselves, and what was acknowledged is there,
// with locks released early too. A standby that no commit waits for is warned of
// (ENGINE 4, RES-8).
func TestAFailoverLosesNothingThatASynchronousStandbyHas(t *testing.T) {
	primary, standby, database, follow := pair(t)
	proxy := between(t, database)
	s := newStorm(t, postgres.Options{URL: proxy.URL(database), EarlyRelease: true}, 2)
	if list := remarks(t, s.books[0]); len(list) != 1 || !strings.Contains(list[0], "synchronous_standby_names") {
		t.Errorf("with an asynchronous standby it says %q", list)
	}
	follow()
	if list := remarks(t, s.books[0]); len(list) != 0 {
		t.Errorf("with a synchronous standby it says %q", list)
	}
	var over sync.WaitGroup
	over.Go(func() {
		pause(t, database)
		if err := primary.Crash(); err != nil {
			t.Errorf("crash: %v", err)
		}
		if err := proxy.Lead(standby.URL("weir")); err != nil { // it takes no writes yet
			t.Error(err)
		}
		pause(t, standby.URL("weir"))
		standby.Admin(t, `SELECT pg_promote()`)
	})
	admitted := s.run(t, 12, 80)
	over.Wait()
	t.Logf("%d admitted", admitted)
	s.exact(t, admitted)
}

// TestAServerThatBecomesAStandbyIsLeftForTheOneThatTookOver: the address names both,
// and the former primary goes on without taking writes, its connections open
// (RES-8).
func TestAServerThatBecomesAStandbyIsLeftForTheOneThatTookOver(t *testing.T) {
	primary, standby, database, follow := pair(t)
	follow()
	other, err := url.Parse(standby.URL("weir"))
	if err != nil {
		t.Fatal(err)
	}
	both := strings.Replace(database, "/weir?", ","+other.Host+"/weir?", 1) + "&target_session_attrs=read-write"
	book := open(t, postgres.Options{URL: both})
	admit := func() error {
		results, err := book.Apply(context.Background(), []*ledger.Op{cycle(newID(book.Now()), "acme", "", book.Now())})
		if err == nil && results[0].Verdict != ledger.Admitted && results[0].Verdict != ledger.Carry {
			t.Errorf("verdict %d", results[0].Verdict)
		}
		return err
	}
	if err := admit(); err != nil {
		t.Fatal(err)
	}
	primary.Admin(t, `ALTER SYSTEM SET default_transaction_read_only = on`)
	primary.Admin(t, `SELECT pg_reload_conf()`)
	primary.Until(t, `SELECT current_setting('default_transaction_read_only') = 'on'`)
	for range 3 {
		if err := admit(); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("on a server that takes no writes: %v", err)
		}
	}
	standby.Admin(t, `SELECT pg_promote()`)
	tries := 1
	for ; admit() != nil && tries < 30; tries++ {
		pause(t, standby.URL("weir"))
	}
	if tries == 30 {
		t.Error("it stays with the server that takes no writes")
	}
	if n := len(balanced(t, book).Reservations); n < 2 {
		t.Errorf("%d reservations", n)
	}
}
