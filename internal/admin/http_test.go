// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admin/client"
	"github.com/weirhq/weir/internal/fault"
)

var update = flag.Bool("update", false, "write api/openapi.json")

func (w *world) handler(who admin.Authenticate) http.Handler {
	w.t.Helper()
	h, err := admin.Handler(w.Service, who)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

func as(a admin.Actor) admin.Authenticate {
	return func(*http.Request) (admin.Actor, error) { return a, nil }
}

func send(h http.Handler, method, target, body string, headers ...string) (*httptest.ResponseRecorder, admin.ErrorAnswer) {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, reader)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var refused admin.ErrorAnswer
	_ = json.Unmarshal(w.Body.Bytes(), &refused)
	return w, refused
}

var parameter = regexp.MustCompile(`\{[a-z]+\}`)

// request is a request to an operation that its permission check sees.
func requestTo(o admin.Operation) (method, target, body string) {
	target = admin.Base + parameter.ReplaceAllString(o.Path, "x")
	if o.Op == admin.OpPriceShow {
		target += "?model=x"
	}
	if o.Method == http.MethodPost || o.Method == http.MethodPatch {
		switch o.Op {
		case admin.OpKeyCreate, admin.OpKeyUpdate:
			body = `{"name":"x"}`
		case admin.OpFundsBook:
			body = `{"kind":"credit","amount":"1"}`
		case admin.OpPriceCost:
			body = `{"model":"x"}`
		default:
			body = `{}`
		}
	}
	return o.Method, target, body
}

// BR-194 and ADM-2: every operation × every role, nobody's included.
func TestEveryOperationIsOpenToItsRolesAlone(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		nobody := w.handler(func(*http.Request) (admin.Actor, error) {
			return admin.Actor{}, fault.New(fault.Unauthorized, "nobody")
		})
		roles := append([]admin.Role{"", "key", "user"}, admin.Roles()...)
		handlers := map[admin.Role]http.Handler{}
		for _, role := range roles {
			handlers[role] = w.handler(as(admin.Actor{Name: "a", Role: role, Workspace: "default"}))
		}
		for _, o := range admin.Operations() {
			method, target, body := requestTo(o)
			if got, refused := send(nobody, method, target, body); got.Code != 401 || refused.Detail.Code != "invalid_admin_token" {
				t.Errorf("%s by nobody: %d %s", o.Op, got.Code, got.Body)
			}
			may := false
			for _, role := range roles {
				may = may || role == o.Least
				got, refused := send(handlers[role], method, target, body)
				if forbidden := got.Code == 403; forbidden == may || got.Code == 401 {
					t.Errorf("%s by role %q: %d %s, may %t", o.Op, role, got.Code, got.Body, may)
				}
				if !may && (refused.Detail.Code != "forbidden" || refused.Detail.Type != "permission_error" || refused.Detail.RequestID == "") {
					t.Errorf("%s by role %q: %s", o.Op, role, got.Body)
				}
			}
			if !may {
				t.Errorf("%s has the unknown role %q", o.Op, o.Least)
			}
		}
	})
}

// The table is whole: every method of the service that takes an actor has its
// line, is served, and can be called by the client.
func TestEveryOperationIsInTheTableServedAndCallable(t *testing.T) {
	count := func(v any) int {
		n := 0
		for i := range reflect.TypeOf(v).NumMethod() {
			m := reflect.TypeOf(v).Method(i).Type
			if m.NumOut() == 2 && m.NumIn() >= 3 && strings.HasSuffix(m.In(m.NumIn()-1).Name(), "Request") {
				n++
			}
		}
		return n
	}
	table := len(admin.Operations())
	if service, calls := count(&admin.Service{}), count(&client.Client{}); service != table || calls != table {
		t.Errorf("%d lines in the table, %d methods of the service, %d of the client", table, service, calls)
	}
}

