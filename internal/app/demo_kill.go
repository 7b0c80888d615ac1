// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/money"
)

const (
	// demoVictim is the gateway that is killed: neither the first, which answers
	// questions, nor one that a demonstration may not have.
	demoVictim = 1
	// demoKillOpen is how many of its requests run then, at the least.
	demoKillOpen = 2
	// demoLook is how often the gateways are looked at meanwhile.
	demoLook = 20 * time.Millisecond
)

// kill kills a gateway in the middle of the volley, while requests of its run.
func (d *demo) kill(ctx context.Context) error {
	if d.fleet == nil {
		return nil
	}
	reached, err := d.poll(ctx, func() (bool, error) {
		d.mu.Lock()
		sent := d.sent
		d.mu.Unlock()
		if sent < d.Requests*2/5 {
			return false, nil
		}
		open, err := d.open(ctx, demoVictim)
		return open >= demoKillOpen, err
	})
	if err != nil || !reached {
		return err
	}
	d.mu.Lock()
	g := d.gateways[demoVictim]
	g.down, d.killed = true, g
	d.mu.Unlock()
	pid := d.fleet.pid(demoVictim)
	if err := d.fleet.kill(demoVictim); err != nil {
		return err
	}
	open, err := d.open(context.WithoutCancel(ctx), demoVictim)
	if err != nil {
		return err
	}
	d.view.event(fmt.Sprintf("%s is killed: kill -9 %d, with %d requests running", g.name, pid, open))
	return nil
}

// poll asks again and again; reached is false when ctx ended before.
func (d *demo) poll(ctx context.Context, ask func() (bool, error)) (reached bool, err error) {
	again := time.NewTicker(demoLook)
	defer again.Stop()
	for {
		if reached, err = ask(); reached || err != nil {
			if ctx.Err() != nil {
				return false, nil
			}
			return reached, err
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-again.C:
		}
	}
}

// open is how many requests of a gateway have not ended, as the store knows it.
func (d *demo) open(ctx context.Context, gateway int) (int64, error) {
	list, err := d.admin.ReplicaList(ctx, admin.ReplicaListRequest{})
	if err != nil {
		return 0, fmt.Errorf("list the gateways: %w", err)
	}
	suffix, open := ":"+strconv.Itoa(d.fleet.pid(gateway)), int64(0)
	for i := range list.Replicas {
		if strings.HasSuffix(list.Replicas[i].Name, suffix) {
			open = list.Replicas[i].Open
		}
	}
	return open, nil
}

// quiet waits until what the living gateways answered is settled (RES-11).
func (d *demo) quiet(ctx context.Context) error {
	if d.fleet == nil {
		return nil
	}
	_, err := d.poll(ctx, func() (bool, error) {
		for i, g := range d.gateways {
			if g.down {
				continue
			}
			if open, err := d.open(ctx, i); open > 0 || err != nil {
				return false, err
			}
		}
		return true, nil
	})
	return err
}

// recover shows what the killed gateway left, and starts it again.
func (d *demo) recover(ctx context.Context) error {
	if d.killed == nil {
		return nil
	}
	open, err := d.open(ctx, demoVictim)
	if err != nil {
		return err
	}
	view, err := d.keyState(ctx, demoCapped)
	if err != nil {
		return err
	}
	d.view.left(d.killed, open, held(view))
	phase := time.Now()
	if _, err := d.fleet.launch(ctx, demoVictim, strings.TrimPrefix(d.killed.base, "http://")); err != nil {
		return fmt.Errorf("start %s again: %w", d.killed.name, err)
	}
	d.mu.Lock()
	d.killed.down = false
	d.mu.Unlock()
	swept, nanos, err := d.swept(ctx)
	if err != nil {
		return err
	}
	d.view.recovered(d.killed, swept, nanos, time.Since(phase))
	return nil
}

// swept counts what was charged at its worst case.
func (d *demo) swept(ctx context.Context) (count int, nanos money.Nanos, err error) {
	err = d.eachRequest(ctx, "swept", func(_ *admin.RequestSummary, spend money.Nanos) {
		count++
		nanos += spend
	})
	return count, nanos, err
}

// eachRequest walks through the call log.
func (d *demo) eachRequest(ctx context.Context, outcome string, do func(*admin.RequestSummary, money.Nanos)) error {
	for cursor := ""; ; {
		page, err := d.admin.RequestList(ctx, admin.RequestListRequest{Outcome: outcome, Cursor: cursor, Limit: demoMaxRequests})
		if err != nil {
			return fmt.Errorf("read the call log: %w", err)
		}
		for i := range page.Requests {
			spend, err := money.ParseSignedUSD(page.Requests[i].Spend)
			if err != nil {
				return fmt.Errorf("read the call log: %w", err)
			}
			do(&page.Requests[i], spend)
		}
		if cursor = page.NextCursor; cursor == "" {
			return nil
		}
	}
}
