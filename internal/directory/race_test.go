// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/directory"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
)

// pause stops the next read of one kind after it has its answer, until resume.
func (s *shop) pause(what string) (stopped <-chan struct{}, resume func()) {
	reached, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.store.hook(func(read string) {
		if read != what {
			return
		}
		once.Do(func() {
			s.store.hook(nil)
			close(reached)
			<-proceed
		})
	})
	return reached, func() { close(proceed) }
}

type identified struct {
	key      *tenant.Key
	snapshot *admit.Snapshot
	err      error
}

func (s *shop) identifyLater(secret string) <-chan identified {
	answer := make(chan identified, 1)
	go func() {
		k, snapshot, err := s.identify(secret)
		answer <- identified{k, snapshot, err}
	}()
	return answer
}

// A key is read, its reader is held up, the key changes, the change is refreshed,
// and the reader goes on: the old key must neither stay nor be given out with
// the new generation, or it would be admitted with its old limits.
func TestALoadThatAChangeOvertakesBringsNothingOldBack(t *testing.T) { // ADM-4
	for _, c := range []struct {
		name   string
		what   string // the read that is held up
		warm   bool   // the workspace is in memory already
		change func(s *shop)
		gone   bool // the secret is worth nothing afterwards
	}{
		{"a key's limits", "object", true, func(s *shop) {
			s.editKey("ws_a", "k1", func(k *tenant.Key) { k.Team = "blue" }, store.Edit{})
		}, false},
		{"a key's limits before its workspace was loaded", "object", false, func(s *shop) {
			s.editKey("ws_a", "k1", func(k *tenant.Key) { k.Team = "blue" }, store.Edit{})
		}, false},
		{"a key that is deleted", "object", true, func(s *shop) { s.retire("ws_a", store.KindKey, "k1", "k1") }, true},
		{"a secret that is rotated away", "secret", true, func(s *shop) {
			s.editKey("ws_a", "k1", nil, store.Edit{ExpireSecrets: at(start)})
		}, true},
		{"a secret before its workspace was loaded", "secret", false, func(s *shop) {
			s.editKey("ws_a", "k1", nil, store.Edit{ExpireSecrets: at(start)})
		}, true},
		{"a secret while its workspace is loaded", "since", false, func(s *shop) {
			s.editKey("ws_a", "k1", nil, store.Edit{ExpireSecrets: at(start)})
		}, true},
		{"a secret just before its workspace is loaded", "before since", false, func(s *shop) {
			s.editKey("ws_a", "k1", nil, store.Edit{ExpireSecrets: at(start)})
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t)
			secret := s.key("ws_a", "k1", func(k *tenant.Key) { k.Team = "red" })
			if c.warm {
				s.refresh()
			}
			stopped, resume := s.pause(c.what)
			answer := s.identifyLater(secret)
			<-stopped
			c.change(s)
			var changed *admit.Snapshot
			if strings.HasSuffix(c.what, "since") { // the refresh is the one that is held up
				resume()
			} else {
				changed = s.refresh()
				resume()
			}
			got := <-answer
			if changed == nil {
				changed = s.refresh()
			}
			if got.err == nil && got.snapshot.Generation >= changed.Generation && (c.gone || got.key.Team != "blue") {
				t.Errorf("the old key was given out with the new generation: %+v", got.key)
			}
			k, _, err := s.identify(secret)
			switch {
			case c.gone && !errors.Is(err, directory.ErrUnknownKey):
				t.Errorf("the old state stayed: %v", err)
			case !c.gone && (err != nil || k.Team != "blue"):
				t.Errorf("the old key stayed: %+v, %v", k, err)
			}
		})
	}
}

func TestASecretThatIsMadeWhileItIsLookedUpIsNotRememberedAsUnknown(t *testing.T) { // BR-216
	s := newShop(t)
	s.refresh()
	const secret = "brought-by-somebody-0001"
	stopped, resume := s.pause("secret")
	answer := s.identifyLater(secret)
	<-stopped
	s.editKey("ws_a", "k1", nil, store.Edit{AddSecret: &store.KeySecret{Hash: tenant.HashSecret(secret)}})
	s.refresh()
	resume()
	if got := <-answer; !errors.Is(got.err, directory.ErrUnknownKey) {
		t.Errorf("got %v", got.err)
	}
	s.must(secret)
}

