// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/directory"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
)

func TestASecretLeadsToItsKeyAndWorkspace(t *testing.T) { // KEY-1, KEY-2
	s := newShop(t)
	secret := s.key("ws_a", "k1", func(k *tenant.Key) { k.Team, k.Limits.RPM = "red", at(int64(60)) })
	k, snapshot := s.must(secret)
	if k.ID != "k1" || k.Name != "k1" || k.Team != "red" || *k.Limits.RPM != 60 || snapshot.Workspace.Name != "acme" || snapshot.Generation == 0 {
		t.Errorf("got %+v of %+v", k, snapshot.Workspace)
	}
	before := s.store.secrets.Load() + s.store.objects.Load() + s.store.since.Load()
	for range 100 {
		s.must(secret)
	}
	if after := s.store.secrets.Load() + s.store.objects.Load() + s.store.since.Load(); after != before {
		t.Errorf("a key that is known was read %d times", after-before)
	}
}

func TestAnInactiveKeyIsFoundForTheDecisionToRefuse(t *testing.T) { // KEY-2
	s := newShop(t)
	secret := s.key("ws_a", "k1", func(k *tenant.Key) { k.Disabled = true })
	if k, _ := s.must(secret); !k.Disabled {
		t.Errorf("got %+v", k)
	}
}

func TestAForgedSecretIsRefusedWithoutALookUp(t *testing.T) { // KEY-2
	s := newShop(t)
	secret := s.key("ws_a", "k1", nil)
	s.must(secret)
	before := s.store.secrets.Load()
	for i := range len(secret) - len(tenant.SecretMark) {
		at := i + len(tenant.SecretMark)
		for _, c := range []byte("0aZ") {
			if secret[at] == c {
				continue
			}
			forged := secret[:at] + string(c) + secret[at+1:]
			if _, _, err := s.identify(forged); !errors.Is(err, directory.ErrUnknownKey) {
				t.Fatalf("%q: %v", forged, err)
			}
		}
	}
	if n := s.store.secrets.Load() - before; n != 0 {
		t.Errorf("looked up %d times", n)
	}
}

func TestUnknownSecretsAreLookedUpAtMostAHundredTimesASecond(t *testing.T) { // KEY-2
	s := newShop(t)
	refused := func(from, count int) (unknown, flooded int) {
		for i := range count {
			_, _, err := s.identify(fmt.Sprintf("sk-made-up-%010d", from+i))
			switch {
			case errors.Is(err, directory.ErrUnknownKey):
				unknown++
			case errors.Is(err, directory.ErrTooManyLookUps):
				flooded++
			default:
				t.Fatal(err)
			}
		}
		return unknown, flooded
	}
	s.clock.Set(start + second*9/10) // a second's border lies within the interval
	if unknown, flooded := refused(0, 60); unknown != 60 || flooded != 0 {
		t.Errorf("%d unknown, %d flooded", unknown, flooded)
	}
	s.clock.Advance(200 * time.Millisecond)
	if unknown, flooded := refused(60, 60); unknown != 40 || flooded != 20 {
		t.Errorf("%d unknown, %d flooded", unknown, flooded)
	}
	s.clock.Advance(799 * time.Millisecond)
	if unknown, _ := refused(1000, 60); unknown != 0 {
		t.Errorf("%d unknown within the second", unknown)
	}
	s.clock.Advance(time.Millisecond)
	if unknown, flooded := refused(1000, 70); unknown != 60 || flooded != 10 {
		t.Errorf("%d unknown, %d flooded", unknown, flooded)
	}
	if n := s.store.secrets.Load(); n != 160 {
		t.Errorf("looked up %d times", n)
	}
	// A clock that was set back is not waited for.
	s.clock.Set(start - 3600*second)
	if unknown, _ := refused(5000, 100); unknown != 100 {
		t.Errorf("%d unknown after the clock was set back", unknown)
	}
}

