// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	sqlNotify = `SELECT pg_notify('weir_changes', '')`
	sqlListen = `LISTEN weir_changes`
	// sqlChanged names the workspaces that changed after a generation.
	sqlChanged = `SELECT workspace, generation FROM generations WHERE generation > $1`
	// listenAgain is how long a listener waits after its connection was lost.
	listenAgain = time.Second
)

// Validate tells what is wrong with an address, without connecting.
func Validate(address string) error {
	_, _, err := parse(address)
	return err
}

// Changed is store.Shared's.
func (b *Book) Changed(ctx context.Context, since int64) (workspaces []string, now int64, err error) {
	now = since
	workspaces, err = queryAll(ctx, b.reports, func(r scanner) (workspace string, err error) {
		var generation int64
		err = r.Scan(&workspace, &generation)
		now = max(now, generation)
		return text(workspace), err
	}, sqlChanged, since)
	if err != nil {
		return nil, since, fmt.Errorf("look for changes since generation %d: %w", since, err)
	}
	return workspaces, now, nil
}

// Listen is store.Shared's. A pooler hands no notices on: then changed is never
// called, and only asking tells of changes.
func (b *Book) Listen(ctx context.Context, changed func()) {
	address := b.options.ListenURL
	if address == "" && b.options.Pooling {
		<-ctx.Done()
		return
	}
	if address == "" {
		address = b.options.URL
	}
	config, _, err := parse(address)
	if err != nil {
		b.tell(ctx, fmt.Errorf("listen for changes: %w", err))
		return
	}
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		b.listen(ctx, config.ConnConfig, changed)
		again.Reset(listenAgain)
	}
}

// listen waits for notices on one connection until it is lost. That is not told:
// the database is asked, too, and whoever asks finds out whether it answers.
func (b *Book) listen(ctx context.Context, config *pgx.ConnConfig, changed func()) {
	config = config.Copy()
	config.ConnectTimeout = connectTimeout
	config.RuntimeParams["application_name"] = "weir listen"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.options.BatchTimeout)
		defer cancel()
		_ = conn.Close(end)
	}()
	if _, err := conn.Exec(ctx, sqlListen); err != nil {
		return
	}
	for changed(); ; changed() { // first of all: what was missed before
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return
		}
	}
}
