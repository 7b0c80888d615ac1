// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// TestAStreamThatBreaksNeverEndsCleanly: BR-206, ERR-6. At every door that streams,
// whether the provider says so, resets the connection or just stops: the client reads
// an error of its own protocol's and no end that a whole answer has.
func TestAStreamThatBreaksNeverEndsCleanly(t *testing.T) {
	array := func(body string) bool {
		var list []struct{ Error *struct{ Code int } }
		return json.Unmarshal([]byte(body), &list) == nil && len(list) > 0 && list[len(list)-1].Error != nil
	}
	has := func(marks ...string) func(string) bool {
		return func(body string) bool {
			for _, mark := range marks {
				if !strings.Contains(body, mark) {
					return false
				}
			}
			return true
		}
	}
	breaks := []string{"error=after:2", "cut=after:2", "close=after:2", "end=after:2", "cut=done"}
	providers, models, _ := strings.Cut(doorModels, "models:\n")
	for i, how := range breaks {
		for name, provider := range map[string]string{"m": "sim", "a": "anthropic", "g": "gemini"} {
			models += fmt.Sprintf("  - {name: %s%d, provider: %s, upstream: %q, price: {input: \"1\", output: \"10\"}}\n", name, i, provider, "sim?in=20&out=30&"+how)
		}
	}
	w := newWorld(t, providers+"models:\n"+models+"keys:\n  - {name: k, secret: "+routesKey+", limits: {concurrency: 1}}\n")
	for _, c := range []struct {
		name, model, path, body string
		wrong                   func(string) bool // it has the protocol's error
		clean                   []string          // that only a whole answer has
	}{
		{"chat", "m", "/v1/chat/completions", chatBody("MODEL", `"stream":true`), has(`data: {"error":`), []string{"[DONE]", `"finish_reason":"stop"`}},
		{"completions", "m", "/v1/completions", `{"model":"MODEL","prompt":"hello","stream":true}`, has(`data: {"error":`), []string{"[DONE]", `"finish_reason":"stop"`}},
		{"responses", "m", "/v1/responses", `{"model":"MODEL","input":"hello","stream":true}`, has("event: error", "event: response.failed"), []string{"response.completed", "response.incomplete"}},
		{"messages", "a", "/v1/messages", `{"model":"MODEL","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hello"}]}`, has("event: error", `"type":"error"`), []string{"message_stop", "end_turn"}},
		{"gemini's events", "g", "/v1beta/models/MODEL:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`, has(`data: {"error":`), []string{"STOP"}},
		{"gemini's array", "g", "/v1beta/models/MODEL:streamGenerateContent", `{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`, array, []string{"STOP"}},
	} {
		for i, how := range breaks {
			model := c.model + strconv.Itoa(i)
			a := w.do(context.Background(), http.MethodPost, strings.ReplaceAll(c.path, "MODEL", model), routesKey, strings.ReplaceAll(c.body, "MODEL", model))
			wrong := c.wrong
			if c.name == "responses" && strings.HasPrefix(how, "error") {
				wrong = has("event: error") // the provider's own words, which stay as they are (DIS-6)
			}
			if a.status != 200 || !wrong(a.body) {
				t.Errorf("%s, %s: no error of the protocol: %v", c.name, how, a)
			}
			for _, clean := range c.clean {
				if strings.Contains(a.body, clean) && how != "cut=done" { // which had come to its finish
					t.Errorf("%s, %s: it ends cleanly, with %s: %q", c.name, how, clean, a.body)
				}
			}
			w.eventually("the end", func() bool { return w.shown(a).End != nil })
		}
	}
	w.balanced()
}