func TestAnUnknownSecretIsRememberedForFiveSeconds(t *testing.T) { // KEY-2, BR-216
	for _, c := range []struct{ name, secret string }{
		{"somebody's own", "sk-made-up-0000000001"},
		{"one of ours that was deleted", ""},
		{"an empty one", "\x00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t)
			if c.secret == "" {
				c.secret, _ = s.secret()
			}
			for _, step := range []struct {
				wait    time.Duration
				lookUps int64
			}{{0, 1}, {4999 * time.Millisecond, 1}, {time.Millisecond, 2}, {5 * time.Second, 3}, {-time.Hour, 4}} {
				s.clock.Advance(step.wait)
				for range 200 {
					if _, _, err := s.identify(c.secret); !errors.Is(err, directory.ErrUnknownKey) {
						t.Fatal(err)
					}
				}
				if n := s.store.secrets.Load(); n != step.lookUps {
					t.Errorf("after %s: looked up %d times, want %d", step.wait, n, step.lookUps)
				}
			}
		})
	}
}

func TestManyAtOnceWithOneUnseenSecretShareALookUp(t *testing.T) { // KEY-2: a start is no flood
	s := newShop(t)
	const secret = "brought-by-somebody-0001"
	s.editKey("ws_a", "k1", nil, store.Edit{AddSecret: &store.KeySecret{Hash: tenant.HashSecret(secret)}})
	var waiting sync.WaitGroup
	var failed atomic.Int64
	for range 500 {
		waiting.Go(func() {
			if _, _, err := s.identify(secret); err != nil {
				failed.Add(1)
			}
		})
	}
	waiting.Wait()
	if failed.Load() != 0 {
		t.Errorf("%d of 500 were refused", failed.Load())
	}
	if n := s.store.since.Load(); n != 1 {
		t.Errorf("the workspace was loaded %d times", n)
	}
}

func TestManyAtOnceWithOneUnknownSecretAreAllToldSo(t *testing.T) { // BR-216
	s := newShop(t)
	var waiting sync.WaitGroup
	for range 500 {
		waiting.Go(func() {
			if _, _, err := s.identify("sk-made-up-0000000001"); !errors.Is(err, directory.ErrUnknownKey) {
				t.Error(err)
			}
		})
	}
	waiting.Wait()
	if n := s.store.secrets.Load(); n != 1 {
		t.Errorf("looked up %d times", n)
	}
}

func TestAKnownKeyIsReadAgainDuringAFlood(t *testing.T) { // KEY-2
	s := newShop(t)
	const secret = "brought-by-somebody-0001"
	s.editKey("ws_a", "k1", nil, store.Edit{AddSecret: &store.KeySecret{Hash: tenant.HashSecret(secret)}})
	s.must(secret)
	s.editKey("ws_a", "k1", func(k *tenant.Key) { k.Team = "blue" }, store.Edit{})
	s.refresh()
	for i := range 200 {
		_, _, _ = s.identify(fmt.Sprintf("sk-made-up-%010d", i))
	}
	if k, _ := s.must(secret); k.Team != "blue" {
		t.Errorf("got %+v", k)
	}
}

func TestANewKeyWorksAtOnceThoughItsSecretWasTriedBefore(t *testing.T) { // BR-216
	s := newShop(t)
	s.must(s.key("ws_a", "k0", nil))
	secret := "brought-by-somebody-0001"
	if _, _, err := s.identify(secret); !errors.Is(err, directory.ErrUnknownKey) {
		t.Fatal(err)
	}
	s.editKey("ws_a", "k1", nil, store.Edit{AddSecret: &store.KeySecret{Hash: tenant.HashSecret(secret)}})
	s.refresh()
	s.must(secret)
}

func TestRotationEndsTheOldSecretAfterItsGrace(t *testing.T) { // KEY-3, BR-221
	for _, c := range []struct {
		name  string
		grace int64
		works []time.Duration
		ended []time.Duration
	}{
		{"at once", 0, nil, []time.Duration{0, time.Second}},
		{"after a minute", 60 * second, []time.Duration{0, time.Second, 59 * time.Second}, []time.Duration{time.Minute, 61 * time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t)
			old := s.key("ws_a", "k1", nil)
			s.must(old)
			text, hash := s.secret()
			s.editKey("ws_a", "k1", nil, store.Edit{ExpireSecrets: at(start + c.grace), AddSecret: &store.KeySecret{Hash: hash}})
			s.refresh()
			for _, after := range c.works {
				s.clock.Set(start + after.Microseconds())
				s.must(old)
			}
			for _, after := range c.ended {
				s.clock.Set(start + after.Microseconds())
				if _, _, err := s.identify(old); !errors.Is(err, directory.ErrUnknownKey) {
					t.Errorf("after %s: %v", after, err)
				}
			}
			if k, _ := s.must(text); k.ID != "k1" {
				t.Errorf("the new secret leads to %s", k.ID)
			}
		})
	}
}

