// SPDX-License-Identifier: Apache-2.0

package wiretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
)

// Shape is a door with what its requests are made of.
type Shape struct {
	Door wire.Door
	// Model is the name in the path, empty at a door that has it in the body.
	Model string
	// Needs are the members that no request can do without.
	Needs []string
	// Members has a value that is accepted for every member that the door reads.
	Members map[string]string
	// Wrong has values of another type, or out of bounds, for members. A value
	// that is only accepted null has to be there.
	Wrong map[string][]string
	// Changes are the members that a rewrite may change.
	Changes []string
	// Bounds has values of a member that bounds the output, with the bound.
	Bounds map[string]int64
	// BoundIn is the member that carries one of Bounds.
	BoundIn string
}

// Body is a request with what it cannot do without, but for leave, and members.
func (s *Shape) Body(leave string, members ...string) string {
	var list []string
	for _, name := range s.Needs {
		if name != leave {
			list = append(list, `"`+name+`":`+s.Members[name])
		}
	}
	return "{" + strings.Join(append(list, members...), ",") + "}"
}

func (s *Shape) request(text string) wire.Request {
	return wire.Request{Body: []byte(text), Model: s.Model}
}

// Decode reads a request that is accepted.
func (s *Shape) Decode(t testing.TB, text string) *call.Call {
	t.Helper()
	c, f := s.Door.Decode(s.request(text))
	if f != nil {
		t.Fatalf("%.300s\nrefused: %s", text, f.Message)
	}
	return c
}

// Refused checks that a request is a 400 that names a member (ERR-5).
func (s *Shape) Refused(t testing.TB, text, param string) {
	t.Helper()
	c, f := s.Door.Decode(s.request(text))
	switch {
	case f == nil || c != nil:
		t.Errorf("accepted: %.300s", text)
	case f.Code != fault.InvalidRequest || f.HTTPStatus() != http.StatusBadRequest || f.Param != param:
		t.Errorf("%.300s\ngot %s, param %q, want param %q (%s)", text, f.Code, f.Param, param, f.Message)
	}
}

// Strict checks what ERR-5 asks of every door: each member that is read stands
// once, in its own spelling and with its own type, what a request cannot do
// without is there, and what no request may bring is refused.
func Strict(t *testing.T, s Shape) {
	t.Helper()
	for name, value := range s.Members {
		member := `"` + name + `":` + value
		s.Decode(t, s.Body(name, member))
		again := value
		for _, spelling := range []string{name, strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:], fmt.Sprintf(`\u00%02x%s`, name[0], name[1:])} {
			s.Refused(t, s.Body(name, member, `"`+spelling+`":`+again), name)
		}
		s.Refused(t, s.Body(name, `"`+strings.ToUpper(name)+`":`+value), name)
		needed := slices.Contains(s.Needs, name)
		if needed {
			s.Refused(t, s.Body(name), name)
			s.Refused(t, s.Body(name, `"`+name+`":null`), name)
		} else {
			s.Decode(t, s.Body(name, `"`+name+`":null`))
		}
	}
	for name, values := range s.Wrong {
		top, _, _ := strings.Cut(name, ".")
		for _, value := range values {
			s.Refused(t, s.Body(top, `"`+top+`":`+value), name)
		}
	}
	for _, name := range wire.RefusedMembers() {
		s.Refused(t, s.Body("", `"`+name+`":"x"`), name)
		s.Refused(t, s.Body("", `"`+strings.ToUpper(name)+`":null`), name)
	}
	for _, text := range []string{``, `null`, `[]`, `"x"`, `{`, "\xff", s.Body("") + `{}`, s.Body("", `"a":01`), s.Body("", ``), "\xEF\xBB\xBF" + s.Body("")} {
		s.Refused(t, text, "")
	}
}