// BR-195: neither kind of credential opens what the other does; BR-204: none is
// repeated in an error.
func TestTheTokenAloneOpensTheAPI(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		h := w.handler(w.ByToken())
		status := func(headers ...string) int {
			t.Helper()
			got, refused := send(h, "GET", admin.Base+"/status", "", headers...)
			for i := 1; i < len(headers); i += 2 {
				if secret := headers[i][strings.LastIndexByte(headers[i], ' ')+1:]; secret != "" && strings.Contains(got.Body.String(), secret) {
					t.Errorf("the answer repeats %s", headers[i])
				}
			}
			if got.Code == 401 && (refused.Detail.Type != "authentication_error" || got.Header().Get("WWW-Authenticate") == "") {
				t.Errorf("answer %s", got.Body)
			}
			return got.Code
		}
		if got := status("Authorization", "Bearer anything-at-all"); got != 401 {
			t.Errorf("without any token made: %d", got)
		}
		token, err := w.EnsureToken(ctx)
		if err != nil || token == "" {
			t.Fatal(err)
		}
		if again, err := w.EnsureToken(ctx); err != nil || again != "" {
			t.Errorf("a second token %q, %v", again, err)
		}
		key := w.key("ci", nil)
		for _, c := range []struct {
			headers []string
			want    int
		}{
			{[]string{"Authorization", "Bearer " + token}, 200},
			{[]string{"Authorization", "bearer " + token}, 200},
			{[]string{"Authorization", "Bearer " + key.Secret}, 401},
			{[]string{"x-api-key", token}, 401},
			{[]string{"x-api-key", key.Secret}, 401},
			{[]string{"Authorization", "Basic " + token}, 401},
			{[]string{"Authorization", "Bearer " + token + "x"}, 401},
			{[]string{"Authorization", "Bearer "}, 401},
			{nil, 401},
		} {
			if got := status(c.headers...); got != c.want {
				t.Errorf("%v: %d, want %d", c.headers, got, c.want)
			}
		}
		if _, _, err := w.directory.Identify(ctx, token); err == nil {
			t.Error("an admin token is no API key")
		}
		for _, bad := range []string{key.Secret, "short", "with spaces in it, long enough"} {
			if err := w.SetToken(ctx, bad); err == nil {
				t.Errorf("%q was taken as admin token", bad)
			}
		}
		if err := w.SetToken(ctx, "a-token-of-the-file"); err != nil {
			t.Fatal(err)
		}
		if got := status("Authorization", "Bearer "+token); got != 401 {
			t.Errorf("the token before: %d", got)
		}
	})
}

// ADM-1: a system token names the workspace, another one is of its own.
func TestATokenSeesItsWorkspace(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		w.apply(declaredWorkspace(t, "other", 1, nil))
		for _, c := range []struct {
			actor  admin.Actor
			header string
			want   string
		}{
			{system, "", "default"},
			{system, "other", "other"},
			{system, "nowhere", ""},
			{admin.Actor{Name: "v", Role: admin.Viewer, Workspace: "other"}, "", "other"},
			{admin.Actor{Name: "v", Role: admin.Viewer, Workspace: "other"}, "other", "other"},
			{admin.Actor{Name: "v", Role: admin.Viewer, Workspace: "other"}, "default", ""},
		} {
			got, refused := send(w.handler(as(c.actor)), "GET", admin.Base+"/workspace", "", admin.WorkspaceHeader, c.header)
			var shown admin.WorkspaceAnswer
			if err := json.Unmarshal(got.Body.Bytes(), &shown); err != nil || shown.Name != c.want || c.want == "" && refused.Detail.Code != "not_found" {
				t.Errorf("%+v asking for %q: %d %s", c.actor, c.header, got.Code, got.Body)
			}
		}
	})
}

