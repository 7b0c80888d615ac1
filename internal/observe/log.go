// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"io"
	"log/slog"
)

// NewLog returns a structured log of lines "key=value" on w. level is debug,
// info, warn or error; anything else is info.
func NewLog(w io.Writer, level string) *slog.Logger {
	if w == nil {
		w = io.Discard
	}
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l}))
}
