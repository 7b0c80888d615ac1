// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/simulator"
)

// serve answers a body without a network.
func serve(s *simulator.Server, key, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	q := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
	if key != "" {
		q.Header.Set("Authorization", "bearer "+key)
	}
	s.ServeHTTP(w, q)
	return w
}

func TestTheBillIsKeptByAccountAndModelAndShowsNoKey(t *testing.T) {
	s := simulator.New(simulator.Options{})
	for i, key := range []string{"sk-a", "sk-a", "sk-b", ""} {
		serve(s, key, body(fmt.Sprintf("sim?in=%d&out=1", 1+i%2)))
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/bill", http.NoBody))
	if strings.Contains(w.Body.String(), "sk-") {
		t.Errorf("the bill shows a key: %s", w.Body)
	}
	var bill simulator.Bill
	if err := json.Unmarshal(w.Body.Bytes(), &bill); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s.Bill().Lines, bill.Lines); d != "" {
		t.Error(d)
	}
	line := func(key, model string) simulator.Line {
		l := bill.Line(key, model)
		if l.Account != simulator.AccountOf(key) {
			t.Errorf("account %q", l.Account)
		}
		return l
	}
	if line("sk-a", "sim?in=1&out=1").Input != 1 || line("sk-a", "sim?in=2&out=1").Input != 2 || line("", "sim?in=2&out=1").Requests != 1 ||
		line("sk-b", "sim?in=2&out=1").Requests != 0 || bill.Requests != 4 || bill.Input != 6 {
		t.Errorf("bill: %+v", bill)
	}
	s.Reset()
	if b := s.Bill(); len(b.Lines) != 0 || len(b.Log) != 0 || b.Requests != 0 || b.MaxInFlight != 0 {
		t.Errorf("after a reset: %+v", b)
	}
}

