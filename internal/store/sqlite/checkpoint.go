// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"
)

const (
	// checkpointEvery is how often the commits are counted, checkpointCommits how
	// many make a checkpoint: 4,000 to 16,000 pages, by the size of batches. The
	// log's file keeps its length, which makes flushing it cheaper.
	checkpointEvery   = 50 * time.Millisecond
	checkpointCommits = 400

	sqlCheckpointPassive = "PRAGMA wal_checkpoint(PASSIVE)"
	sqlCheckpointRestart = "PRAGMA wal_checkpoint(RESTART)"
)

// checkpointing keeps SQLite's log short without making a commit wait for it:
// a connection of its own copies the bulk while commits go on, then the little
// that came meanwhile is copied under the book's lock, so that the next commit
// begins the log anew. A checkpoint inside a commit, as SQLite does it by
// itself, would hold everybody up for as long as the whole copy takes.
func (b *Book) checkpointing(ctx context.Context) {
	tick := time.NewTicker(checkpointEvery)
	defer tick.Stop()
	var own *writer
	defer func() {
		if own != nil {
			_ = own.close() // it has nothing to commit
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if b.commits.Load() < checkpointCommits {
			continue
		}
		b.commits.Store(0)
		var err error
		if own == nil {
			own, err = newWriter(ctx, b.connector)
		}
		if err == nil {
			err = b.checkpoint(ctx, own)
		}
		if err != nil && ctx.Err() == nil && b.options.OnFlushError != nil {
			b.options.OnFlushError(err)
		}
	}
}

func (b *Book) checkpoint(ctx context.Context, own *writer) error {
	if err := own.query(sqlCheckpointPassive, func([]driver.Value) error { return nil }); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx); err != nil {
		return err
	}
	if err := b.writer.query(sqlCheckpointRestart, func([]driver.Value) error { return nil }); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}