// Whoever comes after a change must not be handed a load that began before it.
func TestALoadIsSharedOnlyWithThoseWhoCouldHaveBegunIt(t *testing.T) { // ADM-4
	s := newShop(t)
	secret := s.key("ws_a", "k1", func(k *tenant.Key) { k.Team = "red" })
	s.refresh()
	stopped, resume := s.pause("object")
	first := s.identifyLater(secret)
	<-stopped
	s.editKey("ws_a", "k1", func(k *tenant.Key) { k.Team = "blue" }, store.Edit{})
	s.refresh()
	if k, _ := s.must(secret); k.Team != "blue" {
		t.Errorf("got the load that ran: %+v", k)
	}
	resume()
	<-first
}

// The invariant of the caches, under load: a key is never older than the
// snapshot that it is given out with.
func TestAKeyIsNeverOlderThanItsSnapshot(t *testing.T) { // ADM-4
	const changes, readers, keys = 300, 4, 3
	s := newShop(t)
	secrets := make([]string, keys)
	ids := []string{"k0", "k1", "k2"}
	for i, id := range ids {
		secrets[i] = s.key("ws_a", id, func(k *tenant.Key) { k.MaxOutputTokens = at(int64(1)) })
	}
	// made[k] is the generation that the key's n-th version is in force from.
	var mu sync.Mutex
	made := make([][]int64, keys)
	newest := func(key int, generation int64) (version int64) {
		mu.Lock()
		defer mu.Unlock()
		version = 1
		for i, g := range made[key] {
			if g <= generation {
				version = int64(i) + 2
			}
		}
		return version
	}
	var writing atomic.Bool
	writing.Store(true)
	var group sync.WaitGroup
	for r := range readers {
		group.Go(func() {
			for n := r; writing.Load(); n++ {
				i := n % keys
				k, snapshot, err := s.identify(secrets[i])
				if err != nil {
					t.Error(err)
					return
				}
				if least := newest(i, snapshot.Generation); *k.MaxOutputTokens < least {
					t.Errorf("version %d with generation %d, which has %d", *k.MaxOutputTokens, snapshot.Generation, least)
					return
				}
				if n%7 == 0 {
					_, _ = s.directory.Refresh(context.Background(), "ws_a")
				}
			}
		})
	}
	for n := range changes {
		i := n % keys
		mu.Lock() // the generation of a change is known before anybody sees it
		version := int64(len(made[i])) + 2
		s.editKey("ws_a", ids[i], func(k *tenant.Key) { k.MaxOutputTokens = &version }, store.Edit{})
		_, generation, err := s.store.Book.Since(t.Context(), "ws_a", 1<<40)
		made[i] = append(made[i], generation)
		mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 {
			s.refresh()
		}
	}
	writing.Store(false)
	group.Wait()
	s.refresh()
	for i := range keys {
		if k, _ := s.must(secrets[i]); *k.MaxOutputTokens != int64(len(made[i]))+1 {
			t.Errorf("key %d ended at version %d", i, *k.MaxOutputTokens)
		}
	}
}

func TestCallersThatComeWhileARefreshRunsShareTheNextOne(t *testing.T) {
	s := newShop(t)
	s.refresh()
	before := s.store.since.Load()
	s.workspace(tenant.NewWorkspace("ws_a", "renamed"))
	stopped, resume := s.pause("since")
	var group sync.WaitGroup
	group.Go(func() { _, _ = s.directory.Refresh(context.Background(), "ws_a") })
	<-stopped
	s.workspace(tenant.NewWorkspace("ws_a", "renamed again"))
	var began sync.WaitGroup
	began.Add(50)
	for range 50 {
		group.Go(func() {
			began.Done()
			snapshot, err := s.directory.Refresh(context.Background(), "ws_a")
			if err != nil || snapshot.Workspace.Name != "renamed again" {
				t.Errorf("got %+v, %v", snapshot, err)
			}
		})
	}
	began.Wait()
	resume()
	group.Wait()
	if n := s.store.since.Load() - before; n > 50 {
		t.Errorf("51 callers read %d times", n)
	}
}

func TestACallerThatGoesAwayTakesNobodyWithIt(t *testing.T) { // RES-8
	s := newShop(t)
	secret := s.key("ws_a", "k1", nil)
	s.refresh()
	stopped, resume := s.pause("secret")
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 2)
	identify := func(ctx context.Context) {
		_, _, err := s.directory.Identify(ctx, secret)
		answer <- err
	}
	go identify(ctx)
	<-stopped
	waiting, giveUp := context.WithTimeout(t.Context(), time.Millisecond)
	defer giveUp()
	identify(waiting) // waits for the load that runs, and no longer than it wants to
	if err := <-answer; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	cancel()
	resume()
	if err := <-answer; err != nil {
		t.Errorf("a load that had its answer was given up: %v", err)
	}
	s.must(secret)
}
