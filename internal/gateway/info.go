// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"net/http"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/ledger"
)

// inform serves a route that reaches no provider: check 1 only, never refused
// for money (SPEC section 9).
func (g *Gateway) inform(w http.ResponseWriter, r *http.Request, answer func(x *exchange) (any, *fault.Fault)) {
	x := g.receive(w, r, &Route{}, "")
	if !x.identify() {
		return
	}
	if inactive(x.key, g.Clock.Now()) {
		x.refuse(inactiveFault(x.key))
		return
	}
	value, f := answer(x)
	if f != nil {
		x.refuse(f)
		return
	}
	body, err := json.Marshal(value)
	if err != nil {
		x.refuse(fault.New(fault.InternalError, "the answer could not be written"))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	x.write(http.StatusOK, body)
}

// showKey tells the caller its own key's limits and their use (KEY-8).
func (g *Gateway) showKey(w http.ResponseWriter, r *http.Request) {
	g.inform(w, r, func(x *exchange) (any, *fault.Fault) {
		if f := x.attribute(); f != nil {
			return nil, f
		}
		op := admit.ReadOp(x.snapshot, x.key, x.who)
		result, err := g.Teller.Submit(r.Context(), op)
		if err != nil || result.Verdict != ledger.Done {
			return nil, unavailable()
		}
		view := admit.Describe(x.snapshot, x.key, x.who, result.Readings)
		if g.local != nil {
			view.Limits = append(view.Limits, g.local.view(g.Clock.Now()))
		}
		return view, nil
	})
}

// healthz: the process lives. It does not ask the store (RES-8).
func (g *Gateway) healthz(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") }

// readyz: admissions can be decided. What else is to be told of this process
// follows, a line each, and makes it no less ready.
func (g *Gateway) readyz(w http.ResponseWriter, _ *http.Request) {
	switch {
	case g.running.stopping():
		plain(w, http.StatusServiceUnavailable, "not ready: the gateway is stopping\n")
	case !g.Teller.Healthy():
		plain(w, http.StatusServiceUnavailable, "not ready: the store does not answer\n")
	default:
		plain(w, http.StatusOK, "ready\n"+g.remarks())
	}
}

func (g *Gateway) remarks() (text string) {
	if g.Remarks == nil {
		return ""
	}
	for _, remark := range g.Remarks() {
		text += "warning: " + remark + "\n"
	}
	return text
}

// root answers clients that probe the base URL.
func (g *Gateway) root(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "weir\n") }

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}
