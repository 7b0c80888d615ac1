// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/keeper"
)

const elsewhereKey = "the-secret-of-another-workspaces-key"

const keptText = `providers:
  - {name: sim, protocol: openai, base_url: "%PROVIDER%", api_key: ` + providerCredential + `}
  - {name: twin, protocol: openai, base_url: "%PROVIDER%", api_key: ` + providerCredential + `}
  - {name: own, protocol: openai, base_url: "%PROVIDER%", api_key: ` + providerCredential + `, shared_state: true}
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}, aliases: [also]}
  - {name: t, provider: twin, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
  - {name: o, provider: own, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: ` + routesKey + `}
workspaces:
  - name: other
    keys:
      - {name: k, secret: ` + elsewhereKey + `}
`

// respond asks for a response, with further members. Each question is another one:
// the same one has an answer of the same id.
func (w *world) respond(key, model, members string) answer {
	question := fmt.Sprint("hello ", w.provider.Bill().Requests)
	return w.do(w.t.Context(), http.MethodPost, "/v1/responses", key, `{"model":"`+model+`","input":"`+question+`"`+members+`}`)
}

// responseID is the id in an answer, whole or streamed.
func responseID(t *testing.T, a answer) string {
	t.Helper()
	id := regexp.MustCompile(`"resp_[0-9a-f]+"`).FindString(a.body)
	if id == "" {
		t.Fatalf("no response's id in %v", a)
	}
	return id
}

// refusedUnsent: 404, and no provider hears of it.
func (w *world) refusedUnsent(what string, a func() answer) {
	w.t.Helper()
	before := w.provider.Bill().Requests
	if got := a(); got.status != 404 || got.code() != "not_found" {
		w.t.Errorf("%s: %v", what, got)
	}
	if w.provider.Bill().Requests != before {
		w.t.Errorf("%s: it reached the provider", what)
	}
}

// TestAnAnswersIDIsItsWorkspacesAlone: DIS-8. What a workspace made through this
// gateway may be named by it, at the account that holds it, at once and after a
// restart; by nobody else, nowhere else, and not for ever.
func TestAnAnswersIDIsItsWorkspacesAlone(t *testing.T) {
	w := newWorld(t, keptText)
	for what, members := range map[string]string{"whole": "", "streamed": `,"stream":true`, "stored": `,"store":true`, "null": `,"store":null`} {
		id := responseID(t, w.must(w.respond(routesKey, "m", members), 200, ""))
		named := `,"previous_response_id":` + id
		w.must(w.respond(routesKey, "m", named), 200, "")
		w.must(w.respond(routesKey, "also", named), 200, "")
		w.refusedUnsent(what+", another workspace", func() answer { return w.respond(elsewhereKey, "m", named) })
		w.refusedUnsent(what+", another account", func() answer { return w.respond(routesKey, "t", named) })
		w.refusedUnsent(what+", with one that is not its own", func() answer {
			return w.respond(routesKey, "m", named+`,"conversation":"conv_1"`)
		})
		w.must(w.respond(routesKey, "m", named+`,"stream":true`), 200, "")
	}
	item := func(key string) answer {
		return w.do(t.Context(), http.MethodPost, "/v1/responses", key, `{"model":"m","input":[{"type":"item_reference","id":"msg_1"}]}`)
	}
	w.must(item(routesKey), 200, "")
	w.refusedUnsent("another workspace's item", func() answer { return item(elsewhereKey) })
	for _, members := range []string{`,"store":false`, `,"store":false,"stream":true`} {
		id := responseID(t, w.must(w.respond(routesKey, "m", members), 200, ""))
		w.refusedUnsent("not stored", func() answer { return w.respond(routesKey, "m", `,"previous_response_id":`+id) })
	}
	w.must(w.respond(routesKey, "m", `,"store":"yes"`), 400, "invalid_request")
	named := `,"previous_response_id":` + responseID(t, w.must(w.respond(routesKey, "m", ""), 200, ""))
	w.restart()
	w.must(w.respond(routesKey, "m", named), 200, "")
	w.clock.Advance(keeper.Lifetime + time.Second)
	w.refusedUnsent("long ago", func() answer { return w.respond(routesKey, "m", named) })
	w.settled("1", "10")
}

// TestAnIDThatWasOnlyPassedOnIsNotMade: DIS-8. Where ids are not looked at nothing
// says whose they are, and what such requests name stays unknown.
func TestAnIDThatWasOnlyPassedOnIsNotMade(t *testing.T) {
	w := newWorld(t, keptText)
	id := responseID(t, w.must(w.respond(routesKey, "o", `,"previous_response_id":"resp_0"`), 200, ""))
	off := `providers:
  - {name: sim, protocol: openai, base_url: "%PROVIDER%", api_key: ` + providerCredential + `}
  - {name: own, protocol: openai, base_url: "%PROVIDER%", api_key: ` + providerCredential + `}
models:
  - {name: o, provider: own, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: ` + routesKey + `}
`
	w.write(off)
	w.restart()
	w.must(w.respond(routesKey, "o", `,"previous_response_id":`+id), 200, "")
	w.refusedUnsent("passed on", func() answer { return w.respond(routesKey, "o", `,"previous_response_id":"resp_0"`) })
	w.settled("1", "10")
}

// TestAnAnswersIDIsKnownOnEveryReplicaAtOnce: DIS-8, STO-1. Nobody waits.
func TestAnAnswersIDIsKnownOnEveryReplicaAtOnce(t *testing.T) {
	w := newSharedWorld(t, keptText)
	replicas := []*world{w, w.replica(), w.replica()}
	for i := range 9 {
		members := []string{"", `,"stream":true`}[i%2]
		id := responseID(t, w.must(replicas[i%3].respond(routesKey, "m", members), 200, ""))
		for _, r := range replicas {
			r.must(r.respond(routesKey, "m", `,"previous_response_id":`+id), 200, "")
			r.refusedUnsent("another workspace", func() answer { return r.respond(elsewhereKey, "m", `,"previous_response_id":`+id) })
		}
	}
	w.settled("1", "10")
}
