// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"
)

const (
	// checkpointEvery is how often it is looked how much was written,
	// checkpointBytes how much of batches, written and folded, makes a checkpoint:
	// about 24 MiB of SQLite's log. The log's file keeps its length, which makes flushing
	// it cheaper.
	checkpointEvery = 50 * time.Millisecond
	checkpointBytes = 16 << 20

	sqlCheckpointPassive = "PRAGMA wal_checkpoint(PASSIVE)"
	sqlCheckpointRestart = "PRAGMA wal_checkpoint(RESTART)"
)

// checkpointing keeps SQLite's log short without making a commit wait for it:
// a connection of its own copies the bulk while commits go on, then the little
// that came meanwhile is copied by the writer, so that the next commit
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
		if b.written.Load() < checkpointBytes {
			continue
		}
		b.written.Store(0)
		var err error
		if own == nil {
			own, err = newWriter(ctx, b.connector)
		}
		if err == nil {
			err = b.checkpoint(own)
		}
		if err != nil && ctx.Err() == nil && b.options.OnFlushError != nil {
			b.options.OnFlushError(err)
		}
	}
}

func (b *Book) checkpoint(own *writer) error {
	if err := own.query(sqlCheckpointPassive, func([]driver.Value) error { return nil }); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	b.mu.Lock()
	writer := b.writer
	b.mu.Unlock()
	if writer == nil {
		return nil
	}
	if err := writer.restart(); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}
