// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/openai"
)

// run feeds the pieces and closes.
func run(t *testing.T, options wire.StreamOptions, pieces ...string) (string, call.Observed) {
	t.Helper()
	s := openai.Chat{}.NewStream(options)
	var out []byte
	for _, p := range pieces {
		var err error
		if out, err = s.Feed(out, []byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	out = s.Close(out)
	return string(out), s.Observed()
}

// everywhere checks that no way of cutting the stream in two, nor feeding it
// byte by byte, changes what is forwarded or observed.
func everywhere(t *testing.T, options wire.StreamOptions, stream, wantOut string, want call.Observed) {
	t.Helper()
	check := func(how int, pieces ...string) {
		out, got := run(t, options, pieces...)
		if out != wantOut {
			t.Fatalf("cut %d: forwarded\n%q\nwant\n%q", how, out, wantOut)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("cut %d: observed\n%+v\nwant\n%+v", how, got, want)
		}
	}
	for i := range len(stream) + 1 {
		check(i, stream[:i], stream[i:])
	}
	check(-1, strings.Split(stream, "")...)
}

const (
	chunkHi     = `{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}`
	chunkFinish = `{"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	chunkUsage  = `{"model":"m","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":500,"total_tokens":520,"completion_tokens_details":{"reasoning_tokens":480}}}`
)

func reported(bytes int64) call.Observed {
	return call.Observed{
		Usage:    call.Usage{Input: 20, Output: 500, Reasoning: 480, Requests: 1},
		Reported: true, OutputBytes: bytes, OutputSeen: bytes > 0, Finished: true, Model: "m",
	}
}

func sse(chunks ...string) string {
	return "data: " + strings.Join(chunks, "\n\ndata: ") + "\n\n"
}

// BR-097: the gateway asked for usage, the client did not: it gets the bytes of
// a stream that nobody asked.
func TestUsageThatOnlyTheGatewayAskedForIsHidden(t *testing.T) {
	withNull := func(chunk string) string { return strings.TrimSuffix(chunk, "}") + `,"usage":null}` }
	asked := sse(withNull(chunkHi), withNull(chunkFinish), chunkUsage, "[DONE]")
	plain := sse(chunkHi, chunkFinish, "[DONE]")
	everywhere(t, wire.StreamOptions{HideUsage: true}, asked, plain, reported(2))
	everywhere(t, wire.StreamOptions{}, asked, asked, reported(2))
}

func TestOnlyTheUsageMemberIsCutFromAChunk(t *testing.T) {
	const choices = `"choices":[{"delta":{"content":"Hi"}}]`
	for _, c := range []struct{ in, want string }{
		{`{` + choices + `,"usage":null,"obfuscation":"x"}`, `{` + choices + `,"obfuscation":"x"}`},
		{`{` + choices + ` , "usage" : null , "obfuscation":"x"}`, `{` + choices + ` , "obfuscation":"x"}`},
		{`{"usage":null, ` + choices + `}`, `{` + choices + `}`},
		{`{ "usage":null }`, `{  }`},
		{`{"usage":null,"usage":null,` + choices + `}`, `{` + choices + `}`},
		{`{` + choices + `,"usage":null,"usage":null}`, `{` + choices + `}`},
		{`{` + choices + `,"usage":{"prompt_tokens":1,"completion_tokens":2}}`, `{` + choices + `}`},
		{`{"choices":[],"prompt_filter_results":[1],"usage":null}`, `{"choices":[],"prompt_filter_results":[1]}`},
		{`{"choices":[{"delta":{"usage":null}}]}`, `{"choices":[{"delta":{"usage":null}}]}`},
		{`{"error":{"message":"x"},"choices":[],"usage":{"prompt_tokens":1}}`, `{"error":{"message":"x"},"choices":[]}`},
	} {
		out, _ := run(t, wire.StreamOptions{HideUsage: true}, sse(c.in))
		if want := sse(c.want); out != want {
			t.Errorf("got  %q\nwant %q", out, want)
		}
	}
}

// BR-099: where the network cuts is nobody's usage.
func TestAUsageEventMayComeApartFromItsEnd(t *testing.T) {
	everywhere(t, wire.StreamOptions{}, sse(chunkUsage, "[DONE]"), sse(chunkUsage, "[DONE]"), reported(0))
}

// BR-100: the neighbours of a chunk that is withheld keep their framing,
// whatever it is.
func TestEveryEventKeepsItsFraming(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		lines := func(lines ...string) string { return strings.Join(lines, end) + end }
		before := lines(": ping", "", "event: message", "id: 7", "data:"+chunkHi, "retry: 5", "", "", "data: "+chunkFinish, "")
		usage := lines(": with usage", "data: "+chunkUsage, "")
		after := lines("data: [DONE]", "", ": bye", "")
		everywhere(t, wire.StreamOptions{HideUsage: true}, before+usage+after, before+after, reported(2))
		everywhere(t, wire.StreamOptions{}, before+usage+after, before+usage+after, reported(2))
	}
}

func TestAChunkOnSeveralLinesIsOneChunk(t *testing.T) {
	in := "data: {\"model\":\"m\",\r\ndata: \"choices\":[{\"delta\":{\"content\":\"Hi\"}}],\r\ndata:\"usage\":\r\ndata: {\"prompt_tokens\":20,\"completion_tokens\":500,\r\n" +
		"data: \"completion_tokens_details\":{\"reasoning_tokens\":480}}\r\ndata: }\r\n\r\ndata: [DONE]\r\n\r\n"
	want := "data: {\"model\":\"m\",\r\ndata: \"choices\":[{\"delta\":{\"content\":\"Hi\"}}]\r\ndata: }\r\n\r\ndata: [DONE]\r\n\r\n"
	everywhere(t, wire.StreamOptions{HideUsage: true}, in, want, reported(2))
	everywhere(t, wire.StreamOptions{}, in, in, reported(2))
}

// BR-104: usage on every chunk is cumulative; what a later one leaves out stays.
func TestTheLastFigureOfEachUsageFieldWins(t *testing.T) {
	chunk := func(usage string) string {
		return `{"model":"m","choices":[{"delta":{"content":"x"}}],"usage":` + usage + `}`
	}
	stream := sse(
		chunk(`{"prompt_tokens":36,"completion_tokens":8,"prompt_tokens_details":{"cached_tokens":6}}`),
		chunk(`{"prompt_tokens":36,"completion_tokens":16}`), chunk(`null`),
		chunk(`{"completion_tokens":24}`), chunk(`{"prompt_tokens":36,"completion_tokens":32,"total_tokens":68}`), "[DONE]")
	everywhere(t, wire.StreamOptions{}, stream, stream, call.Observed{
		Usage:    call.Usage{Input: 30, CachedInput: 6, Output: 32, Requests: 1},
		Reported: true, OutputBytes: 5, OutputSeen: true, Finished: true, Model: "m",
	})
}

func TestALaterFitFigureReplacesAnAbsurdOne(t *testing.T) {
	stream := sse(`{"usage":{"prompt_tokens":-1,"completion_tokens":0}}`, `{"usage":{"prompt_tokens":5,"completion_tokens":2}}`)
	if _, got := run(t, wire.StreamOptions{}, stream); !got.Reported || got.Usage.Tokens() != 7 {
		t.Errorf("got %+v", got)
	}
}

// BR-112: no usage at all: the bytes of output are there for the estimate.
func TestAStreamWithoutUsageHasItsOutputCounted(t *testing.T) {
	chunk := `{"choices":[{"delta":{"content":"` + strings.Repeat("é", 150) + `"}}]}`
	_, got := run(t, wire.StreamOptions{HideUsage: true}, sse(chunk, chunk, chunk, "[DONE]"))
	if got.Reported || got.OutputBytes != 900 || !got.Finished || call.TextTokens(got.OutputBytes, 0) != 300 {
		t.Errorf("got %+v", got)
	}
}

// BR-038, BR-118b: an error inside a stream is forwarded, and is no output.
func TestAnErrorsTextIsNeverOutput(t *testing.T) {
	text := strings.Repeat("x", 2000)
	for _, c := range []string{
		"data: {\"error\":{\"message\":\"" + text + "\"}}\n\n",
		"event: error\ndata: {\"message\":\"" + text + "\"}\n\n",
		"event: error\ndata: " + text + "\n\n",
		"event: error\ndata: {\"choices\":[{\"delta\":{\"content\":\"" + text + "\"}}]}\n\n",
		"data: {\"error\":\"" + text + "\",\"choices\":[{\"delta\":{\"content\":\"" + text + "\"},\"finish_reason\":\"error\"}]}\n\n",
		"data: {\"object\":\"error\",\"message\":\"" + text + "\"}\n\n",
	} {
		out, got := run(t, wire.StreamOptions{HideUsage: true}, c)
		if out != c {
			t.Errorf("forwarded %.80q", out)
		}
		if !got.ErrorSeen || got.OutputBytes != 0 || got.OutputSeen || got.Reported || got.Finished {
			t.Errorf("%.80q: got %+v", c, got)
		}
	}
}

func TestOutputBeforeAnErrorStays(t *testing.T) {
	_, got := run(t, wire.StreamOptions{}, sse(chunkHi, `{"error":{"message":"broke"}}`))
	if !got.ErrorSeen || got.OutputBytes != 2 || !got.OutputSeen {
		t.Errorf("got %+v", got)
	}
}

func TestAStreamEndsAsItsBytesEnd(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		hide, finished bool
		reported       bool
	}{
		{"DONE without an empty line", sse(chunkHi) + "data: [DONE]", sse(chunkHi) + "data: [DONE]", true, true, false},
		{"no DONE after the finish", sse(chunkHi, chunkFinish), sse(chunkHi, chunkFinish), true, true, false},
		{"no DONE and no finish", sse(chunkHi), sse(chunkHi), true, false, false},
		{"usage without an empty line", sse(chunkHi) + "data: " + chunkUsage, sse(chunkHi), true, false, true},
		{"a torn usage chunk stays hidden", sse(chunkHi) + "data: " + chunkUsage[:60], sse(chunkHi), true, false, false},
		{"a torn chunk", sse(chunkHi) + "data: " + chunkUsage[:60], sse(chunkHi) + "data: " + chunkUsage[:60], false, false, false},
		{"a byte order mark", "\xEF\xBB\xBF" + sse(chunkHi, chunkUsage, "[DONE]"), "\xEF\xBB\xBF" + sse(chunkHi, "[DONE]"), true, true, true},
		{"no JSON passes", sse("hello", "[DONE]"), sse("hello", "[DONE]"), true, true, false},
		{"nothing", "", "", true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, got := run(t, wire.StreamOptions{HideUsage: c.hide}, c.in)
			if out != c.want || got.Finished != c.finished || got.Reported != c.reported {
				t.Errorf("forwarded %q\nobserved %+v", out, got)
			}
		})
	}
}

func TestAnEventLargerThanItsBoundEndsTheStream(t *testing.T) {
	small, large := sse(chunkHi), "data: "+strings.Repeat("x", 200)+"\n\n"
	for _, step := range []int{1, 7, 1000} {
		s := openai.Chat{}.NewStream(wire.StreamOptions{MaxEventBytes: 150})
		var out []byte
		var err error
		for rest := []byte(small + large + small); len(rest) > 0 && err == nil; rest = rest[min(step, len(rest)):] {
			out, err = s.Feed(out, rest[:min(step, len(rest))])
		}
		if !errors.Is(err, wire.ErrEventTooLarge) || string(out) != small {
			t.Errorf("step %d: forwarded %q, %v", step, out, err)
		}
		if out, err := s.Feed(nil, []byte(small)); len(out) > 0 || !errors.Is(err, wire.ErrEventTooLarge) {
			t.Errorf("step %d: went on after the error: %q, %v", step, out, err)
		}
		if out := s.Close(nil); len(out) > 0 {
			t.Errorf("step %d: closed with %q", step, out)
		}
	}
}

func TestPingsAreNoEvents(t *testing.T) { // DIS-9
	s := openai.Chat{}.NewStream(wire.StreamOptions{})
	if _, err := s.Feed(nil, []byte(": ping\n\n\n\nevent: ping\n\n")); err != nil || s.Events() != 0 {
		t.Errorf("%d events, %v", s.Events(), err)
	}
	if _, err := s.Feed(nil, []byte(sse(chunkHi, "[DONE]"))); err != nil || s.Events() != 2 {
		t.Errorf("%d events, %v", s.Events(), err)
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(sse(chunkHi, chunkFinish, chunkUsage, "[DONE]")), true, 5)
	f.Add([]byte("\xEF\xBB\xBF: x\r\n\r\ndata: {\"usage\":null,\r\ndata:\"choices\":[]}\r\n\r\r\n"), true, 3)
	f.Add([]byte("event: error\rdata: x\r\rdata: {\"usage\":{\"prompt_tokens\":1"), false, 1)
	f.Fuzz(func(t *testing.T, stream []byte, hide bool, step int) {
		feed := func(step int) ([]byte, call.Observed, error) {
			s := openai.Chat{}.NewStream(wire.StreamOptions{HideUsage: hide, MaxEventBytes: 300})
			var out []byte
			var err error
			for rest := stream; len(rest) > 0 && err == nil; rest = rest[min(step, len(rest)):] {
				out, err = s.Feed(out, rest[:min(step, len(rest))])
			}
			return s.Close(out), s.Observed(), err
		}
		one, observed, err := feed(len(stream) + 1)
		checkParts(t, observed)
		for _, step := range []int{1, 2, max(1, step%64)} {
			out, again, errAgain := feed(step)
			if !bytes.Equal(out, one) || !reflect.DeepEqual(again, observed) || !errors.Is(errAgain, err) {
				t.Fatalf("step %d changed the stream:\n%q\n%q\n%+v\n%+v", step, out, one, again, observed)
			}
		}
		if !hide && err == nil && !bytes.Equal(one, stream) {
			t.Fatalf("forwarded %q of %q", one, stream)
		}
	})
}

func BenchmarkFeed(b *testing.B) {
	chunk := []byte(sse(`{"id":"chatcmpl-DFnKV81lMKGBRRh35sxZO8I88ireo","object":"chat.completion.chunk","created":1772656915,"model":"gpt-5-nano-2025-08-07","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":" there"},"finish_reason":null}],"usage":null,"obfuscation":"J"}`))
	s := openai.Chat{}.NewStream(wire.StreamOptions{HideUsage: true})
	var out []byte
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if out, err = s.Feed(out[:0], chunk); err != nil {
			b.Fatal(err)
		}
	}
}