// Rewritten checks Rewrite on requests of every make: what is not named keeps its
// bytes and its place, and the result decodes to the same call with the provider's
// model and the lower bound.
func Rewritten(t *testing.T, s Shape) {
	t.Helper()
	names := slices.Sorted(maps.Keys(s.Members))
	bounds := slices.Sorted(maps.Keys(s.Bounds))
	rapid.Check(t, func(t *rapid.T) {
		text := s.draw(t, names, bounds)
		r := wire.Rewrite{
			Model: rapid.SampledFrom([]string{"", "up/stream-1"}).Draw(t, "model"), OutputBound: rapid.SampledFrom([]int64{0, 1, 100}).Draw(t, "bound"),
			OutputField: rapid.SampledFrom([]string{"", "max_tokens"}).Draw(t, "field"),
		}
		before, refusal := s.Door.Decode(s.request(text))
		if refusal != nil {
			t.Fatalf("%s\nrefused: %s", text, refusal.Message)
		}
		in := []byte(text)
		out, err := s.Door.Rewrite(in, r)
		if err != nil || string(in) != text {
			t.Fatalf("%s: %v, the body is now %s", text, err, in)
		}
		s.compare(t, text, string(out), before, r)
	})
}

func (s *Shape) draw(t *rapid.T, names, bounds []string) string {
	space := rapid.SampledFrom([]string{"", " ", "\n\t", "\r\n  "})
	keys := append(slices.Clone(s.Needs), rapid.SliceOfNDistinct(rapid.SampledFrom(append([]string{"x.y", "é", "top"}, names...)), 0, 8, rapid.ID[string]).Draw(t, "keys")...)
	slices.Sort(keys)
	keys = rapid.Permutation(slices.Compact(keys)).Draw(t, "order")
	var list []string
	for _, key := range keys {
		value := s.Members[key]
		switch {
		case value == "":
			value = rapid.SampledFrom([]string{`1.50`, `"a\u0062\/"`, `[ 1 , {"model":"no"} ]`, `{ "max_tokens" : 7 }`, `null`}).Draw(t, "value")
		case key == s.BoundIn && len(bounds) > 0:
			value = rapid.SampledFrom(append([]string{"null"}, bounds...)).Draw(t, "bound value")
		}
		list = append(list, space.Draw(t, "s")+`"`+key+`"`+space.Draw(t, "s")+`:`+space.Draw(t, "s")+value+space.Draw(t, "s"))
	}
	return space.Draw(t, "s") + "{" + strings.Join(list, ",") + "}" + space.Draw(t, "s")
}

func (s *Shape) compare(t *rapid.T, text, out string, before *call.Call, r wire.Rewrite) {
	first, second := members(t, text), members(t, out)
	if len(second) < len(first) {
		t.Fatalf("members went missing: %s", out)
	}
	for i, m := range first {
		if second[i].key != m.key || !slices.Contains(s.Changes, m.key) && second[i].raw != m.raw {
			t.Fatalf("member %d was %v, is %v", i, m, second[i])
		}
	}
	request := s.request(out)
	if r.Model != "" && s.Model != "" {
		request.Model = r.Model
	}
	after, refusal := s.Door.Decode(request)
	if refusal != nil {
		t.Fatalf("%s\nbecame %s\nwhich is refused: %s", text, out, refusal.Message)
	}
	want := *before
	if r.Model != "" {
		want.Model = r.Model
	}
	if r.OutputBound > 0 && s.BoundIn != "" && (want.OutputBound == call.NoBound || want.OutputBound > r.OutputBound) {
		want.OutputBound = r.OutputBound
	}
	want.OutputField = after.OutputField
	if !reflect.DeepEqual(*after, want) {
		t.Fatalf("%s\nbecame %s\ngot  %+v\nwant %+v", text, out, *after, want)
	}
	if again, err := s.Door.Rewrite([]byte(out), r); err != nil || string(again) != out {
		t.Fatalf("a second rewrite changed %s to %s, %v", out, again, err)
	}
}

type member struct{ key, raw string }

// members reads an object's members with encoding/json, raw and in order.
func members(t *rapid.T, text string) (all []member) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
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
