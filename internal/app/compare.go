// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/store"
)

// digest is the rows of a whole store by their sort: how many, and a sum over them
// that does not depend on their order.
type digest struct {
	told  func(name string, rows int64)
	parts []digestPart
}

type digestPart struct {
	name string
	rows int64
	sum  [4]uint64
}

// toldRows is how many rows are read between two words of progress.
const toldRows = 1000

// part sums what walk puts.
func (d *digest) part(name string, walk func(put func(row any) error) error) error {
	part := digestPart{name: name}
	hash := sha256.New()
	encoder := json.NewEncoder(hash)
	var sum [sha256.Size]byte
	err := walk(func(row any) error {
		hash.Reset()
		if err := encoder.Encode(row); err != nil {
			return err
		}
		hash.Sum(sum[:0])
		for i := range part.sum {
			part.sum[i] += binary.BigEndian.Uint64(sum[8*i:])
		}
		if part.rows++; part.rows%toldRows == 0 {
			d.told(name, part.rows)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	d.parts = append(d.parts, part)
	return nil
}

// put hands rows of one type on.
func put[T any](to func(row any) error) func(*T) error {
	return func(row *T) error { return to(row) }
}

func (d *digest) all(books store.Reader, rest store.Rest) error {
	for _, part := range []struct {
		name string
		walk func(to func(row any) error) error
	}{
		{"objects", func(to func(any) error) error { return rest.Configuration(put[store.Object](to)) }},
		{"generations", func(to func(any) error) error { return rest.Generations(put[store.Generation](to)) }},
		{"key secrets", func(to func(any) error) error { return rest.KeySecrets(put[store.KeySecret](to)) }},
		{"credentials", func(to func(any) error) error { return rest.Credentials(put[store.Credential](to)) }},
		{"values", func(to func(any) error) error { return rest.Meta(put[store.Meta](to)) }},
		{"audit entries", func(to func(any) error) error { return rest.Audits(put[store.Audit](to)) }},
		{"ids kept by providers", func(to func(any) error) error { return rest.AllKept(put[route.Kept](to)) }},
		{"notices", func(to func(any) error) error { return rest.Outgoing(put[store.Outgoing](to)) }},
		{"counters", func(to func(any) error) error {
			return books.Counters(func(c ledger.Counter, s *ledger.State) error { return to([]any{c, s.Held, s.At, s.Encode()}) })
		}},
		{"reservations", func(to func(any) error) error {
			return books.Reservations(func(r *ledger.Reservation) error { return to([]any{r.Workspace, r.ID, r.ExpiresAt, r.Encode()}) })
		}},
		{"events", func(to func(any) error) error {
			return books.Events(func(e *ledger.Event) error {
				return to([]any{e.Workspace, e.ID, e.Attempt, e.Kind, e.AdmittedAt, e.Encode()})
			})
		}},
		{"quarters", func(to func(any) error) error {
			return books.Quarters(func(q ledger.QuarterSum) error { return to(q) })
		}},
		{"roll-ups", func(to func(any) error) error { return books.Rollups(put[ledger.Rollup](to)) }},
		{"closings", func(to func(any) error) error { return books.Closings(func(c store.Closing) error { return to(c) }) }},
		{"calls", func(to func(any) error) error {
			return books.Calls(func(c *store.Call) error {
				return to([]any{c.Workspace, c.ID, c.Key, c.Outcome, c.Code, c.EndedAt, c.ClientID, c.Count, c.Encode()})
			})
		}},
	} {
		if err := d.part(part.name, part.walk); err != nil {
			return err
		}
	}
	return nil
}
