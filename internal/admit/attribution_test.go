// SPDX-License-Identifier: Apache-2.0

package admit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/tenant"
)

func TestOnlyAKeyThatMayNamesTheUser(t *testing.T) { // KEY-7, BR-003, BR-186
	for _, c := range []struct {
		name, may, own string
		headers        []string
		body, metadata string
		require        bool
		user           string
		refused        string // part of the message
		withoutBody    bool
	}{
		{name: "no key may by default", own: "ada", headers: []string{"eve"}, body: "eve", user: "ada"},
		{name: "a header", may: tenant.AttributeHeader, own: "ada", headers: []string{"eve"}, user: "eve"},
		{name: "a body is not read for the header alone", may: tenant.AttributeHeader, own: "ada", body: "eve", user: "ada"},
		{name: "a body", may: tenant.AttributeBody, own: "ada", body: "eve", user: "eve"},
		{name: "its metadata", may: tenant.AttributeBody, metadata: "eve", user: "eve"},
		{name: "a header where a body may", may: tenant.AttributeBody, headers: []string{"eve"}, user: "eve"},
		{name: "every way names one", may: tenant.AttributeBody, headers: []string{"eve"}, body: "eve", metadata: "eve", user: "eve"},
		{name: "two that differ", may: tenant.AttributeBody, headers: []string{"eve"}, body: "bob", refused: "two users"},
		{name: "two headers that differ", may: tenant.AttributeHeader, headers: []string{"eve", "bob"}, refused: "two users"},
		{name: "body and metadata that differ", may: tenant.AttributeBody, body: "eve", metadata: "bob", refused: "two users"},
		{name: "a session of a coding agent", may: tenant.AttributeBody, own: "ada", metadata: `{"session_id":"1"}`, user: "ada"},
		{name: "no user", may: tenant.AttributeHeader, headers: []string{"a b"}, refused: "letters"},
		{name: "an empty header", may: tenant.AttributeHeader, headers: []string{""}, refused: "1 to 128"},
		{name: "too long", may: tenant.AttributeHeader, headers: []string{strings.Repeat("a", 129)}, refused: "1 to 128"},
		{name: "required and absent", may: tenant.AttributeHeader, require: true, refused: "X-Weir-User"},
		{name: "required, of its own", own: "ada", require: true, user: "ada"},
		{name: "required and named", may: tenant.AttributeBody, require: true, body: "eve", user: "eve"},
		{name: "a key may be looked at without one", may: tenant.AttributeHeader, require: true, withoutBody: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := &tenant.Key{Name: "ci", User: c.own, AttributeUsers: c.may, RequireUser: c.require}
			request := chat("big")
			request.User, request.MetadataUser = c.body, c.metadata
			if c.withoutBody {
				request = nil
			}
			who, f := admit.Attribute(k, c.headers, nil, request)
			if c.refused != "" {
				if f == nil || f.HTTPStatus() != 400 || !strings.Contains(f.Message, c.refused) || who.User != "" {
					t.Errorf("got %+v, %v", who, f)
				}
				return
			}
			if f != nil {
				t.Fatal(f)
			}
			w := newWorld(t)
			k.ID, w.key, w.who = "key_1", k, who
			if got := w.build(chat("big")).Op.Subjects.User; got != c.user {
				t.Errorf("charged to %q, want %q", got, c.user)
			}
		})
	}
}

func TestTagsAreFewAndPlain(t *testing.T) { // RAT-7
	for _, c := range []struct {
		headers []string
		tags    []string
		wrong   bool
	}{
		{nil, nil, false},
		{[]string{""}, nil, false},
		{[]string{"a"}, []string{"a"}, false},
		{[]string{"batch, job=7,a/b:c._-"}, []string{"batch", "job=7", "a/b:c._-"}, false},
		{[]string{"a", "b,a"}, []string{"a", "b"}, false},
		{[]string{"a,,b"}, nil, true},
		{[]string{"a b"}, nil, true},
		{[]string{"ä"}, nil, true},
		{[]string{strings.Repeat("a", 65)}, nil, true},
		{[]string{"1,2,3,4,5,6,7,8,9,10,11"}, nil, true},
		{[]string{"1,2,3,4,5,6,7,8,9,10,1"}, []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}, false},
	} {
		who, f := admit.Attribute(&tenant.Key{}, nil, c.headers, chat("big"))
		if (f != nil) != c.wrong || !slices.Equal(who.Tags, c.tags) {
			t.Errorf("%q: %v, %v", c.headers, who.Tags, f)
		}
		if f != nil && f.HTTPStatus() != 400 {
			t.Errorf("%q: status %d", c.headers, f.HTTPStatus())
		}
	}
}
