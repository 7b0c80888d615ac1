// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/sqlite"
	"github.com/weirhq/weir/internal/store/storetest"
	"github.com/weirhq/weir/internal/window"
)

// The test binary runs again as a process that can be killed.
const (
	envChild = "WEIR_TEST_BOOK_CHILD"
	envPath  = "WEIR_TEST_BOOK_PATH"
	children = 8 // goroutines of the child
)

func TestMain(m *testing.M) {
	switch os.Getenv(envChild) {
	case "work":
		work(sqlite.Options{Path: os.Getenv(envPath)})
	case "hurry":
		work(sqlite.Options{Path: os.Getenv(envPath)}.Hurry())
	case "open":
		_, err := sqlite.Open(context.Background(), sqlite.Options{Path: os.Getenv(envPath)})
		say(errors.Is(err, store.ErrLocked), err)
	default:
		goleak.VerifyTestMain(m)
	}
}

// say writes one line in one piece: a kill cuts none in two.
func say(words ...any) { _, _ = fmt.Fprintln(os.Stdout, words...) }

func child(t *testing.T, mode, path string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), envChild+"="+mode, envPath+"="+path)
	c.Stderr = os.Stderr
	return c
}

// cycle is one request on eight counters, as gateways make them.
func cycle(id ledger.ID, workspace, key string, at int64) *ledger.Op {
	counter := func(limit, subject string) ledger.Counter {
		return ledger.Counter{Workspace: workspace, Limit: limit, Epoch: 1, Subject: subject}
	}
	const much = int64(1) << 60
	hour := window.Spec{Length: int64(time.Hour / time.Microsecond)}
	checks := []ledger.Check{
		{Counter: counter("funds", ""), Kind: ledger.KindFunds, Mode: ledger.Observe, Charges: ledger.Spend, Credit: much, Code: fault.InsufficientBalance},
		{Counter: counter("days", key), Kind: ledger.KindDays, Mode: ledger.Observe, Charges: ledger.Spend, Amount: much, Span: 1, ZoneEpoch: 1, Code: fault.DayLimitReached},
		{Counter: counter("key budget", key), Kind: ledger.KindFixed, Mode: ledger.Reserve, Wants: ledger.Spend, Charges: ledger.Spend, Amount: much, Window: hour, Code: fault.BudgetExceeded},
		{Counter: counter("rpm", key), Kind: ledger.KindBucket, Mode: ledger.Take, Wants: ledger.Requests, Amount: 1 << 40, Code: fault.APIKeyRPMExceeded},
		{Counter: counter("tpm", key), Kind: ledger.KindBucket, Mode: ledger.Take, Wants: ledger.Input, Charges: ledger.Tokens, Amount: 1 << 40, Code: fault.APIKeyTPMExceeded},
		{Counter: counter("slots", key), Kind: ledger.KindGauge, Mode: ledger.Take, Wants: ledger.Slots, Amount: 1 << 40, Code: fault.APIKeyConcurrencyExceeded},
		{Counter: counter("workspace rpm", ""), Kind: ledger.KindBucket, Mode: ledger.Take, Wants: ledger.Requests, Amount: 1 << 40, Code: fault.WorkspaceRPMExceeded},
	}
	op := &ledger.Op{
		Verb: ledger.Admit, ID: id, Workspace: workspace, Process: "p1", HoldMicros: int64(30 * time.Minute / time.Microsecond),
		Subjects: ledger.Subjects{Key: key, User: "ada"}, Checks: checks, Note: make([]byte, 100),
		Candidates: []ledger.Candidate{{
			Model: "gpt-5", Provider: "openai", Price: "price_1",
			Wants:  ledger.Amounts{Spend: 2_000_000, Tokens: 3000, Input: 1000, Requests: 1, Slots: 1},
			Checks: []ledger.Check{{Counter: counter("model", "gpt-5"), Kind: ledger.KindFixed, Mode: ledger.Reserve, Wants: ledger.Tokens, Charges: ledger.Tokens, Amount: much, Window: hour, Code: fault.RateLimited}},
		}},
	}
	op.Name(at)
	return op
}

func settle(r *ledger.Reservation, spend int64) *ledger.Op {
	return &ledger.Op{Verb: ledger.Settle, Workspace: r.Workspace, Reservation: r, Settlement: &ledger.Settlement{
		Note: make([]byte, 60),
		Attempts: []ledger.Attempt{{
			Model: r.Model, Provider: r.Provider, Price: r.Price, Spend: spend, Tokens: 2000, Input: 1000, Detail: make([]byte, 40),
		}},
	}}
}

