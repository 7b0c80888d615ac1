// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/internal/ledger"
)

// maxShaped bounds the counters of a batch whose rows are written out as VALUES,
// which the server reads sooner than arrays. A statement of each length is
// prepared when it is first needed.
const maxShaped = 16

// shape is what compares one number of counters of one workspace, or any number of
// any workspaces' (ENGINE 3). Each fails, and with it the whole round trip, unless
// the rows, the generations and the time are as guessed, and says the time.
// PostgreSQL logs the failure, so its text says that it means nothing.
type shape struct {
	// expect locks the rows. expectRead is for what was refused: it looks at one
	// snapshot and writes nothing. change locks them by writing them anew.
	expect, expectRead, change *statement
}

const stateColumns = 6 // beside a counter's key

// counterColumns are the types of a row of counters, in order.
var counterColumns = []uint32{
	oidText, oidText, oidInt, oidText, oidInt, oidInt, oidInt, oidInt, oidInt, oidInt, oidBytea,
}

var (
	columnNames = map[uint32]string{oidText: "text", oidInt: "bigint", oidBytea: "bytea"}
	arrayOf     = map[uint32]uint32{oidText: oidTextArray, oidInt: oidIntArray, oidBytea: oidByteaArray}
)

// stExpect, stExpectRead and stChange are the shape of any number of counters.
var (
	stExpect     = anyShape.expect
	stExpectRead = anyShape.expectRead
	stChange     = anyShape.change

	anyShape = newShape("", arraysSQL, `cardinality($1::text[])`, generationsSQL, oidTextArray, oidIntArray)
)

// newShapes are that and, by their number, those of few counters of one workspace.
func newShapes() []shape {
	list := []shape{anyShape}
	for n := 1; n <= maxShaped; n++ {
		rows := func(columns []uint32) (string, []uint32) { return valuesSQL(n, columns) }
		list = append(list, newShape(fmt.Sprint("_", n), rows, fmt.Sprint(n), generationSQL, oidText, oidInt))
	}
	return list
}

// newShape writes the statements for n rows that rows gives columns of. After their
// parameters come the clock, by how much it may be wrong, in microseconds, the
// workspace and its generation; generation compares these.
func newShape(suffix string, rows func(columns []uint32) (string, []uint32), n string, generation func(workspace, number string) string,
	ofWorkspace, ofGeneration uint32,
) shape {
	both := append(slices.Clone(counterColumns), counterColumns[len(counterColumns)-stateColumns:]...)
	one := func(name string, columns []uint32, write func(rows string) string) *statement {
		sql, types := rows(columns)
		at := func(i int) string { return "$" + strconv.Itoa(len(types)+i) }
		sql = write(sql) + `SELECT CASE WHEN count(*) = ` + n + ` AND ` + generation(at(3), at(4)) + `
 AND abs(` + micros + ` - ` + at(1) + `) <= ` + at(2) + ` THEN ` + micros + `
 ELSE ('weir: harmless, something changed meanwhile; ' || count(*) || ' counters as expected')::bigint END FROM c`
		return &statement{name + suffix, sql, append(types, oidInt, oidInt, ofWorkspace, ofGeneration)}
	}
	return shape{
		expect:     one("weir_expect", counterColumns, func(rows string) string { return compareSQL(rows, `FOR UPDATE`) }),
		expectRead: one("weir_expect_read", counterColumns, func(rows string) string { return compareSQL(rows, `OFFSET 0`) }),
		change:     one("weir_change", both, changeSQL),
	}
}

const (
	rowNames   = `workspace, lim, epoch, subject, win, kind, settled, held, warned, at, state`
	rowMatches = `c.kind = k.kind AND c.settled = k.settled AND c.held = k.held AND c.warned = k.warned AND c.at = k.at AND c.state = k.state`
)

// compareSQL finds rows that are as they should be.
func compareSQL(rows, lock string) string {
	return `WITH c AS MATERIALIZED (SELECT c.kind FROM ` + rows + ` AS k (` + rowNames + `),
 LATERAL (SELECT c.kind FROM counters c WHERE ` + counterMatch + ` AND ` + rowMatches + ` ` + lock + `) AS c)
`
}

