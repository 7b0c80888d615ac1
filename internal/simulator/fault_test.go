// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirhq/weir/internal/simulator"
)

// The prompt has 3 tokens, the answer 12 in 3 events. RES-4 is what the bill's
// rule is made for: nothing for a failure before output, else what was produced.
func TestAnAnswerBreaksOffWhereAndHowItIsTold(t *testing.T) {
	r := start(t, simulator.Options{})
	for _, c := range []struct {
		at             string
		events         int   // content events that arrive
		usage          bool  // usage arrives in the stream
		whole          int   // bytes of text that arrive in a whole answer, -1: no headers
		output, wholly int64 // billed
	}{
		{"headers", 0, false, -1, 0, 0},
		{"after:0", 0, false, 0, 0, 0},
		{"after:2", 2, false, 32, 8, 8},
		{"usage", 3, false, 48, 12, 12},
		{"done", 3, true, 48, 12, 12},
	} {
		for _, manner := range []string{"cut", "close", "end", "error"} {
			if manner == "error" && c.at == "headers" {
				continue
			}
			t.Run(manner+"="+c.at, func(t *testing.T) {
				r.Reset()
				model := "sim?out=12&" + manner + "=" + c.at
				_, _, text, err := r.ask(body(model, asked))
				orderly := manner == "end" || manner == "error"
				if orderly != (err == nil) {
					t.Fatalf("stream: %v", err)
				}
				if n := strings.Count(text, `"delta":{"content":"`); n != c.events || strings.Contains(text, "[DONE]") {
					t.Errorf("%d content events: %s", n, text)
				}
				if got := strings.Contains(text, `"choices":[],"usage":{`); got != c.usage {
					t.Errorf("usage arrived: %v", got)
				}
				if manner == "error" && !strings.HasPrefix(events(text)[len(events(text))-1], `{"error":{`) {
					t.Errorf("no error event: %s", text)
				}
				checkBroken(t, r, model, c.output)

				r.Reset()
				_, _, text, err = r.ask(body(model))
				if orderly != (err == nil) {
					t.Fatalf("whole: %v", err)
				}
				_, said, _ := strings.Cut(text, `"content":"`)
				said, _, _ = strings.Cut(said, `"`)
				wholly, length := c.wholly, max(c.whole, 0)
				if manner == "error" {
					wholly, length = 0, 0
				}
				if len(said) != length || json.Valid([]byte(text)) != (manner == "error") {
					t.Errorf("whole: %q", text)
				}
				checkBroken(t, r, model, wholly)
			})
		}
	}
}

func checkBroken(t *testing.T, r *rig, model string, output int64) {
	t.Helper()
	line := r.Bill().Line(apiKey, model)
	var input int64
	if output > 0 {
		input = 3
	}
	if line.Broken != 1 || line.Output != output || line.Input != input {
		t.Errorf("bill: %+v, want %d and %d", line, input, output)
	}
}

func TestErrorsAreShapedAndFree(t *testing.T) {
	r := start(t, simulator.Options{})
	for _, c := range []struct {
		name, model, more string
		status            int
		has               string
		input, output     int64
	}{
		{"a status", "sim?status=503&in=5", "", 503, `"type":"server_error"`, 0, 0},
		{"a status in a stream", "sim?status=400", streamed, 400, `"type":"invalid_request_error"`, 0, 0},
		{"usage with an error", "sim?status=500&usage=always&in=5&out=6", "", 500, `"usage":{"prompt_tokens":5,`, 5, 6},
		{"the credential repeated", "sim?echo", "", 401, apiKey, 0, 0},
		{"the credential repeated with a status", "sim?echo&status=500", streamed, 500, apiKey, 0, 0},
		{"a field refused", "sim?refuse=stream_options", asked, 400, `"param":"stream_options"`, 0, 0},
		{"max_tokens refused", "sim?refuse=max_tokens", `"max_tokens":5`, 400, `"param":"max_tokens"`, 0, 0},
		{"a refused field that is absent", "sim?out=5&refuse=max_tokens", `"max_completion_tokens":5`, 200, `"usage"`, 3, 5},
		{"an error in the stream with the credential", "sim?echo&error=after:0", streamed, 200, apiKey, 0, 0},
		{"broken JSON", "sim?invalid&out=5", "", 200, `}]`, 3, 5},
		{"a free answer", "sim?free&out=5", "", 200, `"usage"`, 0, 0},
		{"an error that is compressed only when asked", "sim?gzip&status=500", "", 500, `"error"`, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.Reset()
			more := []string{}
			if c.more != "" {
				more = append(more, c.more)
			}
			status, _, text, err := r.ask(body(c.model, more...))
			if err != nil || status != c.status || !strings.Contains(text, c.has) {
				t.Errorf("%d, %v: %s", status, err, text)
			}
			if status >= 400 && !json.Valid([]byte(text)) {
				t.Errorf("not JSON: %s", text)
			}
			if line := r.Bill().Line(apiKey, c.model); line.Input != c.input || line.Output != c.output || line.Requests != 1 {
				t.Errorf("bill: %+v", line)
			}
		})
	}
}

