// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"context"
	"testing"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/memory"
	"github.com/weirhq/weir/internal/tenant"
)

// meddled are objects that another writes to before the reading of a number.
type meddled struct {
	store.Objects
	left int
	do   func()
}

func (m *meddled) reading() {
	if m.left--; m.left == 0 {
		m.do()
	}
}

func (m *meddled) Object(ctx context.Context, workspace, kind, id string) (store.Object, error) {
	m.reading()
	return m.Objects.Object(ctx, workspace, kind, id)
}

func (m *meddled) ByName(ctx context.Context, workspace, kind, name string) (store.Object, error) {
	m.reading()
	return m.Objects.ByName(ctx, workspace, kind, name)
}

func (m *meddled) List(ctx context.Context, workspace, kind, after string, limit int) ([]store.Object, error) {
	m.reading()
	return m.Objects.List(ctx, workspace, kind, after, limit)
}

func (m *meddled) Since(ctx context.Context, workspace string, generation int64) ([]store.Object, int64, error) {
	m.reading()
	return m.Objects.Since(ctx, workspace, generation)
}

// TestProcessesThatStartTogetherApplyOneFileOnce: STO-2. Another one applies the same
// file before each of the readings in turn; that is no mistake of the file's.
func TestProcessesThatStartTogetherApplyOneFileOnce(t *testing.T) {
	const fewest = 10 // readings
	for at := 1; ; at++ {
		c := clock.NewManual(start)
		w := newWorld(t, c, memory.New(memory.Options{Clock: c, Secret: [32]byte{7}}))
		file := []admin.Declared{
			declaredWorkspace(t, "default", 1, func(w *tenant.Workspace) { w.Zone = "Europe/Berlin" }), declaredProvider(t, 2, nil),
			aliased(t, declaredModel(t, "m1", 3), "a1"), declaredModel(t, "m2", 4), declaredKey(t, "ci", secretOne, 5, nil),
		}
		options, met := w.options, false
		options.Objects = &meddled{Objects: w.book, left: at, do: func() { met = true; w.apply(file...) }}
		out, err := admin.New(options).Apply(t.Context(), "file", file, "weir.yaml")
		if err != nil {
			t.Errorf("before reading %d: %v", at, err)
		}
		if len(out.Retired)+len(out.Revived) > 0 {
			t.Errorf("before reading %d: what the other one had just made was retired: %+v", at, out)
		}
		if out := w.apply(file...); out.Any() || out.Unchanged != len(file) {
			t.Errorf("before reading %d: not all was applied: %+v", at, out)
		}
		if !met {
			if at <= fewest {
				t.Errorf("there were only %d readings", at-1)
			}
			return
		}
	}
}
