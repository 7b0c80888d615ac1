// SPDX-License-Identifier: Apache-2.0

package directory_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/directory"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/tenant"
)

// among makes the shop one of several processes, and counts what it asks for that.
func (s *shop) among() *atomic.Int64 {
	var asked atomic.Int64
	s.directory.Among(func(ctx context.Context, _ int64) (int64, error) {
		asked.Add(1)
		_, now, err := s.store.Since(ctx, "ws_a", math.MaxInt64-1)
		return now, err
	})
	return &asked
}

const triedSecret = "brought-by-somebody-0001"

func (s *shop) makeTried() {
	s.editKey("ws_a", "k1", nil, store.Edit{AddSecret: &store.KeySecret{Hash: tenant.HashSecret(triedSecret)}})
}

// TestAKeyThatAnotherProcessMakesWorksAtOnceThoughItsSecretWasTriedHere: ADM-4,
// KEY-2, BR-216. Nothing has told this process of it.
func TestAKeyThatAnotherProcessMakesWorksAtOnceThoughItsSecretWasTriedHere(t *testing.T) {
	for _, warm := range []bool{true, false} {
		t.Run(fmt.Sprintf("its workspace is in memory: %t", warm), func(t *testing.T) {
			s := newShop(t)
			s.among()
			if warm {
				s.refresh()
			}
			for range 3 {
				if _, _, err := s.identify(triedSecret); !errors.Is(err, directory.ErrUnknownKey) {
					t.Fatal(err)
				}
			}
			s.makeTried()
			if k, _ := s.must(triedSecret); k.ID != "k1" {
				t.Errorf("got %+v", k)
			}
		})
	}
}

// TestALookUpThatBeganBeforeAKeyWasMadeIsNobodysWhoCameAfter: ADM-4.
func TestALookUpThatBeganBeforeAKeyWasMadeIsNobodysWhoCameAfter(t *testing.T) {
	s := newShop(t)
	s.among()
	s.refresh()
	stopped, resume := s.pause("secret")
	first := s.identifyLater(triedSecret)
	<-stopped
	s.makeTried() // by another process
	later := make([]<-chan identified, 50)
	for i := range later {
		later[i] = s.identifyLater(triedSecret)
	}
	resume()
	if got := <-first; !errors.Is(got.err, directory.ErrUnknownKey) {
		t.Errorf("the first: %v", got.err)
	}
	for _, one := range later {
		if got := <-one; got.err != nil {
			t.Errorf("one that came after: %v", got.err)
		}
	}
}

// TestSecretsThatAreKnownToBeUnknownShareAFewQuestions: KEY-2. However many try
// them: between two questions to the store lie 50 milliseconds.
func TestSecretsThatAreKnownToBeUnknownShareAFewQuestions(t *testing.T) {
	const secrets, tries = 20, 4000
	s := newShop(t)
	asked := s.among()
	secret := func(i int) string { return fmt.Sprintf("sk-made-up-%010d", i%secrets) }
	for i := range 2 * secrets {
		_, _, _ = s.identify(secret(i))
	}
	looked, questions, began := s.store.secrets.Load(), asked.Load(), time.Now()
	var group sync.WaitGroup
	for i := range tries {
		group.Go(func() {
			if _, _, err := s.identify(secret(i)); !errors.Is(err, directory.ErrUnknownKey) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	most := 2 + int64(time.Since(began)/(50*time.Millisecond))
	if n := asked.Load() - questions; n > most {
		t.Errorf("%d questions, want at most %d", n, most)
	}
	if n := s.store.secrets.Load() - looked; n != 0 {
		t.Errorf("looked up %d times", n)
	}
}

// TestARememberedSecretIs503WhileNobodyCanTell: RES-8, BR-157. It may be a key's by
// now.
func TestARememberedSecretIs503WhileNobodyCanTell(t *testing.T) {
	s := newShop(t)
	s.among()
	if _, _, err := s.identify(triedSecret); !errors.Is(err, directory.ErrUnknownKey) {
		t.Fatal(err)
	}
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.identify(triedSecret); err == nil || errors.Is(err, directory.ErrUnknownKey) {
		t.Errorf("got %v", err)
	}
}

// TestAFirstLoadForgetsWhatWasUnknown: BR-216, ADM-4. It does not say which keys
// there are.
func TestAFirstLoadForgetsWhatWasUnknown(t *testing.T) {
	s := newShop(t)
	if _, _, err := s.identify(triedSecret); !errors.Is(err, directory.ErrUnknownKey) {
		t.Fatal(err)
	}
	s.makeTried()
	s.refresh()
	s.must(triedSecret)
}
