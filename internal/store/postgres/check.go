// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weirhq/weir/internal/store"
)

// oldestServer is PostgreSQL 14 as the server itself counts.
const oldestServer = 140000

// checkServer says in a sentence what the server lacks (BUD-6).
func (b *Book) checkServer(ctx context.Context) error {
	var version int
	var name, encoding, commit string
	var standby, readOnly, loose bool
	err := b.reports.QueryRow(ctx, sqlServer).Scan(&version, &name, &encoding, &standby, &readOnly, &commit, &loose)
	switch {
	case err != nil:
		return known(err)
	case version < oldestServer:
		return fmt.Errorf("the server is PostgreSQL %s: Weir needs 14 or later", name)
	case encoding != "UTF8":
		return fmt.Errorf("the database's encoding is %s: Weir needs UTF8", encoding)
	case standby:
		return fmt.Errorf("the server is a standby: Weir needs the primary: %w", store.ErrUnavailable) // it may be promoted
	case readOnly:
		return errors.New("the role's transactions are read-only (default_transaction_read_only): Weir needs to write")
	case commit == "off":
		return errors.New("synchronous_commit is off for this role or database: an admission could be lost after it was answered; set it on")
	case loose:
		b.warnings = append(b.warnings, "something follows the database without being waited for (synchronous_standby_names, synchronous_commit): "+
			"if it is a standby, failing over to it may lose what was acknowledged")
	}
	return nil
}

// Warnings are what the start has found that the book can be kept with (ENGINE 4).
func (b *Book) Warnings() []string { return b.warnings }

// checkRights says which rights on its tables the role lacks (BUD-6). One that
// does not migrate makes no tables.
func (b *Book) checkRights(ctx context.Context) error {
	rows, err := b.reports.Query(ctx, sqlRights, b.options.MigrateByHand)
	if err != nil {
		return known(err)
	}
	lacking, err := collect(rows, func(r scanner) (string, error) {
		var table, right string
		err := r.Scan(&table, &right)
		return right + " on " + table, err
	})
	if err != nil {
		return err
	}
	if len(lacking) > 0 {
		return fmt.Errorf("the role lacks rights that the book needs: %s", strings.Join(lacking, ", "))
	}
	return nil
}

// sqlStandbys counts those that stream, and of them those that a commit waits for.
// A role without the right to see it is told of none.
const sqlStandbys = `SELECT count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')), count(*) FILTER (WHERE sync_state IN ('async', 'potential'))
FROM pg_stat_replication WHERE state IN ('streaming', 'catchup')`

// Remarks says what an operator should know of a server that can carry the book
// (ENGINE 4).
func (b *Book) Remarks(ctx context.Context) ([]string, error) {
	var waited, others int
	if err := b.reports.QueryRow(ctx, sqlStandbys).Scan(&waited, &others); err != nil {
		return nil, fmt.Errorf("ask for the server's standbys: %w", known(err))
	}
	if waited > 0 || others == 0 {
		return nil, nil
	}
	return []string{"no commit waits for a standby of the database (synchronous_standby_names): failing over to one may lose admissions and charges that were answered"}, nil
}
