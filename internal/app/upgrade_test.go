// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/admin"
)

// upgradeText is the configuration that the programs ran with which left
// testdata/schemas: each admitted twelve of thirty requests, was refused one, and
// was killed with the last one open. A file is made with pg_dump --inserts.
const upgradeText = "funds: prepaid\n" + replicaModel + `keys:
  - {name: k, secret: ` + replicaKey + `, user: ada, caps: {day: "5"}, limits: {rpm: 100, concurrency: 9}}
budgets:
  - {name: b, scope: org, metric: tokens, limit: 100000, period: month}
rate_limits:
  - {name: r, subject_kind: org, metric: requests, window_seconds: 86400, limit: 30}
`

// TestADatabaseOfAnOlderProgramIsTakenOver: STO-3, RES-5, RES-7, BR-020. What it has
// counted goes on being counted, what it left open is charged, its usage is
// reported, and the books balance.
func TestADatabaseOfAnOlderProgramIsTakenOver(t *testing.T) {
	files, err := filepath.Glob("testdata/schemas/*.sql.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no schemas: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			url := database.Empty(t)
			last := restore(t, url, file)
			w := newWorldOn(t, url, last+int64(time.Hour/time.Microsecond), upgradeText, nil)
			w.balanced()
			w.server.Sweep(context.Background())
			w.quietly()
			answers := volley(24, 8, func(int) answer { return w.chat(replicaKey, "m") })
			if ok, refused := count(answers, 200), count(answers, 429); ok != 18 || refused != 6 {
				t.Errorf("%d more were admitted, %d refused, want 18 of thirty and 6", ok, refused)
			}
			w.quietly()
			usage, err := w.admin.Usage(context.Background(), admin.UsageRequest{By: "key", From: "2000-01-01", To: "2100-01-01"})
			if err != nil || len(usage.Rows) != 1 || usage.Rows[0].Requests != 30 {
				t.Errorf("usage %+v, %v, want 30 requests", usage.Rows, err)
			}
			w.balanced()
			w.clock.Advance(24 * time.Hour)
			w.must(w.chat(replicaKey, "m"), 200, "")
		})
	}
}

// restore runs a dump, and returns the last instant of its store.
func restore(t *testing.T, url, file string) (last int64) {
	t.Helper()
	packed, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = packed.Close() }() // it was only read
	r, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), string(text), pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("restore %s: %v", file, err)
	}
	if err := conn.QueryRow(t.Context(), "SELECT max(beat_at) FROM public.replicas").Scan(&last); err != nil {
		t.Fatal(err)
	}
	return last
}
