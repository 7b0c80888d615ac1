// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

// connection is one connection with its prepared statements, for one caller at a
// time. It stands on the driver itself: database/sql's pool, locks and
// conversions cost a third of a batch's time and give nothing to a single one.
type connection struct {
	conn  driver.Conn
	stmts map[string]driver.Stmt
	args  []driver.NamedValue
}

// writer is the one connection that writes. Its mutex is the last that anybody
// takes.
type writer struct {
	connection

	mu    sync.Mutex
	spent atomic.Bool                     // it is of no more use: everything must be read anew
	fault func(commit func() error) error // tests lose commits with it
	// numbers are the rows of table reservations, last the highest given;
	// numbered is what the transaction changes of them.
	numbers  map[ledger.ID]int64
	last     int64
	numbered []numbered
	body     []byte // of a call, for one statement
	puts     int    // statements of folds
}

// numbered is the row of a reservation; 0: it has none any more.
type numbered struct {
	id     ledger.ID
	number int64
}

var errDriver = errors.New("the SQLite driver lacks what the book needs")

func connect(ctx context.Context, connector driver.Connector) (connection, error) {
	conn, err := connector.Connect(ctx)
	if err != nil {
		return connection{}, fmt.Errorf("open a connection: %w", err)
	}
	return connection{conn: conn, stmts: make(map[string]driver.Stmt)}, nil
}

func newWriter(ctx context.Context, connector driver.Connector) (*writer, error) {
	c, err := connect(ctx, connector)
	if err != nil {
		return nil, err
	}
	return &writer{connection: c, numbers: make(map[ledger.ID]int64)}, nil
}

func (c *connection) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.conn.Close())...)
}

func (c *connection) prepare(query string) (driver.Stmt, error) {
	if s := c.stmts[query]; s != nil {
		return s, nil
	}
	s, err := c.conn.Prepare(query)
	if err != nil {
		return nil, fmt.Errorf("prepare %.40q: %w", query, err)
	}
	c.stmts[query] = s
	return s, nil
}

// bind reuses one slice: the writer serves one statement at a time.
func (c *connection) bind(args []driver.Value) []driver.NamedValue {
	for len(c.args) < len(args) {
		c.args = append(c.args, driver.NamedValue{Ordinal: len(c.args) + 1})
	}
	for i, a := range args {
		c.args[i].Value = a
	}
	return c.args[:len(args)]
}

// exec runs one statement. A transaction is never cut short by a caller who
// goes away, so there is no context.
func (c *connection) exec(query string, args ...driver.Value) error {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	run, ok := s.(driver.StmtExecContext)
	if !ok {
		return errDriver
	}
	if _, err := run.ExecContext(context.Background(), c.bind(args)); err != nil {
		return fmt.Errorf("run %.40q: %w", query, err)
	}
	return nil
}

// query calls row for each row; row must not keep the values' bytes.
func (c *connection) query(query string, row func([]driver.Value) error, args ...driver.Value) (err error) {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	run, ok := s.(driver.StmtQueryContext)
	if !ok {
		return errDriver
	}
	rows, err := run.QueryContext(context.Background(), c.bind(args))
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

// errSpent: somebody else's transaction has left the connection of no use.
var errSpent = errors.New("the connection is spent")

// transact runs fn in a transaction that is on the disk when it returns. When it
// fails, nothing has happened, unless the error is ErrUnknownOutcome: a commit
// that fails may have reached the disk. After that, and after errBroken, the
// connection is spent.
func (w *writer) transact(fn func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spent.Load() {
		return errors.Join(store.ErrUnavailable, errSpent)
	}
	err := w.inTx(fn)
	if errors.Is(err, store.ErrUnknownOutcome) || errors.Is(err, errBroken) {
		w.spent.Store(true)
	}
	return err
}

// spend ends it. Its last commit may hang in it; closing rolls back what is not
// done. Whoever still has it gets errSpent.
func (w *writer) spend() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spent.Store(true)
	return w.close()
}

func (w *writer) inTx(fn func() error) error {
	if err := w.exec(sqlBegin); err != nil {
		return errors.Join(store.ErrUnavailable, err)
	}
	w.numbered = w.numbered[:0]
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
	for _, n := range w.numbered {
		if n.number == 0 {
			delete(w.numbers, n.id)
		} else {
			w.numbers[n.id] = n.number
		}
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
