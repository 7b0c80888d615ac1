// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"sync/atomic"
	"time"
)

const (
	// patienceShown is when a command that is not done begins to say so to a terminal,
	// patienceLogged how often it says so to anything else.
	patienceShown  = time.Second
	patienceLogged = 10 * time.Second
)

// progress says on a terminal's standard error that something goes on, and for
// how long, until the returned function is called.
func (s *session) progress(what string) (done func()) {
	if !terminal(s.stderr) {
		return func() {}
	}
	told, done := s.progressing()
	told(what)
	return done
}

// progressing says on standard error, a terminal or not, what told was given last
// and for how long all has gone on, until done is called.
func (s *session) progressing() (told func(what string), done func()) {
	every, format := patienceLogged, "%s, %d s\n"
	shown := terminal(s.stderr)
	if shown {
		every, format = patienceShown, "\r\x1b[K%s, %d s"
	}
	var what atomic.Pointer[string]
	stop, stopped := make(chan struct{}), make(chan struct{})
	began := time.Now()
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				if shown {
					tell(s.stderr, "\r\x1b[K")
				}
				return
			case <-ticker.C:
				if text := what.Load(); text != nil {
					tell(s.stderr, format, *text, int(time.Since(began).Seconds()))
				}
			}
		}
	}()
	return func(text string) { what.Store(&text) }, func() {
		close(stop)
		<-stopped
	}
}
