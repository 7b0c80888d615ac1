// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/store"
)

const (
	// silences in a row say that the store does not answer; then nobody waits for it
	// until one probe has been answered (RES-8).
	silences = 3
	// probePause is between two probes.
	probePause = 250 * time.Millisecond
)

// errSilent: the store has not answered for some time, so it was not asked.
var errSilent = errors.Join(store.ErrUnavailable, errors.New("the store has not answered for some time"))

// circuit keeps those who wait for a store that says nothing from waiting each for
// as long: what fails at once is not its affair.
type circuit struct {
	Store

	mu       sync.Mutex // guards what follows
	silent   int        // in a row
	rests    bool       // a probe runs, or ended a moment ago
	patience time.Duration
}

// enter tells whether the store may be asked. While it may not, somebody begins a
// probe now and then and does not wait for it.
func (c *circuit) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent < silences {
		return true
	}
	if !c.rests {
		c.rests = true
		go c.probe()
	}
	return false
}

func (c *circuit) probe() {
	ctx, cancel := context.WithTimeout(context.Background(), c.patience)
	defer cancel()
	_, err := c.StoreSecret(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.silent, c.rests = 0, false
		return
	}
	time.AfterFunc(probePause, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.rests = false
	})
}

// leave takes in how the store has answered.
func (c *circuit) leave(ctx context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil || errors.Is(err, store.ErrNotFound):
		c.silent = 0
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		c.silent++
	}
}

// Since is Store's.
func (c *circuit) Since(ctx context.Context, workspace string, generation int64) ([]store.Object, int64, error) {
	if !c.enter() {
		return nil, 0, errSilent
	}
	list, now, err := c.Store.Since(ctx, workspace, generation)
	c.leave(ctx, err)
	return list, now, err
}

// Object is Store's.
func (c *circuit) Object(ctx context.Context, workspace, kind, id string) (store.Object, error) {
	if !c.enter() {
		return store.Object{}, errSilent
	}
	o, err := c.Store.Object(ctx, workspace, kind, id)
	c.leave(ctx, err)
	return o, err
}

// KeyBySecret is Store's.
func (c *circuit) KeyBySecret(ctx context.Context, hash [32]byte) (store.KeySecret, error) {
	if !c.enter() {
		return store.KeySecret{}, errSilent
	}
	k, err := c.Store.KeyBySecret(ctx, hash)
	c.leave(ctx, err)
	return k, err
}

// Credential is Store's.
func (c *circuit) Credential(ctx context.Context, workspace, providerID string) (string, error) {
	if !c.enter() {
		return "", errSilent
	}
	secret, err := c.Store.Credential(ctx, workspace, providerID)
	c.leave(ctx, err)
	return secret, err
}