func TestADeletedKeyIsUnknownAndCostsTheStoreNothing(t *testing.T) { // KEY-2
	s := newShop(t)
	secret := s.key("ws_a", "k1", nil)
	s.must(secret)
	s.retire("ws_a", store.KindKey, "k1", "k1")
	s.refresh()
	before := s.store.objects.Load()
	for range 50 {
		if _, _, err := s.identify(secret); !errors.Is(err, directory.ErrUnknownKey) {
			t.Fatal(err)
		}
	}
	if n := s.store.objects.Load() - before; n != 1 {
		t.Errorf("read %d times", n)
	}
	s.editKey("ws_a", "k1", nil, store.Edit{}) // and it comes back as itself (STO-2)
	s.refresh()
	s.must(secret)
}

func TestAWorkspaceThatIsNoMoreLetsNothingThrough(t *testing.T) { // KEY-2: a row that is not there allows nothing
	s := newShop(t)
	secret := s.key("ws_a", "k1", nil)
	s.must(secret)
	s.retire("ws_a", directory.KindWorkspace, "ws_a", "acme")
	if _, err := s.directory.Refresh(t.Context(), "ws_a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("refresh: %v", err)
	}
	if _, _, err := s.identify(secret); !errors.Is(err, directory.ErrUnknownKey) {
		t.Errorf("got %v", err)
	}
	if err := s.directory.RefreshAll(t.Context()); err != nil {
		t.Errorf("refresh all: %v", err)
	}
	orphan := s.key("ws_never", "k2", nil)
	if _, _, err := s.identify(orphan); !errors.Is(err, directory.ErrUnknownKey) {
		t.Errorf("a key of no workspace: %v", err)
	}
	s.workspace(tenant.NewWorkspace("ws_a", "acme"))
	s.refresh()
	s.must(secret)
}

func TestWhereNobodyCanTellTheAnswerIs503(t *testing.T) { // RES-8, BR-157
	s := newShop(t)
	secret := s.key("ws_a", "k1", nil)
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.identify(secret)
	if err == nil || errors.Is(err, directory.ErrUnknownKey) {
		t.Fatalf("got %v", err)
	}
	for _, c := range []struct {
		err   error
		code  fault.Code
		retry int
	}{
		{err, fault.ServiceUnavailable, 2},
		{directory.ErrTooManyLookUps, fault.ServiceUnavailable, 2},
		{fmt.Errorf("wrapped: %w", directory.ErrUnknownKey), fault.InvalidAPIKey, 0},
		{context.Canceled, fault.ServiceUnavailable, 2},
	} {
		if f := s.directory.Refuse(c.err); f.Code != c.code || f.RetryAfterSeconds != c.retry {
			t.Errorf("%v: got %+v", c.err, f)
		}
	}
}

func TestAKeyThatDoesNotDecodeIsRefusedAlone(t *testing.T) {
	s := newShop(t)
	good, bad := s.key("ws_a", "k1", nil), s.key("ws_a", "k2", nil)
	s.put("ws_a", store.KindKey, "k2", "k2", []byte(`{"unheard_of": 1}`), nil)
	s.must(good)
	if _, _, err := s.identify(bad); err == nil || errors.Is(err, directory.ErrUnknownKey) {
		t.Errorf("got %v", err)
	}
}

func FuzzASecretNeverPanicsAndOnlyOursAreFound(f *testing.F) { // KEY-2, ERR-5
	s := newShop(f)
	secret := s.key("ws_a", "k1", nil)
	f.Add(secret)
	f.Add(strings.ToUpper(secret))
	f.Add("")
	f.Add("weir_" + strings.Repeat("0", 36))
	f.Fuzz(func(t *testing.T, text string) {
		s.clock.Advance(time.Second)
		_, _, err := s.identify(text)
		if (err == nil) != (text == secret) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
