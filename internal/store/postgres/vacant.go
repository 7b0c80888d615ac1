// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrNotVacant means that a database has tables or functions of somebody's.
var ErrNotVacant = errors.New("the database holds data already")

// relations counts what a database holds in the schema where a book would be made.
const relations = `SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace)
+ (SELECT count(*) FROM pg_proc WHERE pronamespace = current_schema()::regnamespace)`

// clearing drops all that a book made of a database that was vacant.
const clearing = `DO $$ DECLARE name regclass; function regprocedure; BEGIN
FOR name IN SELECT c.oid FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition LOOP
  EXECUTE 'DROP TABLE ' || name || ' CASCADE';
END LOOP;
FOR name IN SELECT c.oid FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'S' LOOP
  EXECUTE 'DROP SEQUENCE ' || name || ' CASCADE';
END LOOP;
FOR function IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace LOOP
  EXECUTE 'DROP FUNCTION ' || function || ' CASCADE';
END LOOP;
END $$`

// CheckVacant answers ErrNotVacant for a database that is somebody's already.
func CheckVacant(ctx context.Context, address string) error {
	return once(ctx, address, func(conn *pgx.Conn) error {
		var found int64
		if err := conn.QueryRow(ctx, relations).Scan(&found); err != nil {
			return fmt.Errorf("look what the database holds: %w", err)
		}
		if found > 0 {
			return ErrNotVacant
		}
		return nil
	})
}

// Clear drops everything in a database that CheckVacant found vacant before a book
// was opened there.
func Clear(ctx context.Context, address string) error {
	return once(ctx, address, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, clearing); err != nil {
			return fmt.Errorf("clear the database: %w", err)
		}
		return nil
	})
}

func once(ctx context.Context, address string, do func(*pgx.Conn) error) error {
	config, _, err := parse(address)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	return errors.Join(do(conn), conn.Close(ctx))
}