func TestBadRequestsAreRefusedInTheProtocolsShapeAndNotBilled(t *testing.T) {
	r := start(t, simulator.Options{MaxBodyBytes: 1_000})
	for _, c := range []struct {
		name, body string
		status     int
		code       string
	}{
		{"nothing", ``, 400, "invalid_json"},
		{"no object", `[]`, 400, "invalid_value"},
		{"half an object", `{"model":"sim"`, 400, "invalid_json"},
		{"two objects", body("sim") + `{}`, 400, "invalid_json"},
		{"no model", `{"messages":[{"content":"x"}]}`, 400, "invalid_value"},
		{"no messages", `{"model":"sim"}`, 400, "invalid_value"},
		{"empty messages", `{"model":"sim","messages":[]}`, 400, "invalid_value"},
		{"messages of another kind", `{"model":"sim","messages":7}`, 400, "invalid_value"},
		{"a message of another kind", `{"model":"sim","messages":["x"]}`, 400, "invalid_value"},
		{"a model of another kind", `{"model":7,"messages":[{}]}`, 400, "invalid_value"},
		{"a bound of zero", body("sim", `"max_tokens":0`), 400, "invalid_value"},
		{"a fraction as bound", body("sim", `"max_tokens":1.5`), 400, "invalid_value"},
		{"a string as bound", body("sim", `"max_completion_tokens":"5"`), 400, "invalid_value"},
		{"too many completions", body("sim", `"n":129`), 400, "invalid_value"},
		{"stream as a string", body("sim", `"stream":"yes"`), 400, "invalid_value"},
		{"stream options without a stream", body("sim", `"stream_options":{}`), 400, "invalid_value"},
		{"an answer too large", body("sim?bytes=16777216", `"n":5`), 400, "invalid_value"},
		{"an unknown setting", body("sim?nonsense=1"), 400, "invalid_model_script"},
		{"a large body", body("sim", `"x":"`+strings.Repeat("x", 1_000)+`"`), 413, "request_too_large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, _, text, err := r.ask(c.body)
			var answer struct {
				Error struct{ Message, Type, Code string }
			}
			if err := json.Unmarshal([]byte(text), &answer); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if err != nil || status != c.status || answer.Error.Code != c.code || answer.Error.Type == "" {
				t.Errorf("%d, %v: %s", status, err, text)
			}
		})
	}
	for path, want := range map[string]int{"/v1/chat/completions": 405, "/v1/nothing": 404, "/v1//models": 404} {
		a, err := r.http.Get(r.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != want {
			t.Errorf("GET %s: %d", path, a.StatusCode)
		}
	}
	if b := r.Bill(); b.Requests != 0 || b.Refused != 22 || len(b.Lines) != 0 {
		t.Errorf("bill: %+v", b)
	}
}

