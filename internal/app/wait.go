// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/store/postgres"
)

const (
	// beginAgain is how often a start tries a database that does not answer;
	// beginTold, in tries, how often it says so.
	beginAgain = time.Second
	beginTold  = 30
)

// begin opens the store and applies the file. Where the store is a database that
// does not answer, it waits for it, and meanwhile listens: the process lives, is
// not ready, and refuses what comes (RES-8). What waiting does not cure ends the
// start.
func (s *Server) begin(ctx context.Context) error {
	again := time.NewTicker(beginAgain)
	defer again.Stop()
	for tries := 0; ; tries++ {
		err := s.beginOnce(ctx)
		if err == nil || !s.mayCome(err) {
			return err
		}
		if tries == 0 {
			if err := s.open(ctx); err != nil {
				return err
			}
		}
		if tries%beginTold == 0 {
			s.log.Warn("the start waits for the database; requests are refused until it answers", "listen", s.Addr(), "error", err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case ended := <-s.ended:
			return ended
		}
	}
}

func (s *Server) beginOnce(ctx context.Context) (err error) {
	if s.core, err = openCore(ctx, s.file, s.options, s.log, true); err != nil {
		s.core = nil
		return err
	}
	if err = s.apply(ctx, s.file); err == nil {
		// Another process may have applied the same file since this one began to read.
		err = s.core.directory.RefreshAll(ctx)
	}
	if err == nil {
		s.adminToken, err = s.core.adminToken(ctx, s.file.Process.AdminToken)
	}
	if err != nil {
		err = errors.Join(err, s.core.close(context.WithoutCancel(ctx)))
		s.core = nil
	}
	return err
}

// mayCome tells whether a start that failed may succeed later with nobody's help.
func (s *Server) mayCome(err error) bool {
	if _, shared := s.file.Process.StoreURL(); !shared {
		return false
	}
	return postgres.Passing(err) || passing(err)
}

// passing tells whether the store could not take what the file declares, with
// nothing known to be wrong with that.
func passing(err error) bool {
	var refused *fault.Fault
	return errors.As(err, &refused) && refused.Code == fault.ServiceUnavailable
}

// refusedFile tells whether something is known to be wrong with a file.
func refusedFile(err error) bool {
	var problems document.Problems
	var refused *fault.Fault
	return errors.As(err, &problems) || errors.As(err, &refused) && !passing(err)
}

// door is what a listener serves: nothing yet, until it is opened.
type door struct{ to atomic.Pointer[http.Handler] }

func (d *door) open(to http.Handler) { d.to.Store(&to) }

// ServeHTTP is http.Handler's.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if to := d.to.Load(); to != nil {
		(*to).ServeHTTP(w, r)
		return
	}
	status, contentType, body := http.StatusServiceUnavailable, "text/plain; charset=utf-8", []byte("not ready: the database does not answer\n")
	switch r.URL.Path {
	case "/healthz":
		status, body = http.StatusOK, []byte("ok\n")
	case "/readyz":
	default:
		f := fault.New(fault.ServiceUnavailable, "the gateway has just started and cannot decide before its store answers; nothing was sent and nothing is charged")
		gateway.Refuse(w, r, doors(), clock.System(), f)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // whoever asked may be gone
}

// apart tells whether administration has an address of its own.
func (s *Server) apart() bool {
	p := &s.file.Process
	return p.AdminListen != "" && (p.AdminListen != p.Listen || strings.HasSuffix(p.Listen, ":0"))
}

// open listens where models and administration are served, once.
func (s *Server) open(ctx context.Context) (err error) {
	if s.addr != nil {
		return nil
	}
	p := &s.file.Process
	if s.addr, err = s.listen(ctx, p.Listen, &s.models); err != nil {
		return err
	}
	s.adminAddr = s.addr
	if s.apart() {
		s.adminAddr, err = s.listen(ctx, p.AdminListen, &s.administration)
	}
	return err
}
