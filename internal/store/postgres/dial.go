// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/internal/clock"
)

// farewell bounds what the end of a connection may take that was given up: its
// statement is cancelled, and what is on its way is awaited. Meanwhile it keeps its
// place in the pool. The driver's own bound is 15 s, in which a network that
// swallows everything would take every place of a pool, and keep them after it is
// back.
const farewell = time.Second

func soon() time.Time { return time.UnixMicro(clock.System().Now()).Add(farewell) }

// hasten gives a new connection its bounds.
func hasten(_ context.Context, c *pgx.ConnConfig) error {
	dial, connected := c.DialFunc, &atomic.Bool{}
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if !connected.Load() {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return hasty{conn}, nil
		}
		// It asks the server to cancel what the connection was given up in.
		ctx, cancel := context.WithTimeout(ctx, farewell)
		defer cancel()
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return conn, conn.SetDeadline(soon())
	}
	c.AfterConnect = func(context.Context, *pgconn.PgConn) error {
		connected.Store(true)
		return nil
	}
	return nil
}

// hasty waits for nothing longer than for a farewell, once it is told to wait for
// something until an instant at all.
type hasty struct{ net.Conn }

// SetDeadline is net.Conn's.
func (c hasty) SetDeadline(at time.Time) error {
	if most := soon(); at.After(most) {
		at = most
	}
	return c.Conn.SetDeadline(at)
}