func TestAClientThatGoesIsSeenAndBilledWhatWasProduced(t *testing.T) {
	var at atomic.Int64
	r := start(t, simulator.Options{Now: func() int64 { return at.Add(1_000) }})
	gate := simulator.NewGate()
	hang := func(p simulator.Point) simulator.Behaviour {
		return simulator.Behaviour{Break: simulator.Break{Manner: simulator.BreakHang, At: p}}
	}
	wait := func(p simulator.Point) simulator.Behaviour {
		return simulator.Behaviour{Gates: []simulator.GateAt{{At: p, Gate: gate}}}
	}
	for _, c := range []struct {
		name, more    string
		b             simulator.Behaviour
		reads         int // content events, or bytes of a whole answer, that the client reads before it goes
		input, output int64
	}{
		{"in a stream", streamed, hang(simulator.AfterEvents(2)), 2, 3, 8},
		{"before any output of a stream that hangs", streamed, hang(simulator.AfterEvents(0)), 0, 0, 0},
		{"a provider that never answers", `"n":1`, hang(simulator.BeforeHeaders()), 0, 0, 0},
		{"in the middle of a whole answer", `"n":1`, hang(simulator.BeforeUsage()), 100, 3, 12},
		{"while a stream waits at a gate", streamed, wait(simulator.AfterEvents(1)), 1, 3, 4},
		{"before the headers of a stream", streamed, wait(simulator.BeforeHeaders()), 0, 3, 0},
		{"before the headers of a whole answer", `"n":1`, wait(simulator.BeforeHeaders()), 0, 3, 12},
		{"during the latency of a stream", streamed, simulator.Behaviour{Latency: time.Minute}, 0, 3, 0},
		{"during a gap", streamed, simulator.Behaviour{Gap: time.Minute}, 0, 3, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.Reset()
			c.b.Output = simulator.Exactly(12)
			r.SetScript(func(simulator.Request) simulator.Behaviour { return c.b })
			client := r.leaver(body("sim", c.more), c.reads)
			r.await(func(t simulator.Totals) bool { return t.InFlight == 1 && t.Held == int64(len(c.b.Gates)) })
			<-client.ready
			closed := at.Load()
			client.leave()
			r.await(func(t simulator.Totals) bool { return t.Gone == 1 && t.InFlight == 0 && t.Held == 0 })
			bill := r.Bill()
			if bill.Input != c.input || bill.Output != c.output || bill.Line(apiKey, "sim").Gone != 1 {
				t.Errorf("bill: %+v", bill)
			}
			if d, ok := bill.Log[0].SawCloseAfter(closed); !ok || d <= 0 || bill.Log[0].Outcome != simulator.Gone {
				t.Errorf("log: %+v, after %v", bill.Log[0], d)
			}
		})
	}
}

// leaver is a client that goes away when it is told to.
type leaver struct {
	ready chan struct{} // closed once it has read what it wanted
	done  chan struct{}
	stop  context.CancelFunc
}

func (r *rig) leaver(body string, reads int) *leaver {
	ctx, stop := context.WithCancel(r.t.Context())
	l := &leaver{ready: make(chan struct{}), done: make(chan struct{}), stop: stop}
	if reads == 0 {
		close(l.ready)
	}
	go func() {
		defer close(l.done)
		a, err := r.post(ctx, body)
		if err != nil {
			return
		}
		defer a.Body.Close()
		streams := strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream")
		var text []byte
		for one := make([]byte, 1); ; {
			if _, err := a.Body.Read(one); err != nil {
				return
			}
			text = append(text, one[0])
			n := len(text)
			if streams {
				n = 0
				if one[0] == '\n' {
					n = strings.Count(string(text), `"delta":{"content":"`)
				}
			}
			if reads > 0 && n == reads {
				close(l.ready)
				reads = 0
			}
		}
	}()
	return l
}

func (l *leaver) leave() {
	l.stop()
	<-l.done
}