// changeSQL writes them anew. The inner query finds where a row is by its key. One
// that somebody else is changing is waited for, and compared as he has left it:
// what compares belongs to the row that is written.
func changeSQL(rows string) string {
	return `WITH c AS (UPDATE counters c SET kind = k.new_kind, settled = k.new_settled, held = k.new_held, warned = k.new_warned,
  at = k.new_at, state = k.new_state
 FROM ` + rows + ` AS k (` + rowNames + `, new_kind, new_settled, new_held, new_warned, new_at, new_state),
  LATERAL (SELECT c.ctid FROM counters c WHERE ` + counterMatch + ` OFFSET 0) AS p
 WHERE c.ctid = p.ctid AND ` + rowMatches + ` RETURNING 1)
`
}

// generationSQL compares one workspace's generation.
func generationSQL(workspace, number string) string {
	return `(SELECT coalesce(max(g.generation), 0) FROM generations g WHERE g.workspace = ANY (ARRAY[` + workspace + `, ''])) = ` + number
}

// generationsSQL compares those of arrays.
func generationsSQL(workspaces, numbers string) string {
	return `NOT EXISTS (SELECT FROM unnest(` + workspaces + `::text[], ` + numbers + `::bigint[]) AS w (workspace, generation)
  WHERE ` + generationSQL("w.workspace", "w.generation") + ` IS NOT TRUE)`
}

// arraysSQL are rows whose columns are arrays.
func arraysSQL(columns []uint32) (string, []uint32) {
	types, list := make([]uint32, len(columns)), make([]string, len(columns))
	for i, oid := range columns {
		types[i], list[i] = arrayOf[oid], fmt.Sprintf("$%d::%s[]", i+1, columnNames[oid])
	}
	return "unnest(" + strings.Join(list, ", ") + ")", types
}

// valuesSQL is a list of n rows.
func valuesSQL(n int, columns []uint32) (string, []uint32) {
	var types []uint32
	rows := make([]string, n)
	for i := range rows {
		list := make([]string, len(columns))
		for j, oid := range columns {
			types = append(types, oid)
			list[j] = fmt.Sprintf("$%d::%s", len(types), columnNames[oid])
		}
		rows[i] = "(" + strings.Join(list, ", ") + ")"
	}
	return "(VALUES " + strings.Join(rows, ", ") + ")", types
}

// rowArgs are the parameters of arraysSQL: counters as they were seen and, unless w
// is nil, as it writes them.
func rowArgs(counters []ledger.Counter, states []*ledger.State, raw [][]byte, w *write) [][]byte {
	args := counterArgs(counters, stateArgs(states, raw)...)
	if w != nil {
		args = append(args, stateArgs(w.states, w.raw)...)
	}
	return args
}

// valueArgs are those of valuesSQL.
func valueArgs(counters []ledger.Counter, states []*ledger.State, raw [][]byte, w *write) [][]byte {
	args := make([][]byte, 0, len(counters)*(len(counterColumns)+stateColumns)+4)
	for i, c := range counters {
		args = append(args,
			[]byte(escape(c.Workspace)), []byte(escape(c.Limit)), integerArg(int64(c.Epoch)), []byte(escape(c.Subject)), integerArg(c.Window))
		args = appendState(args, states[i], raw[i])
		if w != nil {
			args = appendState(args, w.states[i], w.raw[i])
		}
	}
	return args
}

func appendState(args [][]byte, s *ledger.State, raw []byte) [][]byte {
	if s == nil {
		s = &ledger.State{}
	}
	if raw == nil {
		raw = []byte{} // a nil parameter is NULL
	}
	return append(args, integerArg(int64(s.Kind)), integerArg(s.Settled), integerArg(s.Held), integerArg(int64(s.Warned)), integerArg(s.At), raw)
}

// ready prepares statements that a connection does not know yet, in one round trip.
func (b *Book) ready(ctx context.Context, conn *pgconn.PgConn, list ...*statement) error {
	known := conn.CustomData()
	var missing []*statement
	for _, s := range list {
		if !b.options.Pooling && known[s.name] == nil {
			missing = append(missing, s)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	pipeline := conn.StartPipeline(ctx)
	for _, s := range missing {
		pipeline.SendPrepare(s.name, s.sql, s.types)
	}
	if err := pipeline.Sync(); err != nil {
		return fmt.Errorf("prepare statements: %w", errors.Join(err, pipeline.Close()))
	}
	if err := pipeline.Close(); err != nil {
		return fmt.Errorf("prepare statements: %w", err)
	}
	for _, s := range missing {
		known[s.name] = true
	}
	return nil
}
