// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// writer is the one connection that writes, with its prepared statements. It
// stands on the driver itself: database/sql's pool, locks and conversions cost
// a third of a batch's time and give nothing to a single connection.
type writer struct {
	conn  driver.Conn
	stmts map[string]driver.Stmt
	args  []driver.NamedValue
	fault func(commit func() error) error // tests lose commits with it
	// numbers are the rows of open reservations, last the highest given; closed
	// are those that the transaction deletes.
	numbers map[ledger.ID]int64
	last    int64
	closed  []ledger.ID
}

var errDriver = errors.New("the SQLite driver lacks what the book needs")

func newWriter(ctx context.Context, connector driver.Connector) (*writer, error) {
	conn, err := connector.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the writing connection: %w", err)
	}
	return &writer{conn: conn, stmts: make(map[string]driver.Stmt), numbers: make(map[ledger.ID]int64)}, nil
}

func (w *writer) close() error {
	var errs []error
	for _, s := range w.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, w.conn.Close())...)
}

func (w *writer) prepare(query string) (driver.Stmt, error) {
	if s := w.stmts[query]; s != nil {
		return s, nil
	}
	s, err := w.conn.Prepare(query)
	if err != nil {
		return nil, fmt.Errorf("prepare %.40q: %w", query, err)
	}
	w.stmts[query] = s
	return s, nil
}

// bind reuses one slice: the writer serves one statement at a time.
func (w *writer) bind(args []driver.Value) []driver.NamedValue {
	for len(w.args) < len(args) {
		w.args = append(w.args, driver.NamedValue{Ordinal: len(w.args) + 1})
	}
	for i, a := range args {
		w.args[i].Value = a
	}
	return w.args[:len(args)]
}

// exec runs one statement. A transaction is never cut short by a caller who
// goes away, so there is no context.
func (w *writer) exec(query string, args ...driver.Value) error {
	s, err := w.prepare(query)
	if err != nil {
		return err
	}
	run, ok := s.(driver.StmtExecContext)
	if !ok {
		return errDriver
	}
	if _, err := run.ExecContext(context.Background(), w.bind(args)); err != nil {
		return fmt.Errorf("run %.40q: %w", query, err)
	}
	return nil
}

// query calls row for each row; row must not keep the values' bytes.
func (w *writer) query(query string, row func([]driver.Value) error, args ...driver.Value) (err error) {
	s, err := w.prepare(query)
	if err != nil {
		return err
	}
	run, ok := s.(driver.StmtQueryContext)
	if !ok {
		return errDriver
	}
	rows, err := run.QueryContext(context.Background(), w.bind(args))
	if err != nil {
		return fmt.Errorf("run %.40q: %w", query, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(values); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read %.40q: %w", query, err)
		}
		if err := row(values); err != nil {
			return err
		}
	}
}

// errBroken: the connection cannot go on, though nothing was committed.
var errBroken = errors.New("the connection could not roll back")

// inTx runs fn in a transaction. When it fails, nothing has happened, unless the
// error is ErrUnknownOutcome: a commit that fails may have reached the disk.
// After that, and after errBroken, the connection is of no more use.
func (w *writer) inTx(fn func() error) error {
	if err := w.exec(sqlBegin); err != nil {
		return errors.Join(store.ErrUnavailable, err)
	}
	w.closed = w.closed[:0]
	if err := fn(); err != nil {
		return w.rollback(err)
	}
	err := w.commit()
	var code *sqlite.Error
	if errors.As(err, &code) && code.Code()&0xff == sqlite3.SQLITE_BUSY {
		return w.rollback(errors.Join(store.ErrUnavailable, err))
	}
	if err != nil {
		return errors.Join(store.ErrUnknownOutcome, err)
	}
	for _, id := range w.closed {
		delete(w.numbers, id)
	}
	return nil
}

func (w *writer) commit() error {
	commit := func() error { return w.exec(sqlCommit) }
	if w.fault != nil {
		return w.fault(commit)
	}
	return commit()
}

func (w *writer) rollback(cause error) error {
	if err := w.exec(sqlRollback); err != nil {
		return errors.Join(cause, errBroken, err)
	}
	return cause
}