func TestTheCredentialIsFoundWhereverAGatewayPutsIt(t *testing.T) {
	s := simulator.New(simulator.Options{Keys: []string{"k"}})
	for name, change := range map[string]func(*http.Request){
		"bearer":    func(q *http.Request) { q.Header.Set("Authorization", "Bearer k") },
		"x-api-key": func(q *http.Request) { q.Header.Set("X-Api-Key", "k") },
		"api-key":   func(q *http.Request) { q.Header.Set("Api-Key", "k") },
		"query":     func(q *http.Request) { q.URL.RawQuery = "key=k" },
		"none":      func(*http.Request) {},
		"basic":     func(q *http.Request) { q.Header.Set("Authorization", "Basic k") },
	} {
		w := httptest.NewRecorder()
		q := httptest.NewRequest(http.MethodGet, "/v1/models", http.NoBody)
		change(q)
		s.ServeHTTP(w, q)
		if want := map[bool]int{true: 401, false: 200}[name == "none" || name == "basic"]; w.Code != want {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
}

func TestTheLogAndTheLinesAreBounded(t *testing.T) {
	for kept, want := range map[int]int{3: 3, 100: 10, -1: 0} {
		s := simulator.New(simulator.Options{KeptRequests: kept})
		for range 10 {
			serve(s, "", body("sim"))
		}
		b := s.Bill()
		if len(b.Log) != want || b.Dropped != int64(10-want) {
			t.Errorf("%d kept: %d entries, %d dropped", kept, len(b.Log), b.Dropped)
		}
		for i, e := range b.Log {
			if e.Number != int64(10-want+i+1) {
				t.Errorf("entry %d is number %d", i, e.Number)
			}
		}
	}
	s := simulator.New(simulator.Options{})
	const many = 5_000
	for i := range many {
		serve(s, "", body(fmt.Sprintf("sim-%d?in=1&out=1", i)))
	}
	b := s.Bill()
	var input int64
	for _, l := range b.Lines {
		input += l.Input
	}
	if len(b.Lines) != 4_097 || input != many {
		t.Errorf("%d lines with %d tokens", len(b.Lines), input)
	}
}

func behaviours() *rapid.Generator[simulator.Behaviour] {
	count := func(most int64) *rapid.Generator[simulator.Count] {
		return rapid.Custom(func(t *rapid.T) simulator.Count {
			if rapid.Bool().Draw(t, "given") {
				return simulator.Exactly(rapid.Int64Range(0, most).Draw(t, "n"))
			}
			return simulator.Count{}
		})
	}
	return rapid.Custom(func(t *rapid.T) simulator.Behaviour {
		return simulator.Behaviour{
			Input: count(10_000).Draw(t, "in"), Output: count(300).Draw(t, "out"), TextBytes: count(5_000).Draw(t, "bytes"),
			Cached: rapid.Int64Range(0, 100).Draw(t, "cached"), Reasoning: rapid.Int64Range(0, 100).Draw(t, "reasoning"),
			ChunkTokens: rapid.Int64Range(0, 20).Draw(t, "chunk"),
			Split:       rapid.Int64Range(0, 5).Draw(t, "split"), Join: rapid.Int64Range(0, 5).Draw(t, "join"),
			CRLF: rapid.Bool().Draw(t, "crlf"), Ping: rapid.Bool().Draw(t, "ping"), Unbounded: rapid.Bool().Draw(t, "unbounded"),
		}
	})
}

// USE-1's truthful case: what is reported, what is billed, what a stream says
// and what a whole answer says are one.
func TestReportAndBillAgreeForEveryAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := simulator.New(simulator.Options{})
		model := behaviours().Draw(t, "behaviour").Model("sim")
		more := []string{fmt.Sprintf(`"n":%d`, rapid.Int64Range(1, 4).Draw(t, "n"))}
		if bound := rapid.Int64Range(0, 200).Draw(t, "bound"); bound > 0 {
			more = append(more, fmt.Sprintf(`"max_tokens":%d`, bound))
		}
		type usage struct {
			Prompt     int64 `json:"prompt_tokens"`
			Completion int64 `json:"completion_tokens"`
			Total      int64 `json:"total_tokens"`
		}
		var whole struct {
			Choices []struct{ Message struct{ Content string } }
			Usage   usage
		}
		if err := json.Unmarshal(serve(s, "", body(model, more...)).Body.Bytes(), &whole); err != nil {
			t.Fatal(err)
		}
		said := make([]string, len(whole.Choices))
		var reported usage
		for _, d := range events(serve(s, "", body(model, append(more, asked)...)).Body.String()) {
			var c chunk
			if err := json.Unmarshal([]byte(d), &c); err != nil && d != "[DONE]" {
				t.Fatalf("%v: %s", err, d)
			}
			for _, choice := range c.Choices {
				said[choice.Index] += choice.Delta.Content
			}
			if len(c.Usage) > 0 {
				if err := json.Unmarshal(c.Usage, &reported); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, choice := range whole.Choices {
			if said[i] != choice.Message.Content {
				t.Fatalf("choice %d: %q whole, %q streamed", i, choice.Message.Content, said[i])
			}
		}
		line := s.Bill().Line("", model)
		if whole.Usage != reported || reported.Total != reported.Prompt+reported.Completion ||
			line.Input != 2*reported.Prompt || line.Output != 2*reported.Completion {
			t.Fatalf("whole %+v, streamed %+v, billed %+v", whole.Usage, reported, line)
		}
	})
}

func FuzzRequestBody(f *testing.F) {
	for _, seed := range []string{body("sim"), body("sim?out=1", asked), `{}`, `{"messages":[{"content":[{"text":"\ud800"}]}]}`, body("sim", `"n":null`), body("sim", `"model":"\u0000"`)} {
		f.Add(seed)
	}
	s := simulator.New(simulator.Options{})
	f.Fuzz(func(t *testing.T, body string) {
		if strings.Contains(body, "=") {
			return // a fuzzer's settings may wait, hang or write for ever
		}
		w := serve(s, "", body)
		all, err := io.ReadAll(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		streams := strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream")
		if !streams && !json.Valid(all) && !strings.Contains(body, "invalid") {
			t.Errorf("%d: %q", w.Code, all)
		}
		if w.Code == 200 && !json.Valid([]byte(strings.ToValidUTF8(body, "?"))) {
			t.Errorf("accepted: %q", body)
		}
	})
}
