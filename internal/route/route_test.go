// SPDX-License-Identifier: Apache-2.0

package route_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/route"
)

// reader is a provider or a model.
type reader interface {
	Read(n *document.Node) (map[string]bool, error)
}

func read(t *testing.T, into reader, text string) []string {
	t.Helper()
	n, err := document.ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	_, err = into.Read(n)
	if err == nil {
		return nil
	}
	var problems document.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("error is %v, no document.Problems", err)
	}
	var paths []string
	for _, p := range problems {
		paths = append(paths, p.Path)
	}
	return paths
}

func TestAProvidersFormIsReadStrictly(t *testing.T) {
	for text, want := range map[string][]string{
		`{"base_url":"https://api.openai.com/v1"}`:                                        nil,
		`{"base_url":"http://[::1]:11434"}`:                                               nil,
		`{}`:                                                                              {"base_url"},
		`{"base_url":null}`:                                                               {"base_url"},
		`{"base_url":"api.openai.com/v1"}`:                                                {"base_url"},
		`{"base_url":"file:///etc/passwd"}`:                                               {"base_url"},
		`{"base_url":"https:opaque"}`:                                                     {"base_url"},
		`{"base_url":"https://"}`:                                                         {"base_url"},
		`{"base_url":"https://:80"}`:                                                      {"base_url"},
		`{"base_url":"https://u@h"}`:                                                      {"base_url"},
		`{"base_url":"https://h?"}`:                                                       {"base_url"},
		`{"base_url":"https://h#"}`:                                                       {"base_url"},
		`{"base_url":"https://h/%zz"}`:                                                    {"base_url"},
		`{"base_url":"https://h\u0000"}`:                                                  {"base_url"},
		`{"base_url":"https://h","name":"x"}`:                                             {"name"},
		`{"base_url":"https://h","api_key":"x"}`:                                          {"api_key"},
		`{"base_url":"https://h","protocol":"cohere"}`:                                    {"protocol"},
		`{"base_url":"https://h","auth":"basic"}`:                                         {"auth"},
		`{"base_url":"https://h","auth":"query"}`:                                         {"auth_name"},
		`{"base_url":"https://h","auth":"header","auth_name":"x y"}`:                      {"auth_name"},
		`{"base_url":"https://h","auth":"header","auth_name":"content-length"}`:           {"auth_name"},
		`{"base_url":"https://h","auth":"header","auth_name":"Authorization"}`:            nil,
		`{"base_url":"https://h","auth":"none","auth_name":"x"}`:                          {"auth_name"},
		`{"base_url":"https://h","headers":{"authorization":"x"}}`:                        {"headers.authorization"},
		`{"base_url":"https://h","headers":{"X":"a\r\nb: c"}}`:                            {"headers.X"},
		`{"base_url":"https://h","headers":{"X":1}}`:                                      {"headers.X"},
		`{"base_url":"https://h","proxy_url":"socks5://p:1080"}`:                          nil,
		`{"base_url":"https://h","proxy_url":"ftp://p"}`:                                  {"proxy_url"},
		`{"base_url":"https://h","timeouts":{"total":"2d","idle":"5"}}`:                   {"timeouts.idle", "timeouts.total"},
		`{"base_url":"https://h","charge_partial_on_upstream_failure":"no"}`:              {"charge_partial_on_upstream_failure"},
		`{"base_url":"https://h","bounds":{"max_answer_bytes":1,"max_event_bytes":null}}`: {"bounds.max_answer_bytes"},
	} {
		got := read(t, route.NewProvider("id", "p"), text)
		if strings.Contains(text, `"timeouts"`) && len(got) == 2 && got[0] > got[1] {
			got[0], got[1] = got[1], got[0]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// RES-4.
func TestAStreamThatTheProviderBrokeIsChargedUnlessItSaysFalse(t *testing.T) {
	for text, want := range map[string]bool{
		``: true, `,"charge_partial_on_upstream_failure":null`: true,
		`,"charge_partial_on_upstream_failure":true`: true, `,"charge_partial_on_upstream_failure":false`: false,
	} {
		p := route.NewProvider("id", "p")
		if paths := read(t, p, `{"base_url":"https://h"`+text+`}`); paths != nil || p.ChargesPartial() != want {
			t.Errorf("%s: charges %t, want %t (%v)", text, p.ChargesPartial(), want, paths)
		}
	}
}

// EST-1, EST-2, KEY-5, MON-4, PRC-1.
func TestAModelsFormIsReadStrictly(t *testing.T) {
	for text, want := range map[string][]string{
		`{"provider":"p"}`:                     nil,
		`{}`:                                   {"provider"},
		`{"provider":"p q"}`:                   {"provider"},
		`{"provider":"p","upstream":"a\nb"}`:   {"upstream"},
		`{"provider":"p","bytes_per_token":5}`: {"bytes_per_token"},
		`{"provider":"p","context_tokens":-1}`: {"context_tokens"},
		`{"provider":"p","max_output_tokens":9,"default_output_tokens":10}`:       {"default_output_tokens"},
		`{"provider":"p","context_tokens":9,"max_output_tokens":10}`:              {"max_output_tokens"},
		`{"provider":"p","output_field":"n"}`:                                     {"output_field"},
		`{"provider":"p","output_field":null}`:                                    nil,
		`{"provider":"p","aliases":["a","a"]}`:                                    {"aliases[1]"},
		`{"provider":"p","aliases":["M"]}`:                                        {"aliases[0]"},
		`{"provider":"p","aliases":["a b"]}`:                                      {"aliases[0]"},
		`{"provider":"p","price":"free"}`:                                         nil,
		`{"provider":"p","price":null}`:                                           nil,
		`{"provider":"p","price":{"input":2,"output":"3"}}`:                       nil,
		`{"provider":"p","price":{"input":"1","above":{"200000":{"input":"2"}}}}`: nil,
		`{"provider":"p","price":"cheap"}`:                                        {"price"},
		`{"provider":"p","price":{"input":0.5}}`:                                  {"price.input"},
		`{"provider":"p","price":{"input":"-1"}}`:                                 {"price.input"},
		`{"provider":"p","price":{"input":"20000"}}`:                              {"price.input"},
		`{"provider":"p","price":{"inputs":"1"}}`:                                 {"price.inputs"},
		`{"provider":"p","price":{"above":{"200000":{"input":[1]}}}}`:             {"price.above.200000.input"},
		`{"provider":"p","price":5}`:                                              {"price"},
	} {
		if diff := cmp.Diff(want, read(t, &route.Model{Name: "m"}, text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestAModelIsCalledByItsOwnNameUpstreamUnlessItSaysOtherwise(t *testing.T) {
	m := &route.Model{Name: "m"}
	if paths := read(t, m, `{"provider":"p"}`); paths != nil || m.Upstream != "m" {
		t.Errorf("upstream is %q (%v)", m.Upstream, paths)
	}
	if paths := read(t, m, `{"upstream":"other"}`); paths != nil || m.Upstream != "other" || m.Provider != "p" {
		t.Errorf("after a change: %+v (%v)", m, paths)
	}
}

// PRC-1: nothing set is no price, free is an explicit zero.
func TestAPriceIsSetOrFreeOrLeftToTheCatalogue(t *testing.T) {
	for text, want := range map[string][2]bool{ // set, free
		`{"provider":"p"}`: {false, false}, `{"provider":"p","price":null}`: {false, false},
		`{"provider":"p","price":"free"}`: {false, true}, `{"provider":"p","price":{"input":"0","output":"0"}}`: {true, false},
		`{"provider":"p","price":{"free":true}}`: {false, true}, `{"provider":"p","price":{"free":true,"valid_from":"2027-01-01"}}`: {true, false},
		`{"provider":"p","price":[{"input":"1"},{"input":"2","valid_from":"2027-01-01"}]}`: {true, false},
	} {
		m := &route.Model{Name: "m"}
		if paths := read(t, m, text); paths != nil || m.Free != want[1] || (m.Prices != nil) != want[0] {
			t.Errorf("%s: %+v (%v)", text, m, paths)
		}
	}
}

func TestAProviderComesBackAsItWasWritten(t *testing.T) {
	for _, text := range []string{
		`{"base_url":"https://h"}`,
		`{"base_url":"https://h","dialect":"ollama","auth":"query","auth_name":"key","headers":{"x-a":"b"},"proxy_url":"http://p","ca_file":"ca.pem",
		  "timeouts":{"connect":"1500ms","idle":"90s"},"client_gone":"drain","charge_partial_on_upstream_failure":false,"stream_usage":"off","trust_provider_cost":true,"bounds":{"max_connections":7}}`,
	} {
		p := route.NewProvider("", "")
		if paths := read(t, p, text); paths != nil {
			t.Fatalf("%s: %v", text, paths)
		}
		body, err := route.EncodeProvider(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := route.DecodeProvider(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if diff := cmp.Diff(p, back); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

func TestAModelComesBackAsItWasWritten(t *testing.T) {
	for _, text := range []string{
		`{"provider":"p"}`,
		`{"provider":"p","price":"free","aliases":["a","b"]}`,
		`{"provider":"p","upstream":"u","context_tokens":9,"max_output_tokens":8,"default_output_tokens":7,"image_tokens":6,"bytes_per_token":2,
		  "output_field":"max_completion_tokens","price":{"input":"0.15","cached_input":"0.075","output":"0.6","above":{"200000":{"input":"4"}},"factor":{"flex":"1/2"}}}`,
		`{"provider":"p","price":[{"input":"2","valid_from":"2027-01-01T06:00:00Z"},{"input":"1","per_tool_call":{"web_search":"0.01"}}]}`,
	} {
		m := &route.Model{Name: "m"}
		if paths := read(t, m, text); paths != nil {
			t.Fatalf("%s: %v", text, paths)
		}
		body, err := route.EncodeModel(m)
		if err != nil {
			t.Fatal(err)
		}
		back, err := route.DecodeModel(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		back.Name = "m"
		if diff := cmp.Diff(m, back); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

func FuzzReadModel(f *testing.F) {
	for _, seed := range []string{`{"provider":"p","price":{"input":"1"}}`, `{"provider":"p","price":"free","aliases":["a"]}`, `{"price":{"id":"x"}}`, `{"price":{"above":{"1":{"input":"1"}}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := document.ParseJSON(text)
		if err != nil {
			return
		}
		m := &route.Model{Name: "m"}
		if _, err := m.Read(n); err != nil {
			return
		}
		body, err := route.EncodeModel(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := route.DecodeModel(body); err != nil {
			t.Fatalf("%s became %s: %v", text, body, err)
		}
	})
}

// TestAProvidersCredentialIsSentAsItsServiceReadsIt, unless it is said otherwise.
func TestAProvidersCredentialIsSentAsItsServiceReadsIt(t *testing.T) {
	for form, want := range map[string]string{
		`{"base_url":"https://h"}`:                                         "bearer ",
		`{"base_url":"https://h","protocol":"anthropic"}`:                  "header X-Api-Key",
		`{"base_url":"https://h","protocol":"gemini"}`:                     "header X-Goog-Api-Key",
		`{"base_url":"https://h","api_version":"2024-10-21"}`:              "header Api-Key",
		`{"base_url":"https://h","protocol":"gemini","auth":"bearer"}`:     "bearer ",
		`{"base_url":"https://h","protocol":"anthropic","auth":"none"}`:    "none ",
		`{"base_url":"https://h","api_version":"preview","auth":"bearer"}`: "bearer ",
		`{"base_url":"https://h","auth":"query","auth_name":"key"}`:        "query key",
	} {
		n, err := document.ParseJSON([]byte(form))
		if err != nil {
			t.Fatal(err)
		}
		p := route.NewProvider("", "p")
		if _, err := p.Read(n); err != nil || p.Auth+" "+p.AuthName != want {
			t.Errorf("%s: %s %s, %v", form, p.Auth, p.AuthName, err)
		}
	}
}

func TestADoorsPathFollowsTheBaseURL(t *testing.T) {
	for _, c := range []struct{ protocol, base, version, path, want string }{
		{route.OpenAI, "https://h/v1", "", "/chat/completions", "https://h/v1/chat/completions"},
		{route.OpenAI, "https://h", "", "/chat/completions", "https://h/chat/completions"},
		{route.OpenAI, "https://h/openai", "2024-10-21", "/chat/completions", "https://h/openai/deployments/my%20m%3F/chat/completions?api-version=2024-10-21"},
		{route.OpenAI, "https://h/openai", "preview", "/responses", "https://h/openai/responses?api-version=preview"},
		{route.Anthropic, "https://h/v1/", "", "/messages", "https://h/v1/messages"},
		{route.Anthropic, "https://h", "", "/messages", "https://h/v1/messages"},
		{route.Anthropic, "https://v1.h/anthropic/", "", "/messages", "https://v1.h/anthropic/v1/messages"},
		{route.Gemini, "https://h/v1beta", "", "/models/m:streamGenerateContent?alt=sse", "https://h/v1beta/models/m:streamGenerateContent?alt=sse"},
		{route.Gemini, "https://h/v1", "", "/models/m:countTokens", "https://h/v1/models/m:countTokens"},
		{route.Gemini, "https://h/", "", "/models/m:countTokens", "https://h/v1beta/models/m:countTokens"},
		{route.Gemini, "https://h/v1/projects/p/publishers/google", "", "/models/m:countTokens", "https://h/v1/projects/p/publishers/google/models/m:countTokens"},
	} {
		p := route.NewProvider("", "p")
		p.Protocol, p.BaseURL, p.APIVersion = c.protocol, c.base, c.version
		if got := p.Address(c.path, "my m?", false); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
