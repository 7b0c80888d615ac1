// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/store"
)

// standing is how a process stands among the others.
type standing struct {
	offsetMicros int64 // the store's clock less this process's
	// differs: another has applied another configuration file since this one (STO-2);
	// named is what is known of it.
	differs bool
	named   string
}

// stand works out how this process stands, and tells of what has changed.
func (c *core) stand(list *store.Replicas) {
	now := &standing{offsetMicros: list.OffsetMicros}
	own, last := admin.FileInForce(list.List, c.process)
	if own != nil && last != nil && own.File != "" && own.File != last.File {
		now.differs, now.named = true, fmt.Sprintf("%s applied file %s after this one's, %s", last.Name, last.File, own.File)
	}
	before := c.shared.standing.Swap(now)
	if now.differs && (before == nil || before.named != now.named) {
		c.log.Warn("this process runs with another configuration file than the one that is in force", "in_force", now.named)
	}
	if now.off() && (before == nil || !before.off()) {
		c.log.Warn("the clock of this process is off; the store's time decides", "store_clock_ahead", micros(now.offsetMicros))
	}
}

func (s *standing) off() bool { return admin.ClockOff(s.offsetMicros) }

// standing is how this process was found to stand; nil: nobody has looked, or it
// is alone.
func (c *core) standing() *standing {
	if c.shared == nil {
		return nil
	}
	return c.shared.standing.Load()
}

// remarks are what /readyz says of a process that is ready all the same: the
// store's time decides, and the file in force is in the store (ENGINE 7, STO-2).
func (c *core) remarks() (list []string) {
	s := c.standing()
	if s == nil {
		return nil
	}
	if s.off() {
		way, by := "behind", micros(s.offsetMicros)
		if by < 0 {
			way, by = "ahead of", -by
		}
		list = append(list, fmt.Sprintf("the clock of this process is %s %s the store's; the store's time decides", by.Round(100*time.Millisecond), way))
	}
	if s.differs {
		list = append(list, "this process runs with another configuration file than the one that is in force: "+s.named)
	}
	return list
}

func (c *core) clockOffset() time.Duration {
	if s := c.standing(); s != nil {
		return micros(s.offsetMicros)
	}
	return 0
}

func (c *core) fileDiffers() bool {
	s := c.standing()
	return s != nil && s.differs
}

// tellApplied tells the others which file is in force now.
func (c *core) tellApplied(ctx context.Context, mark string) {
	if c.shared == nil {
		return
	}
	if err := c.shared.book.Applied(ctx, mark); err != nil {
		c.log.Warn("the others are not told yet which configuration file was applied", "error", err)
	}
}

// fingerprint tells what one file declares from what another one does. Comments,
// the order of objects and settings of the process do not count.
func fingerprint(declared []admin.Declared) string {
	lines := make([]string, len(declared))
	for i, d := range declared {
		d.Line = 0
		line, _ := json.Marshal(d) // strings, bytes and booleans: it cannot fail
		lines[i] = string(line)
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	const shown = 6
	return hex.EncodeToString(sum[:shown])
}