func newID(at int64) ledger.ID {
	var random [10]byte
	_, _ = rand.Read(random[:])
	return ledger.NewID(at, random)
}

// work runs requests and prints each answer that it got, until it is killed.
func work(o sqlite.Options) {
	b, err := sqlite.Open(context.Background(), o)
	if err != nil {
		say("E", err)
		return
	}
	b.Start()
	g := storetest.NewGatherer(b)
	var wait sync.WaitGroup
	for i := range int64(children) {
		wait.Go(func() {
			for n := int64(1); ; n++ {
				op := cycle(newID(b.Now()), "acme", fmt.Sprint("key", i), b.Now())
				result, err := g.Do(op)
				if err != nil || result.Verdict != ledger.Admitted {
					say("E", result.Verdict, err)
					return
				}
				say("A", op.ID)
				if n%5 == 0 {
					continue // nobody settles it
				}
				if result, err = g.Do(settle(result.Reservation, n)); err != nil || result.Verdict != ledger.Done {
					say("E", result.Verdict, err)
					return
				}
				say("S", op.ID, n)
			}
		})
	}
	wait.Wait()
}

// acknowledged is what a killed process had answered.
type acknowledged struct {
	admitted []ledger.ID
	settled  map[ledger.ID]int64
}

// kill reads answers until so many came, kills the process and reads the rest.
func (a *acknowledged) kill(t *testing.T, mode, path string, after int) {
	t.Helper()
	c := child(t, mode, path)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for n := 0; ; n++ {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // a line that the kill has cut was not read by anyone
		}
		if n == after {
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		a.take(t, strings.Fields(line))
	}
	_ = c.Wait()
}

func (a *acknowledged) take(t *testing.T, words []string) {
	t.Helper()
	if words[0] == "E" {
		t.Fatalf("the child: %v", words)
	}
	id, err := ledger.ParseID(words[1])
	if err != nil {
		t.Fatal(err)
	}
	if words[0] == "A" {
		a.admitted = append(a.admitted, id)
		return
	}
	var spend int64
	if _, err := fmt.Sscan(words[2], &spend); err != nil {
		t.Fatal(err)
	}
	a.settled[id] = spend
}

// RES-1: killing the process at any instant loses nothing that was answered,
// and the books balance.
func TestAKilledProcessLosesNothingAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	known := &acknowledged{settled: make(map[ledger.ID]int64)}
	for i := range 8 {
		known.kill(t, []string{"work", "hurry"}[i%2], path, mathrand.IntN(1500))
		b, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
		if err != nil {
			t.Fatalf("open after the kill: %v", err)
		}
		known.check(t, b)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d admitted, %d settled", len(known.admitted), len(known.settled))
}

func (a *acknowledged) check(t *testing.T, b *sqlite.Book) {
	t.Helper()
	books, err := storetest.Take(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if err := books.Balance(); err != nil {
		t.Error(err)
	}
	if len(books.Reservations) != 0 {
		t.Errorf("%d are open after the sweep", len(books.Reservations))
	}
	events := make(map[ledger.ID]*ledger.Event)
	for i := range books.Events {
		events[books.Events[i].ID] = &books.Events[i]
	}
	for _, id := range a.admitted {
		e := events[id]
		spend, settled := a.settled[id]
		switch {
		case e == nil:
			t.Errorf("%s was admitted and is lost", id)
		case settled && (e.Kind != ledger.EventSettled || e.Spend != spend):
			t.Errorf("%s was settled at %d, the books say %s at %d", id, spend, e.Kind, e.Spend)
		}
	}
}

// STO-1: a second process on the file is refused, at once.
func TestASecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "weir.db")
	b := open(t, sqlite.Options{Path: path})
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		out, err := child(t, "open", name).Output()
		if err != nil || !strings.HasPrefix(string(out), "true") {
			t.Errorf("the second process says %q, %v, want ErrLocked", out, err)
		}
		if _, err := sqlite.Open(t.Context(), sqlite.Options{Path: name}); !errors.Is(err, store.ErrLocked) {
			t.Errorf("this process again: %v, want ErrLocked", err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if out, err := child(t, "open", path).Output(); err != nil || !strings.HasPrefix(string(out), "false <nil>") {
		t.Errorf("after close the second process says %q, %v", out, err)
	}
}

func open(tb testing.TB, o sqlite.Options) *sqlite.Book {
	tb.Helper()
	b, err := sqlite.Open(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return b
}

var _ io.Closer = (*sqlite.Book)(nil)
