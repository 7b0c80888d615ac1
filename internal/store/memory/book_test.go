// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"testing"

	"github.com/weirhq/weir/internal/store/memory"
	"github.com/weirhq/weir/internal/store/storetest"
)

func TestTheMemoryBookKeepsTheContract(t *testing.T) {
	storetest.Run(t, storetest.Driver{
		Open: func(_ context.Context, _ string, o storetest.Options) (storetest.Store, error) {
			return memory.New(memory.Options{Clock: o.Clock, OnClockStep: o.OnClockStep}), nil
		},
	})
}
