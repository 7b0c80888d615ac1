// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
)

// seen is a request as a provider received it.
type seen struct {
	url    string
	header http.Header
	body   string
}

// recorder is a provider that keeps what it receives and answers with headers
// that are not the client's business.
type recorder struct {
	*httptest.Server
	mu  sync.Mutex
	got []seen
}

func newRecorder(t *testing.T) *recorder {
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		r.got = append(r.got, seen{q.URL.String(), q.Header.Clone(), string(body)})
		r.mu.Unlock()
		for name, value := range map[string]string{
			"Set-Cookie": "session=1", "X-RateLimit-Remaining-Requests": "9", "X-RateLimit-Limit": "7777", "Openai-Organization": "org-of-the-provider",
			"Openai-Project": "proj", "Server": "them", "X-Request-Id": "theirs", "Openai-Processing-Ms": "12", "Retry-After": "9",
			"X-Weir-Request-Id": "req_forged", "Content-Type": "application/json",
		} {
			w.Header().Set(name, value)
		}
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":30,"total_tokens":50}}`)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) take() []seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

const (
	spelledKey   = "the-secret-of-the-spelled-key"
	ownProviders = `
providers:
  - {name: bearer, protocol: openai, base_url: "%RECORDER%/v1", api_key: credential-in-the-bearer}
  - {name: header, protocol: openai, base_url: "%RECORDER%/v1", auth: header, auth_name: X-Api-Key, api_key: credential-in-a-header, headers: {X-Team: platform}}
  - {name: query, protocol: openai, base_url: "%RECORDER%/v1", auth: query, auth_name: key, api_key: credential-in-the-query}
  - {name: none, protocol: openai, base_url: "%RECORDER%/v1", auth: none}
models:
  - {name: bearer, provider: bearer, upstream: up, price: {input: "1", output: "10"}}
  - {name: header, provider: header, upstream: up, price: {input: "1", output: "10"}}
  - {name: query, provider: query, upstream: up, price: {input: "1", output: "10"}}
  - {name: none, provider: none, upstream: up, price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: ` + spelledKey + `}
`
)

// TestAKeyIsReadFromEverySpellingAndGoesNowhere: KEY-1, DIS-5. Whatever a client
// sends beside its key, nothing of it reaches a provider, whichever way the
// gateway's own credential goes there.
func TestAKeyIsReadFromEverySpellingAndGoesNowhere(t *testing.T) {
	provider := newRecorder(t)
	w := newWorld(t, strings.ReplaceAll(ownProviders, "%RECORDER%", provider.URL))
	for name, spelling := range map[string]func(*http.Request){
		"bearer":                func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+spelledKey) },
		"bearer in lower case":  func(r *http.Request) { r.Header.Set("Authorization", "bearer "+spelledKey) },
		"x-api-key":             func(r *http.Request) { r.Header["x-api-key"] = []string{spelledKey} },
		"x-goog-api-key":        func(r *http.Request) { r.Header.Set("x-goog-api-key", spelledKey) },
		"api-key":               func(r *http.Request) { r.Header.Set("api-key", spelledKey) },
		"query":                 func(r *http.Request) { r.URL.RawQuery = "key=" + spelledKey },
		"query among others":    func(r *http.Request) { r.URL.RawQuery = "alt=sse&key=" + spelledKey + "&x=1" },
		"the same key all over": everywhere,
	} {
		for _, model := range []string{"bearer", "header", "query", "none"} {
			t.Run(name+" to "+model, func(t *testing.T) {
				request := httptest.NewRequest(http.MethodPost, w.url("/v1/chat/completions"), strings.NewReader(chatBody(model, "")))
				request.RequestURI = ""
				for name, value := range map[string]string{
					"Cookie": "session=client-cookie", "Openai-Organization": "client-org", "Proxy-Authorization": "Basic client-proxy",
					"X-Forwarded-For": "client-address", "X-Weir-User": "client-user", "X-Amz-Security-Token": "client-token", "X-Custom": "client-custom",
				} {
					request.Header.Set(name, value)
				}
				spelling(request)
				response, err := w.http.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				body, _ := io.ReadAll(response.Body)
				got := provider.take()
				if response.StatusCode != http.StatusOK || len(got) != 1 {
					t.Fatalf("status %d %s, %d requests at the provider", response.StatusCode, body, len(got))
				}
				var raw bytes.Buffer
				raw.WriteString(got[0].url + "\n" + got[0].body + "\n")
				_ = got[0].header.Write(&raw)
				for _, never := range []string{spelledKey, "client-"} {
					if strings.Contains(raw.String(), never) {
						t.Errorf("the provider received %q of the client:\n%s", never, raw.String())
					}
				}
				checkCredential(t, model, got[0])
				checkAnswerHeaders(t, response.Header)
			})
		}
	}
	w.balanced()
}

func everywhere(r *http.Request) {
	r.Header.Set("Authorization", "Bearer "+spelledKey)
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key", "Api-Key"} {
		r.Header.Set(name, spelledKey)
	}
	r.URL.RawQuery = "key=" + spelledKey
}

