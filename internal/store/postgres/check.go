// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// oldestServer is PostgreSQL 14 as the server itself counts.
const oldestServer = 140000

// checkServer says in a sentence what the server lacks (BUD-6).
func (b *Book) checkServer(ctx context.Context) error {
	var version int
	var name, encoding, commit string
	var standby, readOnly bool
	err := b.reports.QueryRow(ctx, sqlServer).Scan(&version, &name, &encoding, &standby, &readOnly, &commit)
	switch {
	case err != nil:
		return known(err)
	case version < oldestServer:
		return fmt.Errorf("the server is PostgreSQL %s: Weir needs 14 or later", name)
	case encoding != "UTF8":
		return fmt.Errorf("the database's encoding is %s: Weir needs UTF8", encoding)
	case standby:
		return errors.New("the server is a standby: Weir needs the primary")
	case readOnly:
		return errors.New("the role's transactions are read-only (default_transaction_read_only): Weir needs to write")
	case commit == "off":
		return errors.New("synchronous_commit is off for this role or database: an admission could be lost after it was answered; set it on")
	default:
		return nil
	}
}

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
