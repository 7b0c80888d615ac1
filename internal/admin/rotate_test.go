// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/directory"
	"github.com/weirhq/weir/internal/fault"
)

// BR-221: the old secret works until the grace has passed, the new one at once,
// and both are the same key.
func TestARotatedSecretWorksForItsGrace(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		old := w.key("ci", nil)
		rotated, err := w.KeyRotate(ctx, system, admin.KeyRotateRequest{Key: "ci", Body: admin.RotateFields{GraceSeconds: 60}})
		if err != nil || rotated.ID != old.ID || rotated.Secret == old.Secret || rotated.Prefix == "" {
			t.Fatalf("rotated %+v, %v", rotated, err)
		}
		for _, c := range []struct {
			after  time.Duration
			secret string
			known  bool
		}{
			{0, rotated.Secret, true},
			{time.Second, old.Secret, true},
			{58 * time.Second, old.Secret, true},
			{2 * time.Second, old.Secret, false},
			{0, rotated.Secret, true},
		} {
			w.clock.Advance(c.after)
			k, _, err := w.directory.Identify(ctx, c.secret)
			if known := err == nil; known != c.known || known && k.ID != old.ID {
				t.Errorf("at +%v: known %t, want %t (%v)", time.Duration(w.clock.Now()-start)*time.Microsecond, known, c.known, err)
			}
		}
		again, err := w.KeyRotate(ctx, system, admin.KeyRotateRequest{Key: "ci"})
		if err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(time.Microsecond)
		if _, _, err := w.directory.Identify(ctx, rotated.Secret); !errors.Is(err, directory.ErrUnknownKey) {
			t.Errorf("without grace the old secret ends at once: %v", err)
		}
		if _, _, err := w.directory.Identify(ctx, again.Secret); err != nil {
			t.Error(err)
		}
		_, err = w.KeyRotate(ctx, system, admin.KeyRotateRequest{Key: "ci", Body: admin.RotateFields{GraceSeconds: -1}})
		refused(t, err, fault.InvalidRequest)
	})
}

// BR-222: another replica, whose caches know the old secret, takes the new one at
// once, and drops the old one when it has followed the store.
func TestAnotherReplicaTakesARotatedSecret(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		old := w.key("ci", nil)
		other, err := directory.New(ctx, w.book, w.clock, w.options.Prices)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := other.Identify(ctx, old.Secret); err != nil {
			t.Fatal(err)
		}
		rotated, err := w.KeyRotate(ctx, system, admin.KeyRotateRequest{Key: "ci"})
		if err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(time.Microsecond)
		if _, _, err := other.Identify(ctx, rotated.Secret); err != nil {
			t.Errorf("the new secret: %v", err)
		}
		if err := other.RefreshAll(ctx); err != nil { // as every replica does within 5 s
			t.Fatal(err)
		}
		if _, _, err := other.Identify(ctx, old.Secret); !errors.Is(err, directory.ErrUnknownKey) {
			t.Errorf("the old secret: %v", err)
		}
	})
}

// BR-223 and ADM-5: a replay finds what the first request made, changes nothing
// and is audited once.
func TestARepeatedRequestIsDoneOnce(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		create := admin.KeyCreateRequest{IdempotencyKey: "once", Body: admin.KeyFields{Name: admin.Some("ci")}}
		first, err := w.KeyCreate(ctx, system, create)
		if err != nil {
			t.Fatal(err)
		}
		second, err := w.KeyCreate(ctx, system, create)
		if err != nil || second.ID != first.ID || second.Secret != "" || !second.Replayed {
			t.Fatalf("second %+v, %v", second, err)
		}
		create.Body.Team = admin.Some("other")
		_, err = w.KeyCreate(ctx, system, create)
		refused(t, err, fault.IdempotencyKeyReused)

		rotate := admin.KeyRotateRequest{Key: "ci", IdempotencyKey: "turn"}
		turned, err := w.KeyRotate(ctx, system, rotate)
		if err != nil {
			t.Fatal(err)
		}
		again, err := w.KeyRotate(ctx, system, rotate)
		if err != nil || again.ID != first.ID || again.Version != turned.Version || again.Secret != "" || !again.Replayed {
			t.Fatalf("again %+v, %v", again, err)
		}
		if _, _, err := w.directory.Identify(ctx, turned.Secret); err != nil {
			t.Errorf("the first rotation's secret still works: %v", err)
		}
		rotate.IdempotencyKey = "once"
		_, err = w.KeyRotate(ctx, system, rotate)
		refused(t, err, fault.IdempotencyKeyReused)
		var actions []string
		for _, e := range w.audits() {
			if e.Kind == admin.KindKey {
				actions = append(actions, e.Action)
			}
		}
		if !slices.Equal(actions, []string{"keys.rotate", "keys.create"}) {
			t.Errorf("audited %v", actions)
		}
	})
}