func checkCredential(t *testing.T, model string, got seen) {
	t.Helper()
	bearer, header, query := "", "", "/v1/chat/completions"
	switch model {
	case "bearer":
		bearer = "Bearer credential-in-the-bearer"
	case "header":
		header = "credential-in-a-header"
		if got.header.Get("X-Team") != "platform" {
			t.Errorf("the provider's own header is missing: %v", got.header)
		}
	case "query":
		query += "?key=credential-in-the-query"
	}
	if got.header.Get("Authorization") != bearer || got.header.Get("X-Api-Key") != header || got.url != query {
		t.Errorf("credential: %q, %q, %q", got.header.Get("Authorization"), got.header.Get("X-Api-Key"), got.url)
	}
}

// checkAnswerHeaders: DIS-2.
func checkAnswerHeaders(t *testing.T, h http.Header) {
	t.Helper()
	for name, values := range h {
		for _, v := range values {
			if strings.Contains(v, "session=1") || strings.Contains(v, "7777") || v == "org-of-the-provider" || v == "them" || v == "proj" || v == "req_forged" {
				t.Errorf("the provider's header went to the client: %s: %s", name, v)
			}
		}
	}
	for name, want := range map[string]string{
		"X-RateLimit-Remaining-Requests": "", "Retry-After": "", "X-Weir-Error-Source": "",
		"Openai-Processing-Ms": "12", "X-Weir-Provider-Request-Id": "theirs", "Content-Type": "application/json",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if !strings.HasPrefix(h.Get("X-Weir-Request-Id"), "req_") || h.Get("X-Weir-Model") == "" || h.Get("X-Weir-Provider") == "" {
		t.Errorf("headers %v", h)
	}
}

// TestTwoDifferentKeysInOneRequestAreRefused, wherever they stand: KEY-1.
func TestTwoDifferentKeysInOneRequestAreRefused(t *testing.T) {
	w := newWorld(t, errorsConfig)
	places := []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key", "?key"}
	for i, one := range places {
		for _, other := range places[i:] {
			request := httptest.NewRequest(http.MethodGet, w.url("/v1/models"), nil)
			request.RequestURI = ""
			for n, place := range []string{one, other} {
				secret := []string{errorsKey, "the-secret-of-the-listed-key"}[n]
				switch place {
				case "Authorization":
					request.Header.Add(place, "Bearer "+secret)
				case "?key":
					request.URL.RawQuery += "&key=" + secret
				default:
					request.Header.Add(place, secret)
				}
			}
			response, err := w.http.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusUnauthorized {
				t.Errorf("two keys in %s and %s: %d", one, other, response.StatusCode)
			}
		}
	}
}

// TestAKeyExpiresAtItsInstant, not before and not after: KEY-2.
func TestAKeyExpiresAtItsInstant(t *testing.T) {
	w := newWorld(t, `
models:
  - {name: m, provider: sim, upstream: "sim", price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: the-secret-of-the-mortal-key, expires_at: "2026-07-20T13:00:00+01:00"}
`)
	const key = "the-secret-of-the-mortal-key"
	w.clock.Set(start - 1)
	w.must(w.chat(key, "m"), 200, "")
	w.clock.Set(start)
	w.must(w.chat(key, "m"), 403, "apikey_inactive")
	w.must(w.do(context.Background(), http.MethodGet, "/v1/models", key, ""), 403, "apikey_inactive")
	w.must(w.do(context.Background(), http.MethodPost, "/v1/chat/completions", key, "{"), 403, "apikey_inactive")
	w.balanced()
}

// TestAKeyThatIsDisabledOrDeletedIsRefusedAtOnce, and enabled at once: KEY-2,
// ADM-4.
func TestAKeyThatIsDisabledOrDeletedIsRefusedAtOnce(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, reloadModels)
	made, err := w.admin.KeyCreate(ctx, admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some("k")}})
	if err != nil {
		t.Fatal(err)
	}
	models := func() answer { return w.do(ctx, http.MethodGet, "/v1/models", made.Secret, "") }
	for range 5 {
		w.must(w.chat(made.Secret, "m"), 200, "")
		w.must(models(), 200, "")
		if _, err := w.admin.KeyDisable(ctx, admin.KeyRequest{Key: "k"}); err != nil {
			t.Fatal(err)
		}
		w.must(models(), 403, "apikey_inactive")
		w.must(w.chat(made.Secret, "m"), 403, "apikey_inactive")
		if _, err := w.admin.KeyEnable(ctx, admin.KeyRequest{Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	w.must(w.chat(made.Secret, "m"), 200, "")
	if _, err := w.admin.KeyDelete(ctx, admin.KeyRequest{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	w.must(models(), 401, "invalid_api_key")
	w.must(w.chat(made.Secret, "m"), 401, "invalid_api_key")
	w.settled("1", "10")
}

// TestARotatedKeysOldSecretWorksForTheGraceAlone, and moves the same counters:
// KEY-3, BR-221.
func TestARotatedKeysOldSecretWorksForTheGraceAlone(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, reloadModels)
	// Four requests of 320 µ$ pass a cap of 1000 µ$.
	old, err := w.admin.KeyCreate(ctx, admin.KeyCreateRequest{Body: admin.KeyFields{
		Name: admin.Some("k"), Caps: admin.Some(admin.CapFields{Day: admin.Some("0.001")}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	rotated, err := w.admin.KeyRotate(ctx, admin.KeyRotateRequest{Key: "k", Body: admin.RotateFields{GraceSeconds: 60}})
	if err != nil {
		t.Fatal(err)
	}
	if rotated.ID != old.ID || rotated.Secret == old.Secret || rotated.Secret == "" {
		t.Fatalf("rotated %+v, was %+v", rotated, old)
	}
	w.must(w.chat(rotated.Secret, "m"), 200, "")
	w.clock.Set(start + time.Second.Microseconds())
	w.must(w.chat(old.Secret, "m"), 200, "")
	w.clock.Set(start + (59 * time.Second).Microseconds())
	w.must(w.chat(old.Secret, "m"), 200, "")
	w.clock.Set(start + (60 * time.Second).Microseconds() - 1)
	w.must(w.chat(old.Secret, "m"), 200, "")
	w.must(w.chat(old.Secret, "m"), 402, "day_limit_reached")
	w.must(w.chat(rotated.Secret, "m"), 402, "day_limit_reached")
	w.clock.Set(start + (60 * time.Second).Microseconds())
	w.must(w.chat(old.Secret, "m"), 401, "invalid_api_key")
	w.clock.Set(start + (61 * time.Second).Microseconds())
	w.must(w.chat(old.Secret, "m"), 401, "invalid_api_key")
	w.must(w.chat(rotated.Secret, "m"), 402, "day_limit_reached")
	w.settled("1", "10")
}

// TestWithoutAGraceTheOldSecretEndsAtOnce: KEY-3, BR-222.
func TestWithoutAGraceTheOldSecretEndsAtOnce(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, reloadModels)
	k, err := w.admin.KeyCreate(ctx, admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some("k")}})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		w.must(w.chat(k.Secret, "m"), 200, "")
		next, err := w.admin.KeyRotate(ctx, admin.KeyRotateRequest{Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		w.must(w.chat(k.Secret, "m"), 401, "invalid_api_key")
		w.must(w.chat(next.Secret, "m"), 200, "")
		k = next
	}
	w.settled("1", "10")
}

// TestARotationThatIsRepeatedRotatesOnce: BR-223.
func TestARotationThatIsRepeatedRotatesOnce(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, reloadModels)
	made, err := w.admin.KeyCreate(ctx, admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some("k")}})
	if err != nil {
		t.Fatal(err)
	}
	rotate := func() admin.KeyAnswer {
		t.Helper()
		k, err := w.admin.KeyRotate(ctx, admin.KeyRotateRequest{Key: "k", IdempotencyKey: "once"})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first, again := rotate(), rotate()
	if again.ID != first.ID || !again.Replayed || again.Secret != "" || first.ID != made.ID {
		t.Fatalf("first %+v, again %+v", first, again)
	}
	w.must(w.chat(first.Secret, "m"), 200, "")
	audit, err := w.admin.AuditList(ctx, admin.AuditListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range audit.Entries {
		if strings.HasSuffix(e.Action, "rotate") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d rotations are in the audit", n)
	}
}

// TestANewKeyCopiesTheTemplate where its maker left a value out, and keeps the
// copy: KEY-4.
func TestANewKeyCopiesTheTemplate(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, "key_template: {limits: {rpm: 1}, max_output_tokens: 7}\n"+reloadModels+`
keys:
  - {name: file, secret: the-secret-of-the-file-key}
  - {name: own, secret: the-secret-of-the-own-key, limits: {rpm: 0}}
`)
	copied, err := w.admin.KeyCreate(ctx, admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some("copied")}})
	if err != nil {
		t.Fatal(err)
	}
	cleared, err := w.admin.KeyCreate(ctx, admin.KeyCreateRequest{Body: admin.KeyFields{
		Name: admin.Some("cleared"), Limits: admin.Some(admin.RunFields{RPM: admin.Null[int64]()}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if copied.FromTemplate["limits.rpm"] != "2026-07-20" || cleared.FromTemplate["limits.rpm"] != "" {
		t.Errorf("from template: %v, %v", copied.FromTemplate, cleared.FromTemplate)
	}
	limited := func(secret string, so bool) {
		t.Helper()
		w.must(w.chat(secret, "m"), 200, "")
		if so {
			w.must(w.chat(secret, "m"), 429, "api_key_rpm_exceeded")
		} else {
			w.must(w.chat(secret, "m"), 200, "")
		}
	}
	limited(copied.Secret, true)
	limited(cleared.Secret, false)
	limited("the-secret-of-the-file-key", true)
	limited("the-secret-of-the-own-key", false)
	w.write("key_template: {limits: {rpm: 100}}\n" + reloadModels + `
keys:
  - {name: file, secret: the-secret-of-the-file-key}
  - {name: own, secret: the-secret-of-the-own-key}
`)
	w.restart()
	w.clock.Advance(time.Minute)
	limited(copied.Secret, true)
	limited("the-secret-of-the-file-key", true)
	w.balanced()
}