// ERR-5 and ADM-5: whatever is wrong with a request is told in the API's shape.
func TestBadRequestsAreRefusedInOneShape(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		h := w.handler(admin.BySocket())
		for name, c := range map[string]struct {
			method, target, body, media string
			status                      int
			code, param                 string
		}{
			"no such path":       {"GET", "/api/v1/nothing", "", "", 404, "not_found", ""},
			"no such method":     {"PUT", "/api/v1/keys", "{}", "", 405, "method_not_allowed", ""},
			"unknown query":      {"GET", "/api/v1/keys?colour=red", "", "", 400, "invalid_request", "colour"},
			"mistyped query":     {"GET", "/api/v1/keys?limit=many", "", "", 400, "invalid_request", "limit"},
			"missing query":      {"GET", "/api/v1/prices/model", "", "", 400, "invalid_request", "model"},
			"unknown field":      {"POST", "/api/v1/keys", `{"name":"k","rpm":1}`, "", 400, "invalid_request", "rpm"},
			"other letter case":  {"POST", "/api/v1/keys", `{"Name":"k"}`, "", 400, "invalid_request", "Name"},
			"broken JSON":        {"POST", "/api/v1/keys", `{"name":`, "", 400, "invalid_request", ""},
			"two values":         {"POST", "/api/v1/keys", `{"name":"k"}{"name":"l"}`, "", 400, "invalid_request", ""},
			"no body":            {"POST", "/api/v1/keys", "", "", 400, "invalid_request", ""},
			"null":               {"POST", "/api/v1/keys", "null", "", 400, "invalid_request", ""},
			"a list":             {"POST", "/api/v1/keys", "[]", "", 400, "invalid_request", ""},
			"too large":          {"POST", "/api/v1/keys", `{"name":"` + strings.Repeat("k", 1<<20) + `"}`, "", 413, "request_too_large", ""},
			"a form":             {"POST", "/api/v1/keys", "name=k", "application/x-www-form-urlencoded", 415, "invalid_request", "Content-Type"},
			"a float for money":  {"POST", "/api/v1/funds/entries", `{"kind":"credit","amount":1.5}`, "", 400, "invalid_request", "amount"},
			"a long key of once": {"POST", "/api/v1/keys", `{"name":"k"}`, "", 400, "invalid_request", "Idempotency-Key"},
		} {
			headers := []string{"X-None", ""}
			if c.media != "" {
				headers = []string{"Content-Type", c.media}
			}
			if name == "a long key of once" {
				headers = []string{"Idempotency-Key", strings.Repeat("k", 256)}
			}
			got, refused := send(h, c.method, c.target, c.body, headers...)
			if got.Code != c.status || refused.Detail.Code != c.code || refused.Detail.Param != c.param ||
				got.Header().Get("Content-Type") != "application/json" || refused.Detail.Message == "" ||
				refused.Detail.RequestID != got.Header().Get("X-Weir-Request-Id") || refused.Detail.Type != fault.TypeFor(c.status) {
				t.Errorf("%s: %d %v %s", name, got.Code, got.Header(), got.Body)
			}
		}
		if got, _ := send(h, "PUT", "/api/v1/keys", "{}"); got.Header().Get("Allow") != "GET, POST" {
			t.Errorf("Allow %q", got.Header().Get("Allow"))
		}
		if list, err := w.KeyList(t.Context(), system, admin.KeyListRequest{}); err != nil || len(list.Keys) != 0 {
			t.Errorf("stored %+v, %v", list, err)
		}
	})
}

// A store that cannot be asked is no refusal: 503, and when to ask again.
func TestAStoreThatIsDownAnswers503(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		h := w.handler(admin.BySocket())
		if err := w.book.Close(); err != nil {
			t.Fatal(err)
		}
		got, refused := send(h, "GET", admin.Base+"/keys", "")
		if got.Code != 503 || refused.Detail.Code != "service_unavailable" || got.Header().Get("Retry-After") != "2" {
			t.Errorf("%d %v %s", got.Code, got.Header(), got.Body)
		}
	})
}

func TestTheDescriptionIsTheCommittedOne(t *testing.T) {
	path := filepath.Join("..", "..", "api", "openapi.json")
	overEvery(t, func(t *testing.T, w *world) {
		got, _ := send(w.handler(admin.BySocket()), "GET", admin.Base+"/openapi.json", "")
		if got.Code != 200 {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
		if *update {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, got.Body.Bytes(), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || string(want) != got.Body.String() {
			t.Errorf("api/openapi.json is not what the server says (%v): run go test ./internal/admin -update", err)
		}
	})
}
