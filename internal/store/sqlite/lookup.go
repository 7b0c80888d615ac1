// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/weirhq/weir/internal/ledger"
)

// lookups read the tables for batches, beside the fold that may be writing them:
// all of one batch from one snapshot. Rows of the journal from unfolded on are
// not in that; what the tail says of them is added.
type lookups struct {
	connection

	connector driver.Connector
	begun     bool
	unfolded  int64
}

// begin takes the snapshot, once a batch.
func (l *lookups) begin() error {
	if l.begun {
		return nil
	}
	if l.conn == nil {
		var err error
		if l.connection, err = connect(context.Background(), l.connector); err != nil {
			return err
		}
	}
	if err := l.exec(sqlBeginRead); err != nil {
		return errors.Join(err, l.close())
	}
	l.begun = true
	return l.query(sqlUnfolded, func(v []driver.Value) error {
		l.unfolded = integer(v[0])
		return nil
	})
}

// end gives the snapshot back.
func (l *lookups) end() error {
	if !l.begun {
		return nil
	}
	l.begun = false
	if err := l.exec(sqlCommit); err != nil {
		return errors.Join(err, l.close()) // the next batch connects anew
	}
	return nil
}

func (l *lookups) close() error {
	if l.conn == nil {
		return nil
	}
	err := l.connection.close()
	l.connection = connection{}
	if err != nil {
		return fmt.Errorf("close the connection of lookups: %w", err)
	}
	return nil
}

// counter reads one row; absent stands for none.
func (l *lookups) counter(c ledger.Counter) (*ledger.State, error) {
	s := absent
	if err := l.begin(); err != nil {
		return nil, err
	}
	err := l.query(sqlCounter, func(v []driver.Value) error {
		s = &ledger.State{Held: integer(v[0]), At: integer(v[1])}
		return s.DecodeInto(raw(v[2]))
	}, c.Workspace, c.Limit, int64(c.Epoch), c.Subject, c.Window)
	return s, err
}

// ending is how the tables say that a request ended; Kind 0: not at all.
func (l *lookups) ending(workspace string, id ledger.ID) (ledger.Ending, error) {
	var ending ledger.Ending
	if err := l.begin(); err != nil {
		return ending, err
	}
	err := l.query(sqlEnding, func(v []driver.Value) error {
		if kind := ledger.EventKind(integer(v[0])); kind == ledger.EventCorrection {
			ending.Corrections = int32(integer(v[1]))
		} else {
			ending.Kind = kind
		}
		return nil
	}, workspace, id[:])
	if err == nil && ending.Kind == ledger.EventSwept {
		ending.Swept, err = l.swept(workspace, id)
	}
	return ending, err
}

// swept is a reservation as a sweep ended it, from its call; nil without one.
func (l *lookups) swept(workspace string, id ledger.ID) (r *ledger.Reservation, err error) {
	err = l.query(sqlCall, func(v []driver.Value) error {
		c := ledger.Call{ID: id, Workspace: workspace, Key: text(v[2]), EndedAt: integer(v[5])}
		if err := c.DecodeInto(raw(v[8])); err != nil {
			return err
		}
		r = c.Reservation()
		return nil
	}, workspace, id[:])
	return r, err
}

func (l *lookups) keyQuarters(workspace, key string, from int64) ([]ledger.QuarterSum, error) {
	if err := l.begin(); err != nil {
		return nil, err
	}
	var list []ledger.QuarterSum
	err := l.query(sqlKeyQuarters, func(v []driver.Value) error {
		list = append(list, ledger.QuarterSum{
			Workspace: workspace, Key: key, Quarter: integer(v[0]),
			Spend: integer(v[1]), Tokens: integer(v[2]), Requests: integer(v[3]),
		})
		return nil
	}, workspace, key, from)
	return list, err
}
