// SPDX-License-Identifier: Apache-2.0

package wiretest

import (
	"bytes"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
)

// Everywhere checks that a stream passes byte for byte and shows the same however
// it is cut: in two at every place, and byte by byte.
func Everywhere(t *testing.T, door wire.Door, o wire.StreamOptions, stream string) call.Observed {
	t.Helper()
	_, want := Run(t, door, o, stream)
	check := func(how int, pieces ...string) {
		out, got := Run(t, door, o, pieces...)
		if out != stream {
			t.Fatalf("cut %d: forwarded\n%q\nwant\n%q", how, out, stream)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("cut %d: observed\n%+v\nwant\n%+v", how, got, want)
		}
	}
	for i := range len(stream) + 1 {
		check(i, stream[:i], stream[i:])
	}
	check(-1, strings.Split(stream, "")...)
	return want
}

// Lines checks that the ends of a stream's lines, CR, LF or both, change nothing
// of what it shows, and returns that.
func Lines(t *testing.T, door wire.Door, stream string) call.Observed {
	t.Helper()
	want := Everywhere(t, door, wire.StreamOptions{}, stream)
	for _, end := range []string{"\r\n", "\r"} {
		text := strings.ReplaceAll(stream, "\n", end)
		if got := Everywhere(t, door, wire.StreamOptions{}, text); !reflect.DeepEqual(got, want) {
			t.Errorf("lines ending in %q: %+v, want %+v", end, got, want)
		}
	}
	return want
}

// TooLarge checks that an event beyond its bound ends the stream, after those
// before it, and that the error stays.
func TooLarge(t *testing.T, door wire.Door, o wire.StreamOptions, before, large string) {
	t.Helper()
	o.MaxEventBytes = max(len(before), 8)
	s := door.NewStream(o)
	out, err := s.Feed(nil, []byte(before))
	if err != nil {
		t.Fatal(err)
	}
	out, err = s.Feed(out, []byte(large))
	if !errors.Is(err, wire.ErrEventTooLarge) || string(out) != before {
		t.Errorf("got %v after %q", err, out)
	}
	if out, err = s.Feed(nil, []byte(before)); !errors.Is(err, wire.ErrEventTooLarge) || len(out) != 0 {
		t.Errorf("it went on with %v and %q", err, out)
	}
	if s.Observed().Finished {
		t.Error("it is finished")
	}
}

// Fuzz runs every parser of the doors: the kind of call is what a request's
// decoding, an answer's and a stream's reading have in common.
func Fuzz(f *testing.F, doors []wire.Door, seeds []string) {
	for i := range doors {
		for _, text := range seeds {
			f.Add(byte(i), byte(3), []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, index, step byte, text []byte) {
		door := doors[int(index)%len(doors)]
		request := wire.Request{Body: text, ContentType: "multipart/form-data; boundary=x"}
		fuzzDecode(t, door, request)
		request.Model = "m"
		fuzzDecode(t, door, request)
		whole := door.Whole(text, 0)
		CheckParts(t, &whole)
		if whole.OutputBytes > 3*int64(len(text)) {
			t.Fatalf("%d bytes of output in %d", whole.OutputBytes, len(text))
		}
		fuzzFeed(t, door, wire.StreamOptions{MaxEventBytes: 400}, int(step), text)
		fuzzFeed(t, door, wire.StreamOptions{MaxEventBytes: 400, Call: &call.Call{Stream: true, ArrayStream: true}}, int(step), text)
	})
}

// fuzzDecode: what is accepted can be rewritten, and is accepted again.
func fuzzDecode(t *testing.T, door wire.Door, r wire.Request) {
	c, refusal := door.Decode(r)
	if refusal != nil {
		if c != nil || refusal.HTTPStatus() != http.StatusBadRequest {
			t.Fatalf("refused with %d", refusal.HTTPStatus())
		}
		return
	}
	p := c.Prompt
	if p.TextBytes < 0 || p.Messages < 0 || p.Tools < 0 || p.Images < 0 || c.Completions < 1 || c.OutputBound == 0 || c.OutputBound < call.NoBound {
		t.Fatalf("out of bounds: %+v", c)
	}
	out, err := door.Rewrite(r.Body, wire.Rewrite{Model: "m", OutputBound: 7, ContentType: r.ContentType})
	if err != nil {
		t.Fatalf("accepted %q, but %v", r.Body, err)
	}
	r.Body = out
	again, refusal := door.Decode(r)
	if refusal != nil || again.Model != "m" || again.Prompt != p || again.OutputBound > max(7, c.OutputBound) {
		t.Fatalf("rewritten to %q: %+v, %v", out, again, refusal)
	}
}

// fuzzFeed: how a stream is cut changes nothing, and no byte is lost. An array that
// was left open is closed.
func fuzzFeed(t *testing.T, door wire.Door, o wire.StreamOptions, step int, text []byte) {
	feed := func(step int) ([]byte, call.Observed, error) {
		s := door.NewStream(o)
		var out []byte
		var err error
		for rest := text; len(rest) > 0 && err == nil; rest = rest[min(step, len(rest)):] {
			out, err = s.Feed(out, rest[:min(step, len(rest))])
		}
		if len(s.Observed().Marks) > 5 || s.Events() < 0 {
			t.Fatalf("%+v", s.Observed())
		}
		return s.Close(out), s.Observed(), err
	}
	one, observed, err := feed(len(text) + 1)
	CheckParts(t, &observed)
	for _, step := range []int{1, 1 + step%64} {
		out, again, errAgain := feed(step)
		if !bytes.Equal(out, one) || !reflect.DeepEqual(again, observed) || !errors.Is(errAgain, err) {
			t.Fatalf("step %d changed the stream:\n%q\n%q\n%+v\n%+v", step, out, one, again, observed)
		}
	}
	if o.Call != nil && o.Call.ArrayStream && !bytes.HasPrefix(text, one) {
		one = bytes.TrimSuffix(one, []byte("]"))
	}
	if !bytes.HasPrefix(text, one) {
		t.Fatalf("forwarded %q of %q", one, text)
	}
}

// CheckParts checks that no count is below zero, and that nothing is counted
// which was not reported.
func CheckParts(t testing.TB, o *call.Observed) {
	t.Helper()
	u := o.Usage
	for _, part := range []int64{
		u.Input, u.CachedInput, u.CacheWrite5m, u.CacheWrite1h, u.ToolInput, u.AudioInput, u.CachedAudioInput,
		u.ImageInput, u.Output, u.AudioOutput, u.ImageOutput, u.Reasoning, o.OutputBytes, u.Units.Images, u.Units.AudioInputMicros,
	} {
		if part < 0 {
			t.Fatalf("a part below zero: %+v", o)
		}
	}
	if u.Reasoning > u.Output {
		t.Fatalf("more reasoning than output: %+v", o)
	}
	if !o.Reported && u != (call.Usage{}) {
		t.Fatalf("figures that were not reported: %+v", o)
	}
}
