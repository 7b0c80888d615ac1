// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/openai"
)

func TestARewriteChangesOnlyWhatItNames(t *testing.T) {
	const messages = `"messages" : [ {"role":"user","content":"a\/\u0061"} ]`
	ask, bound := wire.Rewrite{AskStreamUsage: true}, wire.Rewrite{OutputBound: 100, OutputField: "max_completion_tokens"}
	for _, c := range []struct {
		name, in string
		rewrite  wire.Rewrite
		want     string
	}{
		{"nothing", `{ "model" : "a" }`, wire.Rewrite{}, `{ "model" : "a" }`},
		{"the model", `{ "model" : "a", ` + messages + "\n}", wire.Rewrite{Model: `up/"1"`}, `{ "model" : "up/\"1\"", ` + messages + "\n}"},
		{"a key spelled with escapes", `{"m\u006fdel":"a"}`, wire.Rewrite{Model: "b"}, `{"m\u006fdel":"b"}`},
		{"an empty object", ` { } `, wire.Rewrite{Model: "b", AskStreamUsage: true}, ` {"model":"b","stream_options":{"include_usage":true} } `},
		{"usage, no options", `{"stream":true }`, ask, `{"stream":true,"stream_options":{"include_usage":true} }`},
		{"usage, null options", `{"stream_options":null}`, ask, `{"stream_options":{"include_usage":true}}`},
		{"usage, empty options", `{"stream_options":{ }}`, ask, `{"stream_options":{"include_usage":true}}`},
		{"usage, other options", `{"stream_options":{"include_obfuscation":false }}`, ask, `{"stream_options":{"include_obfuscation":false,"include_usage":true }}`},
		{"usage, refused", `{"stream_options":{"include_usage" : false}}`, ask, `{"stream_options":{"include_usage" : true}}`},
		{"usage, asked already", `{"stream_options":{"include_usage":true}}`, ask, `{"stream_options":{"include_usage":true}}`},
		{"no bound", `{"n":1}`, bound, `{"n":1,"max_completion_tokens":100}`},
		{"a null bound", `{"max_completion_tokens":null,"n":1}`, bound, `{"max_completion_tokens":100,"n":1}`},
		{"a null in the other field", `{"max_tokens":null,"n":1}`, bound, `{"max_tokens":null,"n":1,"max_completion_tokens":100}`},
		{"a larger bound in the client's field", `{"max_tokens":101}`, bound, `{"max_tokens":100}`},
		{"a smaller bound stays", `{"max_tokens":99}`, bound, `{"max_tokens":99}`},
		{"both bounds are clamped", `{"max_tokens":200,"max_completion_tokens":300}`, bound, `{"max_tokens":100,"max_completion_tokens":100}`},
		{"a row's own field, of another type", `{"n":1,"num_predict":"9"}`, wire.Rewrite{OutputBound: 5, OutputField: "num_predict"}, `{"n":1,"num_predict":5}`},
		{"a row's own field", `{"n":1}`, wire.Rewrite{OutputBound: 5, OutputField: "num_predict"}, `{"n":1,"num_predict":5}`},
		{"no field named", `{"n":1}`, wire.Rewrite{OutputBound: 5}, `{"n":1,"max_tokens":5}`},
		{
			"everything", `{"max_tokens":200,"model":"a"}`,
			wire.Rewrite{Model: "b", OutputBound: 1, OutputField: "max_tokens", AskStreamUsage: true},
			`{"max_tokens":1,"model":"b","stream_options":{"include_usage":true}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := []byte(c.in)
			got, err := openai.Chat{}.Rewrite(in, c.rewrite)
			if err != nil || string(got) != c.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
			if string(in) != c.in {
				t.Errorf("the body was modified: %s", in)
			}
		})
	}
}

func TestWhatIsNoObjectIsNotRewritten(t *testing.T) {
	for _, text := range []string{``, `[]`, `{"model":"a"}x`, `{"model":}`} {
		if got, err := (openai.Chat{}).Rewrite([]byte(text), wire.Rewrite{Model: "b", OutputBound: 1}); err == nil {
			t.Errorf("%s became %s", text, got)
		}
	}
}

type member struct {
	key string
	raw string
}

// members reads an object's members with encoding/json, raw and in order.
func members(t interface{ Fatalf(string, ...any) }, text []byte) (all []member) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		all = append(all, member{fmt.Sprint(key), string(raw)})
	}
	return all
}

// DIS-6: every other member keeps its bytes and its place.
func TestARewriteKeepsTheOtherMembersBytesAndOrder(t *testing.T) {
	values := rapid.SampledFrom([]string{
		`1`, `1.50`, `-0.0e+5`, `12345678901234567890`, `null`, `true`, `"a\u0062\/"`, `"é\ud83d"`, `[ 1 , {"model":"no"} ]`, `{ "max_tokens" : 7 }`, `{}`, `[]`, `""`,
	})
	space := rapid.SampledFrom([]string{"", " ", "\n\t", "\r\n  "})
	known := map[string][]string{
		"model": {`"a"`}, "max_tokens": {`5`, `500`, `null`}, "max_completion_tokens": {`7`, `700`, `null`},
		"stream_options": {`null`, `{}`, `{"include_usage":false}`, `{"x": 1 }`, `{ "include_usage" : true }`},
	}
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
			"model", "max_tokens", "max_completion_tokens", "stream_options", "messages", "x.y", "*", "a|b", "é", "tools", "#", "0",
		}), 0, 12, rapid.ID[string]).Draw(t, "keys")
		var text strings.Builder
		text.WriteString("{")
		for i, key := range keys {
			value := values
			if v, ok := known[key]; ok {
				value = rapid.SampledFrom(v)
			}
			fmt.Fprintf(&text, `%s"%s"%s:%s%s%s`, space.Draw(t, "s"), key, space.Draw(t, "s"), space.Draw(t, "s"), value.Draw(t, "value"), space.Draw(t, "s"))
			if i < len(keys)-1 {
				text.WriteString(",")
			}
		}
		text.WriteString("}")
		r := wire.Rewrite{
			Model: rapid.SampledFrom([]string{"", "up/stream"}).Draw(t, "model"), OutputBound: rapid.SampledFrom([]int64{0, 100}).Draw(t, "bound"),
			OutputField: rapid.SampledFrom([]string{"", "max_tokens", "max_completion_tokens"}).Draw(t, "field"), AskStreamUsage: rapid.Bool().Draw(t, "ask"),
		}
		out, err := openai.Chat{}.Rewrite([]byte(text.String()), r)
		if err != nil {
			t.Fatalf("%s: %v", text.String(), err)
		}
		before, after := members(t, []byte(text.String())), members(t, out)
		if len(after) < len(before) {
			t.Fatalf("members went missing: %s", out)
		}
		for i, m := range before {
			_, mayChange := known[m.key]
			if after[i].key != m.key || !mayChange && after[i].raw != m.raw {
				t.Fatalf("member %d was %v, is %v", i, m, after[i])
			}
		}
		again, err := openai.Chat{}.Rewrite(out, r)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("a second rewrite changed %s to %s, %v", out, again, err)
		}
		checkRewritten(t, after, r)
	})
}

func checkRewritten(t *rapid.T, after []member, r wire.Rewrite) {
	got := map[string]string{}
	for _, m := range after {
		got[m.key] = m.raw
	}
	if r.Model != "" && got["model"] != `"up/stream"` {
		t.Fatalf("model is %s", got["model"])
	}
	if r.AskStreamUsage && !strings.Contains(strings.ReplaceAll(got["stream_options"], " ", ""), `"include_usage":true`) {
		t.Fatalf("stream_options is %s", got["stream_options"])
	}
	bounded := false
	for _, field := range []string{"max_tokens", "max_completion_tokens"} {
		switch got[field] {
		case "5", "7", "100":
			bounded = true
		case "500", "700":
			if r.OutputBound > 0 {
				t.Fatalf("%s is still %s", field, got[field])
			}
		}
	}
	if r.OutputBound > 0 && !bounded {
		t.Fatalf("no bound was written: %v", got)
	}
}
