// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/gemini"
	"github.com/weirhq/weir/internal/wire/wiretest"
)

const (
	first = `{"candidates":[{"content":{"parts":[{"text":"Hel]\"{"}]}}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"totalTokenCount":11}}`
	next  = `{"candidates":[{"content":{"parts":[{"text":"lo"}]}}],"usageMetadata":null}`
	ended = `{"candidates":[{"content":{"parts":[{"text":"!"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":5,"thoughtsTokenCount":30,"totalTokenCount":44}}`
)

var arrays = wire.StreamOptions{Call: &call.Call{Stream: true, ArrayStream: true}}

func sse(chunks ...string) string { return "data: " + strings.Join(chunks, "\n\ndata: ") + "\n\n" }

func array(chunks ...string) string { return "[" + strings.Join(chunks, "\n,\r\n") + "\n]" }

// USE-1: usage stands on every chunk, and the last of each figure counts; thoughts
// stand beside the candidates.
func TestTheLastFigureOfEachUsageFieldWins(t *testing.T) {
	want := call.Usage{Input: 9, Output: 35, Reasoning: 30, Requests: 1}
	for name, got := range map[string]call.Observed{
		"events": wiretest.Lines(t, gemini.Generate{Stream: true}, sse(first, next, ended)),
		"array":  wiretest.Everywhere(t, gemini.Generate{Stream: true}, arrays, array(first, next, ended)),
		"apart":  wiretest.Everywhere(t, gemini.Generate{Stream: true}, arrays, " \r\n"+array(first, " ", ended)+" \n"),
	} {
		if got.Usage != want || !got.Finished || got.ErrorSeen || len(got.Marks) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	cut := wiretest.Lines(t, gemini.Generate{Stream: true}, sse(first, next))
	if cut.Finished || cut.Usage.Output != 2 || !cut.Reported {
		t.Errorf("a stream without an end: %+v", cut)
	}
}

// BR-070, BR-073: cached content is a part of the prompt, thoughts are none of the
// candidates.
func TestPublicFaultsReadAsTheyAreBilled(t *testing.T) {
	for _, c := range []struct {
		usage string
		want  call.Usage
	}{
		{`{"promptTokenCount":10000,"cachedContentTokenCount":8000}`, call.Usage{Input: 2000, CachedInput: 8000, Requests: 1}},
		{`{"promptTokenCount":8,"candidatesTokenCount":9,"thoughtsTokenCount":107}`, call.Usage{Input: 8, Output: 116, Reasoning: 107, Requests: 1}},
	} {
		chunk := `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":` + c.usage + `}`
		for _, got := range []call.Observed{gemini.Generate{}.Whole([]byte(chunk), 0), wiretest.Lines(t, gemini.Generate{Stream: true}, sse(chunk))} {
			if got.Usage != c.want || !got.Finished || len(got.Marks) != 0 {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		}
	}
}

// USE-1: a prompt that was blocked is answered, with no candidate.
func TestABlockedPromptIsAnEnd(t *testing.T) {
	const blocked = `{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9}}`
	if got := wiretest.Lines(t, gemini.Generate{Stream: true}, sse(blocked)); !got.Finished || got.Usage.Input != 9 || got.Usage.Output != 0 {
		t.Errorf("%+v", got)
	}
}

func TestAnErrorIsNoAnswer(t *testing.T) { // RES-4, ERR-6
	for _, text := range []string{`{"error":{"code":503}}`, `[{"error":{"code":503}}]`, `{"error":true}`, `{"error":[1],"candidates":[{"content":{"parts":[{"text":"x"}]}}]}`} {
		if got := (gemini.Generate{}).Whole([]byte(text), 0); !got.ErrorSeen || got.Finished || got.Invalid || got.OutputSeen {
			t.Errorf("%s: %+v", text, got)
		}
	}
	const failure = `{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}`
	for name, got := range map[string]call.Observed{
		"event":      wiretest.Lines(t, gemini.Generate{Stream: true}, sse(first, failure)),
		"named":      wiretest.Lines(t, gemini.Generate{Stream: true}, sse(first)+"event: error\ndata: x\n\n"),
		"element":    wiretest.Everywhere(t, gemini.Generate{Stream: true}, arrays, array(first, failure)),
		"no array":   wiretest.Everywhere(t, gemini.Generate{Stream: true}, arrays, failure),
		"only error": wiretest.Everywhere(t, gemini.Generate{Stream: true}, arrays, array(failure)),
		"afterwards": wiretest.Lines(t, gemini.Generate{Stream: true}, sse(first, failure, ended)),
	} {
		if !got.ErrorSeen || got.Finished {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, text := range []string{``, `7`, `{"candidates":[{"content":{"parts":[{"text":"abc`, `{}x`} {
		if got := (gemini.Generate{}).Whole([]byte(text), 0); !got.Invalid || got.Finished || got.Reported {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestAnAbsurdUsageIsNotReported(t *testing.T) { // USE-1
	for _, usage := range []string{
		`{"promptTokenCount":-1,"candidatesTokenCount":1}`, `{"promptTokenCount":1.5}`, `{"promptTokenCount":"1"}`, `{"promptTokenCount":99999999999}`,
		`{"totalTokenCount":5}`, `7`, `{"promptTokenCount":0}`,
	} {
		got := gemini.Generate{}.Whole([]byte(`{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":1}],"usageMetadata":`+usage+`}`), 0)
		if got.Reported || len(got.Marks) != 1 || got.Marks[0] != call.MarkAbsurd || got.OutputBytes != 2 || !got.Finished {
			t.Errorf("%s: %+v", usage, got)
		}
	}
}

func TestAnEventLargerThanItsBoundEndsTheStream(t *testing.T) {
	wiretest.TooLarge(t, gemini.Generate{Stream: true}, wire.StreamOptions{}, sse(`{}`), sse(first))
	wiretest.TooLarge(t, gemini.Generate{Stream: true}, arrays, `[{}`, ","+first)
}

// ERR-6: wherever an array breaks off, what the client has is JSON, whose last
// element is our error.
func TestAnArrayThatBreaksOffEndsAsJSON(t *testing.T) {
	f := fault.New(fault.UpstreamTimeout, "no more")
	for _, text := range []string{array(first, next, ended), array(), "\n " + array(next), first} {
		for i := range len(text) {
			s := gemini.Generate{Stream: true}.NewStream(arrays)
			out, err := s.Feed(nil, []byte(text[:i]))
			if err != nil {
				t.Fatal(err)
			}
			_ = s.Close(nil)
			end := s.Fault(f, "req_1")
			var got []struct {
				Error *struct{ Code int }
			}
			if err := json.Unmarshal(append(out, end...), &got); err != nil {
				t.Fatalf("cut at %d: %v in %s%s", i, err, out, end)
			}
			if n := len(got); n == 0 || got[n-1].Error == nil || got[n-1].Error.Code != http.StatusGatewayTimeout {
				t.Fatalf("cut at %d: no error at the end of %s%s", i, out, end)
			}
		}
	}
}

func TestAnArrayThatIsTooLargeEndsAsJSON(t *testing.T) { // ERR-6
	o := arrays
	o.MaxEventBytes = len(next) + 4
	s := gemini.Generate{Stream: true}.NewStream(o)
	out, err := s.Feed(nil, []byte(array(next, first)))
	out = append(out, s.Fault(fault.New(fault.UpstreamInvalid, "x"), "")...)
	var got []json.RawMessage
	if bad := json.Unmarshal(out, &got); err == nil || bad != nil || len(got) != 2 || string(got[0]) != next {
		t.Errorf("%v, %v: %s", err, bad, out)
	}
}

// ERR-1, ERR-6: a refusal and an error event have the protocol's shape.
func TestAFaultHasTheProtocolsShape(t *testing.T) {
	f := fault.New(fault.APIKeyRPMExceeded, "too many")
	f.RetryAfterSeconds = 7
	f.Details = &fault.Details{LimitID: "lim_1", Scope: "key", Amount: "5", Retryable: true}
	status, contentType, body := gemini.Generate{}.Fault(f, "req_1")
	want := `{"error":{"code":429,"message":"too many (request req_1)","status":"RESOURCE_EXHAUSTED","details":[` +
		`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"api_key_rpm_exceeded","domain":"weir","metadata":{"amount":"5","limit_id":"lim_1","request_id":"req_1","retryable":"true","scope":"key"}},` +
		`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}]}}`
	if status != http.StatusTooManyRequests || contentType != "application/json" || string(body) != want {
		t.Errorf("%d %s\n%s\nwant\n%s", status, contentType, body, want)
	}
	s := gemini.Generate{Stream: true}.NewStream(wire.StreamOptions{})
	if event := string(s.Fault(f, "req_1")); event != "data: "+want+"\n\n" {
		t.Errorf("the event is %q", event)
	} else if got := wiretest.Lines(t, gemini.Generate{Stream: true}, sse(first)+event); !got.ErrorSeen || got.Finished {
		t.Errorf("our own event reads as %+v", got)
	}
	for _, info := range fault.All() {
		status, _, body := gemini.CountTokens{}.Fault(fault.New(info.Code, "x"), "")
		var got struct {
			Error struct {
				Code            int
				Message, Status string
				Details         []struct{ Reason string }
			}
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if status != info.Status || got.Error.Code != status || got.Error.Status == "" || got.Error.Details[0].Reason != string(info.Code) {
			t.Errorf("%s: %d %s", info.Code, status, body)
		}
	}
}

func TestACountIsAnAnswerWithoutUsage(t *testing.T) { // SPEC section 9
	got := gemini.CountTokens{}.Whole([]byte(`{"totalTokens":14}`), 0)
	if !got.Finished || !got.Reported || got.Usage != (call.Usage{Requests: 1}) {
		t.Errorf("%+v", got)
	}
}

func FuzzDoors(f *testing.F) {
	seeds := []string{
		generate.Body("", `"generationConfig":{"maxOutputTokens":50,"candidateCount":2}`, `"tools":[{"googleSearch":{}}]`), embed.Body(""), batch.Body(""),
		`{"generate_content_request":{"model":"models/m","contents":[{"parts":[{"fileData":{"fileUri":"files/2"},"inlineData":{"data":"AAAA"}}]}]}}`,
		first, array(next, ended), sse(first),
	}
	for _, name := range []string{"answer.json", "stream.txt", "array.json"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, string(text))
	}
	wiretest.Fuzz(f, []wire.Door{gemini.Generate{}, gemini.Generate{Stream: true}, gemini.CountTokens{}, gemini.Embed{}, gemini.EmbedBatch{}}, seeds)
}

// ERR-2, ERR-3: a day's budget that is spent is Google's own quota failure, which its
// programs do not repeat; what is not spent, or said with 402, is none.
func TestADaysBudgetThatIsSpentIsAQuotaFailure(t *testing.T) {
	spent := func(code fault.Code, window string, change func(*fault.Fault)) *fault.Fault {
		f := fault.New(code, "spent")
		f.NoRetry, f.Details = true, &fault.Details{Metric: "spend", Window: window}
		change(f)
		return f
	}
	same := func(*fault.Fault) {}
	const failure = `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"spend","quotaId":"BudgetPerDay","description":"spent"}]}`
	for _, c := range []struct {
		name string
		f    *fault.Fault
		want bool
	}{
		{"a day", spent(fault.BudgetExceeded, "day", same), true},
		{"24 hours", spent(fault.BudgetExceeded, "1d", same), true},
		{"a month", spent(fault.BudgetExceeded, "month", same), false},
		{"a minute's tokens", spent(fault.APIKeyTPMExceeded, "minute", same), false},
		{"a cap, with 402", spent(fault.DayLimitReached, "day", same), false},
		{"a budget with 402 (ERR-7)", spent(fault.BudgetExceeded, "day", func(f *fault.Fault) { f.Status = http.StatusPaymentRequired }), false},
		{"held amounts", spent(fault.BudgetExceeded, "day", func(f *fault.Fault) { f.NoRetry = false }), false},
		{"no limit named", spent(fault.BudgetExceeded, "day", func(f *fault.Fault) { f.Details = nil }), false},
	} {
		_, _, body := gemini.Generate{}.Fault(c.f, "")
		if got := strings.Contains(string(body), failure); got != c.want {
			t.Errorf("%s: %s", c.name, body)
		}
	}
}
