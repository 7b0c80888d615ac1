// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
)

// Route is one row of the route table. Governed routes reach a provider, and
// have no handler but serve: none can skip the checks (ORD-3).
type Route struct {
	Method string
	// Path may have {model} in the place of a name.
	Path     string
	Door     call.Door
	Governed bool
	protocol Protocol
	idHeader string
	handle   http.HandlerFunc
}

// place is where a path has a name.
const place = "{model}"

// table is every path that the data plane answers.
func (g *Gateway) table() []Route {
	var list []Route
	for _, d := range g.Doors {
		list = append(list, Route{Method: http.MethodPost, Path: d.Path, Door: d.Name, Governed: true, protocol: d.Protocol, idHeader: d.IDHeader})
	}
	return append(list, []Route{
		{Method: http.MethodGet, Path: "/v1/models", Door: call.OpenAIModels, handle: g.listModels},
		{Method: http.MethodGet, Path: "/v1/models/" + place, Door: call.OpenAIModels, handle: g.showModel},
		{Method: http.MethodGet, Path: geminiModels, Door: call.GeminiModels, handle: g.listGeminiModels},
		{Method: http.MethodGet, Path: geminiModels + "/" + place, Door: call.GeminiModels, handle: g.showGeminiModel},
		{Method: http.MethodGet, Path: "/v1/key", Door: call.WeirKey, handle: g.showKey},
		{Method: http.MethodGet, Path: "/healthz", handle: g.healthz},
		{Method: http.MethodGet, Path: "/readyz", handle: g.readyz},
		{Method: http.MethodGet, Path: "/", handle: g.root},
	}...)
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
		name, ok := route.matches(r.URL)
		if !ok {
			continue
		}
		if !route.answers(r.Method) {
			if r.Method != http.MethodPost || !strings.Contains(name, ":") { // else a verb that is no door
				allowed = append(allowed, route.methods()...)
			}
			continue
		}
		if route.Governed {
			g.serve(w, r, route, name)
		} else {
			route.handle(w, r)
		}
		return
	}
	switch {
	case len(allowed) == 0:
		g.refuseEarly(w, r, fault.New(fault.NotFound, "there is no door at %s; the doors are %s", r.URL.Path, g.doorList))
	case r.Method == http.MethodOptions:
		g.options(w, r, allowed)
	default:
		w.Header().Set("Allow", allow(allowed))
		g.refuseEarly(w, r, fault.New(fault.MethodNotAllowed, "%s does not answer to %s; use %s", r.URL.Path, r.Method, strings.Join(allowed, " or ")))
	}
}

// answers: what can be read can be asked for without its body, too.
func (route *Route) answers(method string) bool {
	return route.Method == method || route.Method == http.MethodGet && method == http.MethodHead
}

func (route *Route) methods() []string {
	if route.Method == http.MethodGet {
		return []string{http.MethodGet, http.MethodHead}
	}
	return []string{route.Method}
}

// options says what a path answers to. It needs no key, as clients that ask send
// none, and no header that would let a web page use one.
func (g *Gateway) options(w http.ResponseWriter, r *http.Request, allowed []string) {
	g.name(w, r, "")
	w.Header().Set("Allow", allow(allowed))
	w.WriteHeader(http.StatusNoContent)
}

func allow(methods []string) string {
	return strings.Join(append(methods, http.MethodOptions), ", ")
}

// matches tells whether a path is the route's, and the name that it has in place
// of the pattern's.
func (route *Route) matches(u *url.URL) (name string, ok bool) {
	before, after, pattern := strings.Cut(route.Path, place)
	if !pattern {
		return "", u.Path == route.Path && u.RawPath == ""
	}
	name, first := strings.CutPrefix(u.Path, before) // a name may need escapes
	name, last := strings.CutSuffix(name, after)
	return name, first && last && name != ""
}

// protocolAt is what is spoken at a path that is no door, or whose door was not
// found yet: that of the doors under the same first part.
func (g *Gateway) protocolAt(u *url.URL) Protocol {
	best, most := g.Doors[0].Protocol, 0
	for i := range g.routes {
		if route := &g.routes[i]; !route.Governed && route.Door != "" {
			if _, ok := route.matches(u); ok {
				return g.protocolOf(route.Door)
			}
		}
	}
	for _, d := range g.Doors {
		prefix, _, _ := strings.Cut(d.Path, place)
		for prefix != "/" && !strings.HasPrefix(u.Path+"/", prefix) {
			prefix = path.Dir(strings.TrimSuffix(prefix, "/")) + "/"
			if prefix == "//" {
				prefix = "/"
			}
		}
		if len(prefix) > most {
			best, most = d.Protocol, len(prefix)
		}
	}
	return best
}

// protocolOf is what the doors of a protocol speak, the first one's where none
// does.
func (g *Gateway) protocolOf(door call.Door) Protocol {
	for _, d := range g.Doors {
		if d.Name.Protocol() == door.Protocol() {
			return d.Protocol
		}
	}
	return g.Doors[0].Protocol
}

// doorNames lists the doors for who has missed them all.
func (g *Gateway) doorNames() string {
	var list []string
	for i := range g.routes {
		if strings.HasPrefix(g.routes[i].Path, "/v") {
			list = append(list, g.routes[i].Path)
		}
	}
	return strings.Join(list, ", ")
}