// BR-114: a provider that ignores that its client has gone goes on to the end.
func TestAProviderThatIgnoresItsClientsLeavingBillsTheWholeAnswer(t *testing.T) {
	r := start(t, simulator.Options{})
	gate := simulator.NewGate()
	r.SetScript(func(q simulator.Request) simulator.Behaviour {
		b := q.Scripted
		b.Gates = []simulator.GateAt{{At: simulator.AfterEvents(1), Gate: gate}}
		return b
	})
	const model = "sim?in=1000&out=4000&ignore"
	client := r.leaver(body(model, streamed), 1)
	<-client.ready
	client.leave()
	r.await(func(t simulator.Totals) bool { return t.Gone == 1 && t.Held == 1 })
	if b := r.Bill(); b.InFlight != 1 || b.Input != 0 {
		t.Errorf("bill while it goes on: %+v", b.Totals)
	}
	gate.Open()
	r.idle()
	if line := r.Bill().Line(apiKey, model); line.Input != 1_000 || line.Output != 4_000 {
		t.Errorf("bill: %+v", line)
	}
}

func TestStopEndsEveryExchange(t *testing.T) {
	r := start(t, simulator.Options{})
	var clients []*leaver
	for _, b := range []simulator.Behaviour{
		{Latency: time.Minute},
		{Latency: time.Minute, Ignore: true},
		{Break: simulator.Break{Manner: simulator.BreakHang, At: simulator.BeforeHeaders()}},
		{Break: simulator.Break{Manner: simulator.BreakHang, At: simulator.BeforeHeaders()}, Ignore: true},
	} {
		clients = append(clients, r.leaver(body(b.Model("sim"), streamed), 0))
	}
	r.await(func(t simulator.Totals) bool { return t.InFlight == 4 })
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range clients {
		<-c.done
		c.stop()
	}
	if b := r.Bill(); b.InFlight != 0 || b.Requests != 4 {
		t.Errorf("bill: %+v", b.Totals)
	}
	if r.Start() == nil {
		t.Error("it started again")
	}
}

func TestHeldRequestsGoWhenTheTestSaysSo(t *testing.T) {
	r := start(t, simulator.Options{})
	r.Hold()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if status, _, _, err := r.ask(body("sim?in=1&out=2")); status != 200 {
				t.Errorf("%d, %v", status, err)
			}
		})
	}
	r.await(func(t simulator.Totals) bool { return t.Held == 16 })
	r.ReleaseSome(5)
	r.await(func(t simulator.Totals) bool { return t.Held == 11 && t.InFlight == 11 })
	if b := r.Bill(); b.MaxInFlight != 16 || b.OpenConnections != 16 || b.Input != 5 || b.Output != 10 {
		t.Errorf("bill: %+v", b.Totals)
	}
	r.Release()
	all.Wait()
	if b := r.Bill(); b.InFlight != 0 || b.Requests != 16 || b.Input != 16 || b.Output != 32 {
		t.Errorf("bill: %+v", b.Totals)
	}
}

func TestLatencyAndGapsUseTheGivenTimer(t *testing.T) {
	var waits []time.Duration
	r := start(t, simulator.Options{Wait: func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}})
	const latency, gap = 300 * time.Millisecond, 5 * time.Millisecond
	for _, c := range []struct {
		model, more string
		want        []time.Duration
	}{
		{"sim?latency=300ms", `"n":1`, []time.Duration{latency}},
		{"sim?latency=300ms&status=500", streamed, []time.Duration{latency}},
		{"sim?latency=300ms&gap=5ms&out=5", streamed, []time.Duration{latency, gap, gap, gap, gap}}, // role | 2 contents, finish, [DONE]
		{"sim?gap=5ms&out=5&join=2", asked, []time.Duration{gap, gap}},                              // six events in three writes
	} {
		waits = nil
		if _, _, _, err := r.ask(body(c.model, c.more)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(waits, c.want) {
			t.Errorf("%s: waited %v, want %v", c.model, waits, c.want)
		}
	}
}

// recorder keeps each flushed piece apart.
type recorder struct {
	*httptest.ResponseRecorder
	pieces []string
	seen   int
}

func (r *recorder) Flush() {
	all := r.Body.String()
	r.pieces = append(r.pieces, all[r.seen:])
	r.seen = len(all)
}

