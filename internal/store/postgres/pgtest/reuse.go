// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// emptying leaves a database as it was prepared, but for its days' tables. The
// migrations' own table stays. Rows are few: to delete them is quicker than to
// truncate tables, each of which would be a new file.
const emptying = `SET synchronous_commit = off;
DO $$ DECLARE name regclass; BEGIN
FOR name IN SELECT c.oid FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname NOT LIKE 'goose%' LOOP
  EXECUTE 'DELETE FROM ' || name;
END LOOP;
FOR name IN SELECT c.oid FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'S' AND c.relname NOT LIKE 'goose%' LOOP
  PERFORM setval(name, 1, false);
END LOOP;
IF to_regclass('rolling') IS NOT NULL THEN -- the migrations' own row
  INSERT INTO rolling (through, base, cluster) VALUES (0, 0, '');
END IF;
END $$`

// Reused is Database for tests that are many: one that an earlier test has left is
// emptied for the next one, which takes a tenth of the time that making one takes.
func (s *Server) Reused(t testing.TB) string {
	t.Helper()
	s.begin(t)
	s.mu.Lock()
	name := ""
	if n := len(s.free); n > 0 {
		name, s.free = s.free[n-1], s.free[:n-1]
	}
	s.mu.Unlock()
	if name == "" {
		name = fmt.Sprintf("test_%d", s.databases.Add(1))
		s.Admin(t, "CREATE DATABASE "+name+" TEMPLATE "+template)
	}
	t.Cleanup(func() {
		if err := s.empty(name); err != nil {
			t.Logf("database %s is not used again: %v", name, err)
			return
		}
		s.mu.Lock()
		s.free = append(s.free, name)
		s.mu.Unlock()
	})
	return s.url(name)
}

// empty ends every connection to a database and removes what is in it.
func (s *Server) empty(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url(name))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()", name); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, emptying)
	return err
}
