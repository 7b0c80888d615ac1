// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/internal/store/sqlite"
	"github.com/weirhq/weir/internal/store/storetest"
)

func TestTheSQLiteBookKeepsTheContract(t *testing.T) {
	for name, cache := range map[string]int{"AmpleCache": 0, "CacheOfThreeRows": 3} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, storetest.Driver{
				Keeps: true,
				Open: func(ctx context.Context, place string, o storetest.Options) (storetest.Store, error) {
					b, err := sqlite.Open(ctx, sqlite.Options{
						Path: filepath.Join(place, "weir.db"), Clock: o.Clock, AcceptClock: o.AcceptClock,
						OnClockStep: o.OnClockStep, CounterCache: cache,
					})
					if err != nil {
						return nil, err
					}
					b.Start()
					return b, nil
				},
			})
		})
	}
}
