// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store/postgres"
)

// hot are the statements that find rows, with the indexes that they must find
// them by. The others only insert.
var hot = map[string][]string{
	"weir_claim":       {"reservations_pkey"},
	"weir_open":        {"reservations_pkey"},
	"weir_expect_open": {"reservations_pkey"},
	"weir_remove":      {"reservations_pkey"},
	"weir_lock":        {"counters_pkey"},
	"weir_look":        {"counters_pkey"},
	"weir_expect":      {"counters_pkey", "generations_pkey"},
	"weir_expect_read": {"counters_pkey", "generations_pkey"},
	"weir_change":      {"counters_pkey", "generations_pkey"},
	"weir_instant":     {"generations_pkey"},
	"weir_quarters":    {"key_quarters_pkey"},
	"weir_endings":     {"events_default_pkey", "events_[0-9]+_pkey"},
	"weir_swept":       {"calls_default_pkey", "calls_[0-9]+_pkey"},
}

// TestPlansFindRowsByTheirPrimaryKey explains every statement of a batch on tables
// that are new, bloated and never analysed, and analysed: the plan is the same
// (ENGINE 12).
func TestPlansFindRowsByTheirPrimaryKey(t *testing.T) {
	url := server.Database(t)
	book := open(t, postgres.Options{URL: url})
	conn := planner(t, url)
	t.Run("New", func(t *testing.T) { plans(t, conn) })
	for _, off := range []string{"counters", "reservations", "key_quarters", "generations", "events_default", "calls_default"} {
		run(t, conn, `ALTER TABLE `+off+` SET (autovacuum_enabled = off)`)
	}
	for range 20 {
		var ops []*ledger.Op
		for i := range 200 {
			ops = append(ops, cycle(newID(book.Now()), "acme", fmt.Sprint("k", i), book.Now()))
		}
		results, err := book.Apply(t.Context(), ops)
		if err != nil {
			t.Fatal(err)
		}
		ops = ops[:0]
		for _, r := range results {
			ops = append(ops, settle(r.Reservation, 1))
		}
		if _, err := book.Apply(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("BloatedAndNeverAnalysed", func(t *testing.T) { plans(t, planner(t, url)) })
	t.Run("MadeWhileNew", func(t *testing.T) { plans(t, conn) })
	run(t, conn, `ANALYZE`)
	t.Run("Analysed", func(t *testing.T) { plans(t, planner(t, url)) })
	run(t, conn, `DELETE FROM counters WHERE held = 0`)
	run(t, conn, `VACUUM ANALYZE`)
	t.Run("NearlyEmptyAndAnalysed", func(t *testing.T) { plans(t, planner(t, url)) })
}

func run(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// planner is a session as those of batches are.
func planner(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	for name, value := range postgres.PlanSettings() {
		run(t, conn, `SET `+name+` = `+value)
	}
	for name := range hot {
		run(t, conn, `PREPARE `+name+` AS `+postgres.Statements()[name])
	}
	return conn
}

func plans(t *testing.T, conn *pgx.Conn) {
	for name, indexes := range hot {
		nulls := strings.TrimSuffix(strings.Repeat("NULL, ", postgres.Parameters(name)), ", ")
		rows, err := conn.Query(t.Context(), `EXPLAIN EXECUTE `+name+`(`+nulls+`)`, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		plan := strings.Join(lines, "\n")
		if name == "weir_change" {
			// What compares a row that is found by its place joins nothing.
			plan = strings.Replace(plan, "Join Filter: ((k.kind = c_1.kind)", "", 1)
			if !strings.Contains(plan, "TID Cond: (ctid = p.ctid)") {
				t.Errorf("%s does not write rows where they are:\n%s", name, plan)
			}
		}
		for _, index := range indexes {
			if !regexp.MustCompile(`Index (Only )?Scan (Backward )?using ` + index).MatchString(plan) {
				t.Errorf("%s does not use %s:\n%s", name, index, plan)
			}
		}
		if strings.Contains(plan, "Index Scan") && !strings.Contains(plan, "Index Cond") {
			t.Errorf("%s walks a whole index:\n%s", name, plan)
		}
		for _, bad := range []string{"Seq Scan", "Join Filter", "Materialize", "Hash Join", "Merge Join", "reservations_expires", "JIT"} {
			if strings.Contains(plan, bad) {
				t.Errorf("%s: %s:\n%s", name, bad, plan)
			}
		}
	}
}
