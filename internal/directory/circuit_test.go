// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/directory"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/store"
)

// mute is a store that may say nothing.
type mute struct {
	directory.Store
	silent atomic.Bool
	asked  atomic.Int64
}

func (m *mute) StoreSecret(ctx context.Context) ([]byte, error) {
	if m.silent.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return make([]byte, 32), nil
}

func (m *mute) KeyBySecret(ctx context.Context, _ [32]byte) (store.KeySecret, error) {
	m.asked.Add(1)
	if m.silent.Load() {
		<-ctx.Done()
		return store.KeySecret{}, ctx.Err()
	}
	return store.KeySecret{}, store.ErrNotFound
}

// TestNobodyWaitsLongForAStoreThatSaysNothing: RES-8, BR-157, KEY-2. After three
// who waited in vain the others are answered without the store; when it speaks
// again, they are answered by it, and nobody has to ask for that.
func TestNobodyWaitsLongForAStoreThatSaysNothing(t *testing.T) {
	prices, err := price.Load()
	if err != nil {
		t.Fatal(err)
	}
	m := &mute{}
	d, err := directory.New(t.Context(), m, clock.System(), prices)
	if err != nil {
		t.Fatal(err)
	}
	var tried atomic.Int64
	identify := func() error {
		_, _, err := d.Identify(t.Context(), fmt.Sprint("never made ", tried.Add(1)))
		return err
	}
	m.silent.Store(true)
	var waiting sync.WaitGroup
	for range 3 {
		waiting.Go(func() {
			if err := identify(); err == nil || errors.Is(err, directory.ErrUnknownKey) {
				t.Errorf("of a store that says nothing: %v", err)
			}
		})
	}
	waiting.Wait()
	before := m.asked.Load()
	for range 50 {
		if err := identify(); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("afterwards: %v", err)
		}
	}
	if n := m.asked.Load() - before; n != 0 {
		t.Errorf("the store was asked %d times", n)
	}
	m.silent.Store(false)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for tries := 0; !errors.Is(identify(), directory.ErrUnknownKey); tries++ {
		if tries == 1000 {
			t.Fatal("it is not asked again")
		}
		<-tick.C
	}
}
