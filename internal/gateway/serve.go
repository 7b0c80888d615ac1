// SPDX-License-Identifier: Apache-2.0

package gateway

import "net/http"

// serve is the whole way of a governed request (SPEC section 2). Each step
// either goes on or has answered the client; whatever happens, finish leaves no
// reservation behind.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, route *Route, name string) {
	if !g.running.enter() {
		g.refuseEarly(w, r, stopping())
		return
	}
	defer g.running.leave()
	x := g.receive(w, r, route, name)
	defer x.finish()
	if !x.identify() {
		return
	}
	if !x.read() {
		return
	}
	if !x.admit() {
		return
	}
	answer, ok := x.dispatch()
	if !ok {
		return
	}
	if x.call.Stream && answer.StatusCode < 300 {
		x.relayStream(answer)
		return
	}
	x.relayWhole(answer)
}
