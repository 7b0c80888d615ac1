// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir/internal/admin"
)

// relay stands between a program and the database, and cuts each connection on
// which a certain statement is on its way.
type relay struct {
	t      *testing.T
	listen net.Listener
	server string
	cut    atomic.Pointer[cut]
	cuts   atomic.Int64
	work   sync.WaitGroup

	mu   sync.Mutex // guards what follows
	open map[net.Conn]bool
}

// cut is where a connection is cut: before the statement has reached the database,
// or after.
type cut struct {
	marker []byte
	after  bool
}

// newRelay returns a relay and the address of the database through it.
func newRelay(t *testing.T, store string) (r *relay, address string) {
	t.Helper()
	u, err := url.Parse(store)
	if err != nil {
		t.Fatal(err)
	}
	r = &relay{t: t, server: u.Host, open: map[net.Conn]bool{}}
	if r.listen, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	u.Host = r.listen.Addr().String()
	r.work.Go(r.accept)
	t.Cleanup(func() {
		_ = r.listen.Close()
		r.mu.Lock()
		for c := range r.open {
			_ = c.Close()
		}
		r.mu.Unlock()
		r.work.Wait()
	})
	return r, u.String()
}

func (r *relay) accept() {
	for {
		client, err := r.listen.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", r.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		r.mu.Lock()
		r.open[client], r.open[server] = true, true
		r.mu.Unlock()
		r.work.Go(func() { r.pass(client, server, true) })
		r.work.Go(func() { r.pass(server, client, false) })
	}
}

func (r *relay) pass(from, to net.Conn, watched bool) {
	defer func() {
		_ = from.Close()
		_ = to.Close()
		r.mu.Lock()
		delete(r.open, from)
		r.mu.Unlock()
	}()
	buffer := make([]byte, 1<<20)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		c := r.cut.Load()
		hit := watched && c != nil && bytes.Contains(buffer[:n], c.marker)
		if hit {
			r.cuts.Add(1)
		}
		if hit && !c.after {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil || hit {
			return
		}
	}
}

// TestAConnectionThatIsLostAtAnyStepIs503: BR-157, RES-8. The look-up of a key, the
// read of it and of its workspace, of its user's and budget's counters, the write of
// the reservation: nothing reaches the provider, and it recovers by itself.
func TestAConnectionThatIsLostAtAnyStepIs503(t *testing.T) {
	const budgets = `
budgets:
  - {name: org, scope: org, metric: spend, limit: "1", period: day, enforcement: hard}
  - {name: user, scope: user, metric: spend, limit: "1", period: day, enforcement: hard}
keys:
  - {name: k, secret: ` + limitKey + `, attribute_users: header, caps: {day: "1"}}
`
	w := newSharedWorld(t, replicaModel+budgets)
	r, address := newRelay(t, w.store+"&pooling=transaction") // each statement's text is on the wire
	other := w.another()
	other.store, other.config = address, filepath.Join(other.state, "weir.yaml")
	other.write(replicaModel + budgets)
	other.start()
	other.must(other.chat(limitKey, "m"), 200, "")
	for _, step := range []struct {
		name, marker string
		after, fresh bool // fresh: with a key that this replica has never seen
	}{
		{"the look-up of the key", "FROM key_secrets", false, true},
		{"the read of the key", "FROM objects WHERE workspace = $1 AND kind = $2 AND id", false, true},
		{"the read of what has changed", "WHERE workspace IN ($1, '')", false, true},
		{"the read of counters", "counters", false, false},
		{"the read of counters, answer lost", "counters", true, false},
		{"the write of the reservation", "INSERT INTO reservations", false, false},
		{"the write of the reservation, answer lost", "INSERT INTO reservations", true, false},
	} {
		secret := limitKey
		if step.fresh {
			made, err := w.admin.KeyCreate(t.Context(), admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some(step.name)}})
			if err != nil {
				t.Fatal(err)
			}
			secret = made.Secret
		}
		reached, cuts := w.provider.Bill().Requests, r.cuts.Load()
		r.cut.Store(&cut{[]byte(step.marker), step.after})
		headers := []string{}
		if !step.fresh {
			headers = []string{"X-Weir-User", "ada"}
		}
		passed := int64(0)
		for range 2 {
			a := other.chat(secret, "m", headers...)
			switch {
			case a.status == 200 && step.after: // it was written, and found when it was asked for
				passed++
			case a.status != 503 || a.code() != "service_unavailable":
				t.Errorf("%s: got %v (%v)", step.name, a, a.err)
			}
		}
		if n := w.provider.Bill().Requests - reached; n != passed {
			t.Errorf("%s: %d requests reached the provider, %d were answered", step.name, n, passed)
		}
		if r.cuts.Load() == cuts {
			t.Errorf("%s: no connection was cut", step.name)
		}
		r.cut.Store(nil)
		w.eventually(step.name+" to be through", func() bool { return other.chat(secret, "m", headers...).status == 200 })
	}
	w.eventually("everything to be given back", func() bool {
		for _, l := range w.limits(limitKey, "X-Weir-User", "ada") {
			if l.Held != "0" {
				return false
			}
		}
		return true
	})
	w.settled("1", "10")
}
