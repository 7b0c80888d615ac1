// SPDX-License-Identifier: Apache-2.0

package admit_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/admit"
)

// word is any text, such as clients and providers choose.
func word() *rapid.Generator[string] {
	return rapid.OneOf(rapid.Just(""), rapid.String(), rapid.SampledFrom([]string{"</script>", "\"\\\n\x00\u2028", "gpt-5"}))
}

func TestWhatTheCallLogKeepsIsReadAsItWasWritten(t *testing.T) {
	number := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64())
	rapid.Check(t, func(t *rapid.T) {
		text := func() string { return strings.ToValidUTF8(word().Draw(t, "text"), "\ufffd") }
		n := func() int64 { return number.Draw(t, "number") }
		flag := func() bool { return rapid.Bool().Draw(t, "flag") }
		note := admit.Note{
			Door: text(), Model: text(), Stream: flag(), User: text(), KeyUser: text(), TextBytes: n(), Messages: n(), Tools: n(),
			Images: n(), InputTokens: n(), OutputBound: n(), Completions: n(), WorstNanos: n(), Message: text(),
		}
		if flag() {
			note.Price = json.RawMessage(`{"id":"row","free":true}`)
		}
		sameAsJSON(t, note.Encode(), &note)
		usage := admit.Usage{
			Input: n(), CachedInput: n(), CacheWrite: n(), AudioInput: n(), Output: n(), Reasoning: n(), AudioOutput: n(),
			ServiceTier: text(), Estimated: flag(), AudioInputMicros: n(), AudioOutputMicros: n(), Images: n(),
		}
		if flag() {
			usage.ToolCalls = map[string]int64{text(): n(), text(): n()}
		}
		sameAsJSON(t, usage.Encode(), &usage)
		end := admit.End{
			Outcome: text(), Status: int(rapid.Int16().Draw(t, "status")), Answered: text(), ChargeNanos: n(), OutputBytes: n(),
			SentAt: n(), FirstByteAt: n(), EndedAt: n(),
		}
		for range rapid.IntRange(0, 2).Draw(t, "marks") {
			end.Marks = append(end.Marks, text())
		}
		if flag() {
			end.Named = &admit.NamedCost{Nanos: n(), OwnNanos: n(), Charged: flag()}
		}
		if flag() {
			end.Usage = &usage
			sameAsJSON(t, end.Encode(usage.Encode()), &end)
		} else {
			sameAsJSON(t, end.Encode(nil), &end)
		}
	})
}

// sameAsJSON tells whether text says what package encoding/json would have written:
// no field is forgotten in either.
func sameAsJSON[T any](t *rapid.T, text []byte, v *T) {
	t.Helper()
	want, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var have, wanted any
	if err := json.Unmarshal(text, &have); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := json.Unmarshal(want, &wanted); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(have, wanted) {
		t.Fatalf("wrote %s, want %s", text, want)
	}
	var back T
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(&back, v) {
		t.Fatalf("read %+v of %s, want %+v: %v", back, text, *v, err)
	}
}

// fill sets every field that a struct has, those too that are added later.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("word")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"id":"row"}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]int64{"search": 2}))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("%s is filled by nobody", v.Type())
	}
}

func TestNothingThatTheCallLogKeepsIsLeftOut(t *testing.T) {
	var note, noteBack admit.Note
	fill(t, reflect.ValueOf(&note).Elem())
	if err := json.Unmarshal(note.Encode(), &noteBack); err != nil || !reflect.DeepEqual(note, noteBack) {
		t.Errorf("%+v of %s, want %+v: %v", noteBack, note.Encode(), note, err)
	}
	var end, endBack admit.End
	fill(t, reflect.ValueOf(&end).Elem())
	text := end.Encode(end.Usage.Encode())
	if err := json.Unmarshal(text, &endBack); err != nil || !reflect.DeepEqual(end, endBack) {
		t.Errorf("%+v of %s, want %+v: %v", endBack, text, end, err)
	}
}
