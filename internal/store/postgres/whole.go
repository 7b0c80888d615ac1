// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
)

const (
	sqlAllObjects     = `SELECT ` + objectColumns + ` FROM objects ORDER BY workspace, kind, id`
	sqlAllGenerations = `SELECT workspace, generation FROM generations ORDER BY workspace`
	sqlAllSecrets     = `SELECT hash, workspace, key_id, not_after FROM key_secrets ORDER BY hash`
	sqlAllCredentials = `SELECT workspace, provider_id, credential FROM credentials ORDER BY workspace, provider_id`
	sqlAllMeta        = `SELECT name, value FROM meta WHERE name NOT IN ('` + metaCompatible + `', '` + metaFilling + `') ORDER BY name`
	sqlAllAudit       = `SELECT seq, workspace, at, actor, action, kind, id, name, before, after FROM audit ORDER BY seq`
	sqlAllOutgoing    = `SELECT seq, attempts, next_at, body FROM outbox ORDER BY seq`
)

// Whole is store.Whole's.
func (b *Book) Whole(ctx context.Context, fn func(store.Reader, store.Rest) error) error {
	if err := b.Flush(ctx); err != nil {
		return err
	}
	return b.endless(ctx, func(tx pgx.Tx) error {
		r := &reader{ctx, tx}
		return fn(r, r)
	})
}

// Configuration is store.Rest's.
func (r *reader) Configuration(fn func(*store.Object) error) error {
	return walk(r, scanObject, sqlAllObjects, fn)
}

// Generations is store.Rest's.
func (r *reader) Generations(fn func(*store.Generation) error) error {
	return walk(r, func(v scanner) (g store.Generation, err error) {
		err = v.Scan(&g.Workspace, &g.Generation)
		plain(&g.Workspace)
		return g, err
	}, sqlAllGenerations, fn)
}

// KeySecrets is store.Rest's.
func (r *reader) KeySecrets(fn func(*store.KeySecret) error) error {
	return walk(r, func(v scanner) (s store.KeySecret, err error) {
		var hash []byte
		err = v.Scan(&hash, &s.Workspace, &s.KeyID, &s.NotAfter)
		copy(s.Hash[:], hash)
		plain(&s.Workspace, &s.KeyID)
		return s, err
	}, sqlAllSecrets, fn)
}

// Credentials is store.Rest's.
func (r *reader) Credentials(fn func(*store.Credential) error) error {
	return walk(r, func(v scanner) (c store.Credential, err error) {
		err = v.Scan(&c.Workspace, &c.Provider, &c.Credential)
		plain(&c.Workspace, &c.Provider, &c.Credential)
		return c, err
	}, sqlAllCredentials, fn)
}

// Meta is store.Rest's.
func (r *reader) Meta(fn func(*store.Meta) error) error {
	return walk(r, func(v scanner) (m store.Meta, err error) {
		err = v.Scan(&m.Name, &m.Value)
		return m, err
	}, sqlAllMeta, fn)
}

// Audits is store.Rest's.
func (r *reader) Audits(fn func(*store.Audit) error) error {
	return walk(r, scanAudit, sqlAllAudit, fn)
}

// Outgoing is store.Rest's.
func (r *reader) Outgoing(fn func(*store.Outgoing) error) error {
	return walk(r, func(v scanner) (o store.Outgoing, err error) {
		var body []byte
		if err = v.Scan(&o.Seq, &o.Attempts, &o.NextAt, &body); err == nil {
			o.Notice, err = ledger.DecodeNotice(body)
		}
		return o, err
	}, sqlAllOutgoing, fn)
}
