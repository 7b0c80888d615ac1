// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/internal/ledger"
)

// maxShaped bounds the counters of a batch whose rows are written out as VALUES,
// which the server reads sooner than arrays. A statement of each length is
// prepared when it is first needed.
const maxShaped = 16

// shape is a pair of statements for one number of counters.
type shape struct{ expect, expectRead, update *statement }

// counterColumns are the types of a row of counters, in order.
var counterColumns = []uint32{
	oidText, oidText, oidInt, oidText, oidInt, oidInt, oidInt, oidInt, oidInt, oidInt, oidBytea,
}

var columnNames = map[uint32]string{oidText: "text", oidInt: "bigint", oidBytea: "bytea"}

func newShapes() []shape {
	list := make([]shape, maxShaped+1)
	for n := 1; n <= maxShaped; n++ {
		values, types := valuesSQL(n)
		expectTypes := append(append([]uint32(nil), types...), oidText, oidInt, oidInt, oidInt)
		from := len(types)
		list[n] = shape{
			expect:     &statement{fmt.Sprint("weir_expect_", n), expectSQL(values, fmt.Sprint(n), from, `FOR UPDATE`), expectTypes},
			expectRead: &statement{fmt.Sprint("weir_expect_read_", n), expectSQL(values, fmt.Sprint(n), from, `OFFSET 0`), expectTypes},
			update:     &statement{fmt.Sprint("weir_update_", n), updateSQL(values), types},
		}
	}
	return list
}

// valuesSQL is a list of n rows of counters.
func valuesSQL(n int) (string, []uint32) {
	var types []uint32
	rows := make([]string, n)
	for i := range rows {
		columns := make([]string, len(counterColumns))
		for j, oid := range counterColumns {
			types = append(types, oid)
			columns[j] = fmt.Sprintf("$%d::%s", len(types), columnNames[oid])
		}
		rows[i] = "(" + strings.Join(columns, ", ") + ")"
	}
	return "VALUES " + strings.Join(rows, ", "), types
}

// valueArgs are the parameters of valuesSQL.
func valueArgs(counters []ledger.Counter, states []*ledger.State, raw [][]byte) [][]byte {
	args := make([][]byte, 0, len(counters)*len(counterColumns)+4)
	for i, c := range counters {
		s := states[i]
		if s == nil {
			s = &ledger.State{}
		}
		state := raw[i]
		if state == nil {
			state = []byte{} // a nil parameter is NULL
		}
		args = append(args,
			[]byte(escape(c.Workspace)), []byte(escape(c.Limit)), integerArg(int64(c.Epoch)), []byte(escape(c.Subject)), integerArg(c.Window),
			integerArg(int64(s.Kind)), integerArg(s.Settled), integerArg(s.Held), integerArg(int64(s.Warned)), integerArg(s.At), state)
	}
	return args
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