// BR-099, BR-100: an event in several writes, several events in one.
func TestEventsAreSplitAndJoined(t *testing.T) {
	s := simulator.New(simulator.Options{})
	var whole string
	for _, c := range []struct {
		model  string
		pieces int
	}{
		{"sim?out=8", 6}, // role, two contents, finish, usage, [DONE]
		{"sim?out=8&split=4", 24},
		{"sim?out=8&join=3", 2},
		{"sim?out=8&join=1000", 1},
		{"sim?out=8&join=1000&split=7", 7},
	} {
		w := &recorder{ResponseRecorder: httptest.NewRecorder()}
		q := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body(c.model, asked)))
		s.ServeHTTP(w, q)
		if whole == "" {
			whole = w.Body.String()
		}
		if len(w.pieces) != c.pieces || w.Body.String() != whole || strings.Join(w.pieces, "") != whole {
			t.Errorf("%s: %d pieces: %q", c.model, len(w.pieces), w.pieces)
		}
	}
}

// What the packed answer of a provider that packs unasked says is plain.
func TestAnswersAreCompressedOnlyForClientsThatAskForIt(t *testing.T) {
	r := start(t, simulator.Options{})
	for _, more := range []string{`"n":1`, streamed} {
		for _, model := range []string{"sim?out=30", "sim?out=30&gzip", "sim?out=30&pack"} {
			for _, accepts := range []string{"identity", "gzip"} {
				_, h, text, err := r.ask(body(model, more), "Accept-Encoding", accepts)
				zipped := h.Get("Content-Encoding") == "gzip"
				if want := strings.HasSuffix(model, "pack") || strings.HasSuffix(model, "gzip") && accepts == "gzip"; err != nil || zipped != want {
					t.Fatalf("%s to %s: %v, %v", model, accepts, h, err)
				}
				if zipped {
					z, err := gzip.NewReader(strings.NewReader(text))
					if err != nil {
						t.Fatal(err)
					}
					plain, err := io.ReadAll(z)
					if err != nil {
						t.Fatal(err)
					}
					text = string(plain)
				}
				if !strings.Contains(text, "Lorem ipsum") {
					t.Errorf("%s to %s: %s", model, accepts, text)
				}
			}
		}
	}
}

func TestTheScriptSeesTheRequestAndDecides(t *testing.T) {
	r := start(t, simulator.Options{})
	var seen []any
	r.SetScript(func(q simulator.Request) simulator.Behaviour {
		seen = []any{q.Key, q.Model, q.Name, q.Stream, q.IncludeUsage, q.OutputBound, q.Completions, q.Messages, q.TextBytes, q.Header.Get("X-Odd"), len(q.Body)}
		return simulator.Behaviour{
			Output: q.Scripted.Output, Status: 418, Message: "short and \"stout\"",
			Header: http.Header{"X-Ratelimit-Limit": {"1"}, "Set-Cookie": {"a=b"}},
		}
	})
	sent := `{"max_tokens":9,"max_completion_tokens":8,"n":2,"tools":[{"content":"no"}],"messages":[{"role":"system","content":"h\u00e9"},` +
		`{"role":"user","content":[{"type":"text","text":"abc"},{"type":"image_url","image_url":{"url":"text"}}]},{"content":null}],` +
		`"stream":true,"stream_options":{"include_usage":true,"x":[]},"mod\u0065l":"sim?out=3"}`
	status, h, text, err := r.ask(sent, "X-Odd", "yes")
	if err != nil || status != 418 || h.Get("X-Ratelimit-Limit") != "1" || h.Get("Set-Cookie") != "a=b" || !strings.Contains(text, `short and \"stout\"`) {
		t.Errorf("%d, %v, %v: %s", status, err, h, text)
	}
	want := []any{apiKey, "sim?out=3", "sim", true, true, int64(8), int64(2), int64(3), int64(6), "yes", len(sent)}
	if d := cmp.Diff(want, seen); d != "" {
		t.Error(d)
	}
	r.SetScript(func(simulator.Request) simulator.Behaviour { return simulator.Behaviour{Split: -1} })
	if status, _, text, _ := r.ask(body("sim")); status != 400 || !strings.Contains(text, "invalid_model_script") {
		t.Errorf("%d: %s", status, text)
	}
	r.SetScript(nil)
	if status, _, _, _ := r.ask(body("sim")); status != 200 {
		t.Errorf("status %d without a script", status)
	}
}
