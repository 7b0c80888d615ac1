// SPDX-License-Identifier: Apache-2.0

package app

import "github.com/weirhq/weir/internal/keeper"

// newKeeper remembers in the store what providers keep for workspaces.
func (c *core) newKeeper() *keeper.Keeper {
	failed := &sometimes{clock: c.clock}
	return keeper.New(keeper.Options{
		Store: c.book, Clock: c.clock,
		Failed: func(err error) {
			if n := failed.tell(); n > 0 {
				c.log.Warn("what providers keep could not be recorded; this process remembers it until the store takes it", "error", err, "failures", n)
			}
		},
		Lost: func(n int) {
			c.log.Warn("the store did not take ids of what providers keep; requests that name them will be refused", "count", n)
		},
	})
}
