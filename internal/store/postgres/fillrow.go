// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"fmt"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

// putter takes one row of a table.
type putter = func(row ...any) error

func (f *filling) all(books store.Reader, rest store.Rest) error {
	return first(
		func() error { return f.configuration(rest) },
		func() error { return f.books(books) },
		func() error { return f.rollups(books) },
		func() error { return f.records(books, rest) },
		func() error { return f.kept(rest) },
	)
}

func first(parts ...func() error) error {
	for _, part := range parts {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func (f *filling) configuration(rest store.Rest) error {
	return first(
		func() error {
			return f.table("meta", []string{"name", "value"}, func(put putter) error {
				return rest.Meta(func(m *store.Meta) error { return put(m.Name, m.Value) })
			})
		},
		func() error {
			return f.table("generations", []string{"workspace", "generation"}, func(put putter) error {
				return rest.Generations(func(g *store.Generation) error { return put(escape(g.Workspace), g.Generation) })
			})
		},
		func() error {
			columns := []string{"workspace", "kind", "id", "name", "version", "generation", "epoch", "body", "source", "origin", "created_at", "updated_at", "retired_at"}
			return f.table("objects", columns, func(put putter) error {
				return rest.Configuration(func(o *store.Object) error {
					return put(escape(o.Workspace), escape(o.Kind), escape(o.ID), escape(o.Name), o.Version, o.Generation, int64(o.Epoch), o.Body,
						escape(o.Source), escape(o.Origin), o.CreatedAt, o.UpdatedAt, o.RetiredAt)
				})
			})
		},
		func() error {
			return f.table("key_secrets", []string{"hash", "workspace", "key_id", "not_after"}, func(put putter) error {
				return rest.KeySecrets(func(s *store.KeySecret) error {
					hash := s.Hash
					return put(hash[:], escape(s.Workspace), escape(s.KeyID), s.NotAfter)
				})
			})
		},
		func() error {
			return f.table("credentials", []string{"workspace", "provider_id", "credential"}, func(put putter) error {
				return rest.Credentials(func(c *store.Credential) error {
					return put(escape(c.Workspace), escape(c.Provider), escape(c.Credential))
				})
			})
		},
	)
}

func (f *filling) books(books store.Reader) error {
	return first(
		func() error {
			columns := []string{"workspace", "lim", "epoch", "subject", "win", "kind", "settled", "held", "warned", "at", "state"}
			return f.table("counters", columns, func(put putter) error {
				return books.Counters(func(c ledger.Counter, s *ledger.State) error {
					return put(escape(c.Workspace), escape(c.Limit), int64(c.Epoch), escape(c.Subject), c.Window,
						int16(s.Kind), s.Settled, s.Held, int32(s.Warned), s.At, s.Encode())
				})
			})
		},
		func() error {
			return f.table("reservations", []string{"workspace", "id", "expires_at", "process", "body"}, func(put putter) error {
				return books.Reservations(func(r *ledger.Reservation) error {
					return put(escape(r.Workspace), uuidOf(r.ID), r.ExpiresAt, escape(r.Process), r.Encode())
				})
			})
		},
		func() error {
			columns := []string{"workspace", "id", "attempt", "kind", "at", "admitted_at", "key", "model", "spend", "tokens", "tx", "body"}
			return f.table("events", columns, func(put putter) error {
				return books.Events(func(e *ledger.Event) error {
					if err := f.dayOf("events", e.ID); err != nil {
						return err
					}
					return put(escape(e.Workspace), uuidOf(e.ID), e.Attempt, int16(e.Kind), e.At, e.AdmittedAt, escape(e.Subjects.Key),
						escape(e.Model), e.Spend, e.Tokens, int64(0), e.Encode())
				})
			})
		},
		func() error {
			return f.table("key_quarters", []string{"workspace", "key", "quarter", "spend", "tokens", "requests"}, func(put putter) error {
				return books.Quarters(func(q ledger.QuarterSum) error {
					return put(escape(q.Workspace), escape(q.Key), q.Quarter, q.Spend, q.Tokens, q.Requests)
				})
			})
		},
		func() error {
			columns := []string{"workspace", "lim", "epoch", "subject", "win", "day", "credit", "kind", "amount"}
			return f.table("closings", columns, func(put putter) error {
				return books.Closings(func(c store.Closing) error {
					k := &c.Counter
					return put(escape(k.Workspace), escape(k.Limit), int64(k.Epoch), escape(k.Subject), k.Window, c.Day, c.Credit, int16(c.Kind), c.Amount)
				})
			})
		},
	)
}

// rollups are copied as they are: days of which the events are gone are in them.
func (f *filling) rollups(books store.Reader) error {
	err := books.Unrolled(func(e *ledger.Event) error {
		return fmt.Errorf("event %s is in no roll-up yet", e.ID)
	})
	if err != nil {
		return err
	}
	columns := []string{
		"workspace", "quarter", "grp", "key", "model", "provider", "member", "team", "project",
		"spend", "tokens", "requests", "events", "first_millis", "last_millis",
	}
	return f.table("rollups", columns, func(put putter) error {
		return books.Rollups(func(r *ledger.Rollup) error {
			digest := shelf.DigestOf(&r.Group)
			return put(escape(r.Workspace), r.Quarter, digest[:], escape(r.Key), escape(r.Model), escape(r.Provider), escape(r.User), escape(r.Team),
				escape(r.Project), r.Spend, r.Tokens, r.Requests, r.Events, r.FirstMillis, r.LastMillis)
		})
	})
}

func (f *filling) records(books store.Reader, rest store.Rest) error {
	return first(
		func() error {
			columns := []string{"workspace", "id", "key", "outcome", "code", "at", "ended_at", "model", "client_id", "count", "body"}
			return f.table("calls", columns, func(put putter) error {
				return books.Calls(func(c *store.Call) error {
					if err := f.dayOf("calls", c.ID); err != nil {
						return err
					}
					return put(escape(c.Workspace), uuidOf(c.ID), escape(c.Key), escape(c.Outcome), escape(c.Code), c.At, c.EndedAt,
						escape(c.Model), escape(c.ClientID), c.Count, c.Encode())
				})
			})
		},
		func() error {
			columns := []string{"workspace", "seq", "at", "actor", "action", "kind", "id", "name", "before", "after"}
			return f.table("audit", columns, func(put putter) error {
				return rest.Audits(func(a *store.Audit) error {
					return put(escape(a.Workspace), a.Seq, a.At, escape(a.Actor), escape(a.Action), escape(a.Kind), escape(a.ID), escape(a.Name), a.Before, a.After)
				})
			})
		},
		func() error {
			return f.table("outbox", []string{"workspace", "seq", "kind", "at", "attempts", "next_at", "body"}, func(put putter) error {
				return rest.Outgoing(func(o *store.Outgoing) error {
					n := &o.Notice
					return put(escape(n.Workspace), o.Seq, escape(n.Kind), n.At, int32(o.Attempts), o.NextAt, ledger.AppendNotice(nil, n))
				})
			})
		},
	)
}
