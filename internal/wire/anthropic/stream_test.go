// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/anthropic"
	"github.com/weirhq/weir/internal/wire/wiretest"
)

// sse is a stream of events, each named by its type as the protocol has it.
func sse(t *testing.T, events ...string) string {
	t.Helper()
	var out strings.Builder
	for _, text := range events {
		var e struct{ Type string }
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		out.WriteString("event: " + e.Type + "\ndata: " + text + "\n\n")
	}
	return out.String()
}

const (
	start = `{"type":"message_start","message":{"type":"message","model":"claude","content":[],"usage":{"input_tokens":25,"cache_read_input_tokens":7,"cache_creation_input_tokens":null,"output_tokens":1}}}`
	delta = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`
	ping  = `{"type":"ping"}`
	last  = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15}}`
	stop  = `{"type":"message_stop"}`
)

// BR-101, BR-102, USE-1: figures are cumulative, the last of each stands, and one
// that is left out of the last event is the first event's.
func TestTheLastFigureOfEachUsageFieldWins(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []string
		want   call.Usage
		marks  int
	}{
		{"figures of two events", []string{start, delta, ping, last, stop}, call.Usage{Input: 25, CachedInput: 7, Output: 15}, 0},
		{"as BR-102 has it", []string{
			strings.NewReplacer("25", "9", `:7,`, `:1,`).Replace(start), delta, strings.Replace(last, `{"output_tokens":15`, `{"input_tokens":9,"cache_read_input_tokens":1,"output_tokens":16`, 1), stop,
		}, call.Usage{Input: 9, CachedInput: 1, Output: 16}, 0},
		{"several deltas", []string{start, delta, strings.Replace(last, "15", "4", 1), delta, last, stop}, call.Usage{Input: 25, CachedInput: 7, Output: 15}, 0},
		{"the last event repeats all", []string{
			start, delta, strings.Replace(last, `{"output`, `{"input_tokens":25,"cache_read_input_tokens":7,"cache_creation_input_tokens":11,"output`, 1), stop,
		}, call.Usage{Input: 25, CachedInput: 7, CacheWrite5m: 11, Output: 15}, 0},
		{"the last event corrects the input", []string{start, delta, strings.Replace(last, `{"output`, `{"input_tokens":40,"output`, 1), stop}, call.Usage{Input: 40, CachedInput: 7, Output: 15}, 0},
		{"a null usage changes nothing", []string{start, delta, last, `{"type":"message_delta","usage":null}`, stop}, call.Usage{Input: 25, CachedInput: 7, Output: 15}, 0},
		{"writes by their age", []string{
			strings.Replace(start, `"cache_creation_input_tokens":null`, `"cache_creation_input_tokens":50,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":30}`, 1),
			delta, last, stop,
		}, call.Usage{Input: 25, CachedInput: 7, CacheWrite5m: 20, CacheWrite1h: 30, Output: 15}, 0},
		{"cut before its real figures", []string{start, delta}, call.Usage{Input: 25, CachedInput: 7, Output: 2}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Requests = 1
			got := wiretest.Lines(t, anthropic.Messages{}, sse(t, c.events...))
			if got.Usage != c.want || !got.Reported || len(got.Marks) != c.marks || got.Finished != (c.marks == 0) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestAnAbsurdUsageIsNotReported(t *testing.T) { // USE-1
	for _, usage := range []string{
		`{"input_tokens":-1,"output_tokens":1}`, `{"input_tokens":1.5,"output_tokens":1}`, `{"input_tokens":"1","output_tokens":1}`,
		`{"input_tokens":99999999999,"output_tokens":1}`, `{"output_tokens":1}`, `{"input_tokens":1}`, `7`, `{"input_tokens":0,"output_tokens":0}`,
		`{"input_tokens":1,"output_tokens":1,"cache_creation":3}`, `{"input_tokens":1,"output_tokens":1,"server_tool_use":{"web_search_requests":-1}}`,
	} {
		got := anthropic.Messages{}.Whole([]byte(`{"type":"message","content":[{"type":"text","text":"Hi"}],"usage":`+usage+`}`), 0)
		if got.Reported || len(got.Marks) != 1 || got.Marks[0] != call.MarkAbsurd || got.OutputBytes != 2 || !got.Finished {
			t.Errorf("%s: %+v", usage, got)
		}
	}
	got := anthropic.Messages{}.Whole([]byte(`{"type":"message","content":[],"usage":{"input_tokens":2000,"output_tokens":1}}`), 1000)
	if got.Reported {
		t.Errorf("beyond the caller's bound: %+v", got)
	}
}

func TestAnErrorIsNoAnswer(t *testing.T) { // RES-4, ERR-6
	for _, text := range []string{
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, `{"type":"message","error":true}`, `{"type":"message","error":["x"]}`, `{"error":7}`,
	} {
		if got := (anthropic.Messages{}).Whole([]byte(text), 0); !got.ErrorSeen || got.Finished || got.Invalid || got.OutputBytes != 0 {
			t.Errorf("%s: %+v", text, got)
		}
	}
	for _, e := range []string{
		"event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"x\"}}\n\n", "event: error\ndata: x\n\n", "data: {\"type\":\"error\"}\n\n",
	} {
		got := wiretest.Lines(t, anthropic.Messages{}, sse(t, start, delta)+e)
		if !got.ErrorSeen == (e != "event: error\ndata: x\n\n") || got.Finished || got.OutputBytes != 5 {
			t.Errorf("%q: %+v", e, got)
		}
	}
	for _, text := range []string{``, `[]`, `{"type":"message","content":[{"text":"abc`, `{"type":"message"}x`} {
		if got := (anthropic.Messages{}).Whole([]byte(text), 0); !got.Invalid || got.Finished || got.Reported {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestAPingIsNoEvent(t *testing.T) { // DIS-9
	s := anthropic.Messages{}.NewStream(wire.StreamOptions{})
	for text, events := range map[string]int64{sse(t, ping): 0, ": x\n\n": 0} {
		if _, err := s.Feed(nil, []byte(text)); err != nil || s.Events() != events {
			t.Errorf("%q: %d events, %v", text, s.Events(), err)
		}
	}
	if _, err := s.Feed(nil, []byte(sse(t, start))); err != nil || s.Events() != 1 {
		t.Errorf("%d events, %v", s.Events(), err)
	}
}

func TestWhatIsNoEventOfTheProtocolPassesAndShowsNothing(t *testing.T) {
	for _, odd := range []string{
		"data: x\n\n", "data: [1]\n\n", "data:\n\n", "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":9}}}\n\n",
		"event: message_stop\n\n", "data: {\"type\":\"message_stop\"\n\n",
	} {
		got := wiretest.Lines(t, anthropic.Messages{}, sse(t, start, delta)+odd)
		if got.Finished || got.ErrorSeen || got.Usage.Input != 25 || got.Usage.Output != 2 {
			t.Errorf("%q: %+v", odd, got)
		}
	}
}

func TestAnEventLargerThanItsBoundEndsTheStream(t *testing.T) {
	wiretest.TooLarge(t, anthropic.Messages{}, wire.StreamOptions{}, sse(t, ping), sse(t, start))
}

// ERR-1, ERR-6: a refusal and an error event have the protocol's shape.
func TestAFaultHasTheProtocolsShape(t *testing.T) {
	f := fault.New(fault.BudgetExceeded, "budget %q of org is spent", "month")
	f.Details = &fault.Details{LimitID: "lim_1", Scope: "org", Amount: "5"}
	status, contentType, body := anthropic.Messages{}.Fault(f, "req_1")
	want := `{"type":"error","error":{"type":"rate_limit_error","message":"budget \"month\" of org is spent (request req_1)","code":"budget_exceeded",` +
		`"details":{"limit_id":"lim_1","scope":"org","amount":"5","retryable":false,"error_code":"budget_exceeded"}},"request_id":"req_1"}`
	if status != http.StatusTooManyRequests || contentType != "application/json" || string(body) != want {
		t.Errorf("%d %s\n%s\nwant\n%s", status, contentType, body, want)
	}
	event := string(anthropic.Messages{}.NewStream(wire.StreamOptions{}).Fault(f, "req_1"))
	if event != "event: error\ndata: "+want+"\n\n" {
		t.Errorf("the event is %q", event)
	}
	if got := wiretest.Lines(t, anthropic.Messages{}, sse(t, start)+event); !got.ErrorSeen || got.Finished {
		t.Errorf("our own event reads as %+v", got)
	}
	for _, info := range fault.All() {
		status, _, body := anthropic.CountTokens{}.Fault(fault.New(info.Code, "x"), "")
		var got struct {
			Type  string
			Error struct {
				Type, Message, Code string
				Details             struct {
					ErrorCode string `json:"error_code"`
				}
			}
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if status != info.Status || got.Type != "error" || got.Error.Type != fault.TypeFor(info.Status) || got.Error.Code != string(info.Code) ||
			got.Error.Details.ErrorCode != got.Error.Code {
			t.Errorf("%s: %d %s", info.Code, status, body)
		}
	}
}

func TestACountIsAnAnswerWithoutUsage(t *testing.T) { // SPEC section 9
	got := anthropic.CountTokens{}.Whole([]byte(`{"input_tokens":14}`), 0)
	if !got.Finished || !got.Reported || got.Usage != (call.Usage{Requests: 1}) {
		t.Errorf("%+v", got)
	}
	if got = (anthropic.CountTokens{}).Whole([]byte(`{"type":"error","error":{}}`), 0); got.Finished || !got.ErrorSeen {
		t.Errorf("%+v", got)
	}
	if got = (anthropic.CountTokens{}).Whole([]byte(`{"input`), 0); !got.Invalid {
		t.Errorf("%+v", got)
	}
}

func FuzzDoors(f *testing.F) {
	seeds := []string{
		messages.Body("", `"max_tokens":50`, `"stream":true`, `"tools":[{"type":"web_search_20250305","max_uses":2}]`),
		`{"model":"m","messages":[{"role":"user","content":[{"type":"document","source":{"data":"data:x;base64,AAAA","file_id":"f"},"cache_control":{"ttl":"1h"}}]}]}`,
	}
	for _, name := range []string{"answer.json", "stream.txt", "error.txt"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, string(text))
	}
	wiretest.Fuzz(f, []wire.Door{anthropic.Messages{}, anthropic.CountTokens{}}, seeds)
}
