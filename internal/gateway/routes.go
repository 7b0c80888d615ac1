// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
)

// Route is one row of the route table. Governed routes reach a provider, and
// have no handler but serve: none can skip the checks (ORD-3).
type Route struct {
	Method, Path string
	// Prefix: Path is followed by one name.
	Prefix   bool
	Door     call.Door
	Governed bool
	// Upstream is the path after a provider's base URL.
	Upstream string
	handle   http.HandlerFunc
}

// table is every path that the data plane answers.
func (g *Gateway) table() []Route {
	return []Route{
		{Method: http.MethodPost, Path: "/v1/chat/completions", Door: call.OpenAIChat, Governed: true, Upstream: "/chat/completions"},
		{Method: http.MethodGet, Path: "/v1/models", Door: call.OpenAIModels, handle: g.listModels},
		{Method: http.MethodGet, Path: "/v1/models/", Prefix: true, Door: call.OpenAIModels, handle: g.showModel},
		{Method: http.MethodGet, Path: "/v1/key", Door: call.WeirKey, handle: g.showKey},
		{Method: http.MethodGet, Path: "/healthz", handle: g.healthz},
		{Method: http.MethodGet, Path: "/readyz", handle: g.readyz},
		{Method: http.MethodHead, Path: "/", handle: g.root},
		{Method: http.MethodGet, Path: "/", handle: g.root},
	}
}

// Routes lists the route table, for the test that walks it and for the docs.
func (g *Gateway) Routes() []Route { return append([]Route(nil), g.routes...) }

// ServeHTTP finds the route. Paths are compared as they stand: another spelling
// of a path is another path, and no door (BR-181).
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	BoundTimes(w, r, g.BodyTimeout)
	if r.Header.Get("Upgrade") != "" {
		g.refuseEarly(w, r, fault.New(fault.InvalidRequest, "there is no door for protocol upgrades (websockets) here"))
		return
	}
	var allowed []string
	for i := range g.routes {
		route := &g.routes[i]
		if !route.matches(r.URL) {
			continue
		}
		if route.Method != r.Method {
			allowed = append(allowed, route.Method)
			continue
		}
		if route.Governed {
			g.serve(w, r, route)
		} else {
			route.handle(w, r)
		}
		return
	}
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		g.refuseEarly(w, r, fault.New(fault.MethodNotAllowed, "%s does not answer to %s; use %s", r.URL.Path, r.Method, strings.Join(allowed, " or ")))
		return
	}
	g.refuseEarly(w, r, fault.New(fault.NotFound, "there is no door at %s; the doors are /v1/chat/completions, /v1/models and /v1/key", r.URL.Path))
}

func (route *Route) matches(u *url.URL) bool {
	if !route.Prefix {
		return u.Path == route.Path && u.RawPath == ""
	}
	name, ok := strings.CutPrefix(u.Path, route.Path) // a name may need escapes
	return ok && name != ""
}
