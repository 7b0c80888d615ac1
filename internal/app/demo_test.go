// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/app"
)

// stopper cancels when a text is written.
type stopper struct {
	bytes.Buffer
	at     string
	cancel context.CancelFunc
}

func (s *stopper) Write(text []byte) (int, error) {
	n, err := s.Buffer.Write(text)
	if strings.Contains(s.String(), s.at) {
		s.cancel()
	}
	return n, err
}

// Ctrl-C ends a demonstration wherever it is, gives the terminal back and
// leaves nothing behind.
func TestADemonstrationEndsCleanlyWhenItIsInterrupted(t *testing.T) {
	for _, c := range []struct {
		name, at string
		done     bool
	}{
		{"while the volley runs", "of $0.05", false},
		{"when it stays up", "base URL", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			// A short path: that of a socket is bounded.
			folder, err := os.MkdirTemp("", "d") //nolint:usetesting // its folders have long names
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = os.RemoveAll(folder) }()
			t.Setenv("TMPDIR", folder)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := &stopper{at: c.at, cancel: cancel}
			run, err := app.Demo(ctx, app.DemoOptions{Stdout: out, Live: true})
			switch {
			case !c.done && !errors.Is(err, context.Canceled):
				t.Errorf("error %v", err)
			case c.done && (err != nil || !run.Balanced || run.Ledger != run.Bill || run.Refused == 0):
				t.Errorf("%+v, %v\n%s", run, err, out)
			}
			text := out.String()
			if hidden, shown := strings.LastIndex(text, "\x1b[?25l"), strings.LastIndex(text, "\x1b[?25h"); shown < hidden {
				t.Error("the cursor stays hidden")
			}
			if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
