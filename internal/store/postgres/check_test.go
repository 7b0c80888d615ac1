// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/postgres"
)

// TestAStartSaysWhatIsLacking: a server or role that cannot carry the book stops
// the start with a sentence (BUD-6, STO-3).
func TestAStartSaysWhatIsLacking(t *testing.T) {
	for _, c := range []struct {
		name      string
		statement string // in the database, with its name for %
		parameter string // of the URL
		want      string
		is        error
	}{
		{
			"a newer schema that says nothing", `DELETE FROM meta WHERE name = 'schema_compatible'; INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`,
			"", "schema 9999", store.ErrNewerSchema,
		},
		{
			"a newer schema for newer programs", `UPDATE meta SET value = int8send(9998) WHERE name = 'schema_compatible';
			INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`, "", "programs use that know schema 9998", store.ErrNewerSchema,
		},
		{"a role that only reads", `CREATE ROLE reads LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reads`, "user=reads", "lacks rights", nil},
		{
			"a role that makes no tables", `CREATE ROLE makes LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO makes; REVOKE CREATE ON SCHEMA public FROM PUBLIC`,
			"user=makes", "CREATE on schema public", nil,
		},
		{"transactions that only read", `ALTER DATABASE % SET default_transaction_read_only = on`, "", "read-only", nil},
		{"commits that are not flushed", `ALTER DATABASE % SET synchronous_commit = off`, "", "synchronous_commit", nil},
		{"an unknown mode", ``, "pooling=statement", "pooling=statement", nil},
		{"nobody there", ``, "port=1", "open the database", store.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := server.Database(t)
			if b, err := postgres.Open(t.Context(), postgres.Options{URL: url}); err != nil || b.Close() != nil {
				t.Fatalf("open: %v", err)
			}
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			if c.statement != "" {
				run(t, conn, strings.ReplaceAll(c.statement, "%", conn.Config().Database))
			}
			_ = conn.Close(t.Context())
			if c.parameter != "" {
				url += "&" + c.parameter
			}
			b, err := postgres.Open(t.Context(), postgres.Options{URL: url})
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("open: %v, want %q", err, c.want)
			}
			if err == nil {
				_ = b.Close()
			}
		})
	}
	for _, role := range []string{"reads", "makes"} {
		server.Admin(t, "DROP ROLE IF EXISTS "+role)
	}
}

// TestAnotherEncodingIsRefused: names of any script must fit (BUD-6).
func TestAnotherEncodingIsRefused(t *testing.T) {
	url := server.Database(t)
	server.Admin(t, `CREATE DATABASE latin ENCODING 'SQL_ASCII' TEMPLATE template0`)
	t.Cleanup(func() { server.Admin(t, `DROP DATABASE latin WITH (FORCE)`) })
	at := strings.LastIndex(url, "/")
	if b, err := postgres.Open(t.Context(), postgres.Options{URL: url[:at] + "/latin?sslmode=disable"}); err == nil || !strings.Contains(err.Error(), "UTF8") {
		t.Errorf("open: %v, %v, want a word about UTF8", b, err)
	}
}

// TestAStandbyThatNobodyWaitsForIsToldOf: ENGINE 4. Failing over to it would lose
// what was acknowledged.
func TestAStandbyThatNobodyWaitsForIsToldOf(t *testing.T) {
	url := server.Database(t)
	warnings := func(want int) {
		t.Helper()
		b, err := postgres.Open(t.Context(), postgres.Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = b.Close() }()
		if got := b.Warnings(); len(got) != want || want > 0 && !strings.Contains(got[0], "failing over") {
			t.Errorf("the start warns of %q", got)
		}
	}
	warnings(0)
	standby, err := pgconn.Connect(t.Context(), url+"&replication=true")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = standby.Close(context.Background()) }()
	warnings(1)
}

// TestAURLOfSeveralHostsFindsThePrimary: RES-8. As after a failover; the book's own
// parameter is taken out of it too.
func TestAURLOfSeveralHostsFindsThePrimary(t *testing.T) {
	url := server.Database(t)
	before, host, _ := strings.Cut(url, "@")
	for _, parameter := range []string{"", "&pooling=transaction"} {
		b, err := postgres.Open(t.Context(), postgres.Options{URL: before + "@127.0.0.1:1," + host + "&target_session_attrs=read-write" + parameter})
		if err != nil {
			t.Errorf("open with %q: %v", parameter, err)
			continue
		}
		if err := b.Beat(t.Context()); err != nil {
			t.Error(err)
		}
		_ = b.Close()
	}
	if err := postgres.Validate("postgres://a:1,b:2/c?pooling=statement"); err == nil {
		t.Error("an unknown mode is taken")
	}
}

// TestSeveralStartsAtOnceMigrateOnce: replicas come up together.
func TestSeveralStartsAtOnceMigrateOnce(t *testing.T) {
	url := server.Empty(t)
	errs := make(chan error)
	const replicas = 4
	for range replicas {
		go func() {
			b, err := postgres.Open(t.Context(), postgres.Options{URL: url})
			if err == nil {
				err = b.Close()
			}
			errs <- err
		}()
	}
	for range replicas {
		if err := <-errs; err != nil {
			t.Errorf("open: %v", err)
		}
	}
}
