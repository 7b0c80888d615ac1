// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin/client"
	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/simulator"
)

// TestEveryDoorEndingAndLimitAgreeWithTheBill: ORD-3, ORD-5, RES-2 to RES-4, RES-10,
// DIS-2, DIS-7, DIS-9, ERR-1 to ERR-3, ERR-6, PRC-4, RUN-1, RUN-3. The matrix of
// door × streamed or not × ending × family of limits, generated from the route
// table: in each cell the ledger is the provider's bill, every limit shows what was
// settled and nothing held, and once it is used up the request is refused in the
// door's own shape, with nothing sent and nothing consumed.
//
// WEIR_MATRIX=whole runs the product, another value those of its cells that have it
// in their names; without it each mode meets each ending, the
// families and HTTP/2 by turns, and a complete answer each family, the modes by turns.
func TestEveryDoorEndingAndLimitAgreeWithTheBill(t *testing.T) {
	wanted := os.Getenv("WEIR_MATRIX")
	cells := matrix(modesOf(t, newWorld(t, doorModels).server.Routes()), endings(), limitFamilies(), wanted != "")
	cells = slices.DeleteFunc(cells, func(c *cell) bool {
		return wanted != "whole" && slices.ContainsFunc(strings.Split(wanted, "*"), func(part string) bool { return !strings.Contains(c.String(), part) })
	})
	t.Logf("%d cells", len(cells))
	for len(cells) > 0 {
		n := min(len(cells), cellsAWorld)
		t.Run(cells[0].String(), func(t *testing.T) { runCells(t, cells[:n]) })
		cells = cells[n:]
	}
}

const (
	cellsAWorld = 400 // a workspace each; a file has at most 1,000
	cellsAtOnce = 48
)

// matrix lists the cells: the product, or a part of it in which every mode comes to
// every ending, and every family is met by modes of every protocol.
func matrix(modes []mode, endings []ending, limits []family, whole bool) (list []*cell) {
	seen := map[[4]int]bool{}
	add := func(m, e, f, h2 int) {
		m, e, f = m%len(modes), e%len(endings), f%len(limits)
		at := [4]int{m, e, f, h2}
		if seen[at] || !endings[e].has(modes[m]) || !limits[f].has(modes[m]) {
			return
		}
		seen[at] = true
		list = append(list, &cell{mode: modes[m], ending: endings[e], family: limits[f], h2: h2 == 1})
	}
	for m := range modes {
		for e := range endings {
			if !whole {
				add(m, e, m+e, (m+e)%2)
				continue
			}
			for f := range limits {
				add(m, e, f, 0)
			}
			add(m, e, 0, 1)
		}
	}
	if whole {
		return list
	}
	for f := range limits {
		for m := f % 4; m < len(modes); m += 4 {
			add(m, 0, f, 0)
		}
	}
	return list
}

// runCells runs cells in a world of theirs.
func runCells(t *testing.T, cells []*cell) {
	w, script := matrixWorld(t, cells)
	base, closeFn, err := app.Connect(context.Background(), w.options())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeFn() }()
	w.provider.SetScript(script)
	var running sync.WaitGroup
	turns := make(chan struct{}, cellsAtOnce)
	for _, c := range cells {
		c.w, c.admin = w, client.New(client.Options{Transport: base, Workspace: c.workspace()})
		c.limits() // a secret that is not known yet is looked up, a hundred a second (KEY-2)
		w.clock.Advance(20 * time.Millisecond)
	}
	for _, c := range cells {
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			c.run()
		})
	}
	running.Wait()
	w.await("the provider at rest", func(n simulator.Totals) bool { return n.InFlight == 0 })
	bill := map[string][]simulator.Entry{}
	for _, entry := range w.provider.Bill().Log {
		bill[entry.Agent] = append(bill[entry.Agent], entry)
	}
	for _, c := range cells {
		c.billed(bill)
		for _, fault := range c.faults {
			t.Errorf("%s:\n\t%s", c, fault)
		}
	}
	w.balanced()
	if ends, err := w.server.OpenUntil(context.Background()); err != nil || len(ends) != 0 {
		t.Errorf("open reservations at rest: %v (%v)", ends, err)
	}
}

// matrixWorld is a program whose file has a workspace for each cell, with its
// provider served by HTTP/1.1 and HTTP/2.
func matrixWorld(t *testing.T, cells []*cell) (*world, simulator.Script) {
	t.Helper()
	items := ""
	for i, c := range cells {
		c.n, c.gate, c.arrived = i, simulator.NewGate(), make(chan struct{})
		items += c.item()
	}
	script := func(r simulator.Request) simulator.Behaviour {
		n, what, ok := whereFrom(r.Header.Get("User-Agent"))
		if !ok {
			return simulator.Behaviour{Status: 418}
		}
		return cells[n].behaviour(what)
	}
	var provider *simulator.Server
	second := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { provider.ServeHTTP(rw, r) }))
	second.EnableHTTP2 = true
	second.StartTLS()
	t.Cleanup(second.Close)
	roots := filepath.Join(t.TempDir(), "roots.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: second.Certificate().Raw})
	if err := os.WriteFile(roots, block, 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, matrixModels(second.URL, roots)+"workspaces:\n"+items)
	provider = w.provider
	return w, script
}
