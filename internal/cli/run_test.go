// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/cli"
)

const adminToken = "an-admin-token-of-some-length"

// recorded is an admin API that answers each "METHOD PATH" with the text of a
// file, or with the status that begins it.
type recorded struct {
	t       *testing.T
	answers map[string]string
	asked   []string
}

func (r *recorded) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.asked = append(r.asked, q.Method+" "+q.URL.RequestURI())
	if got := q.Header.Get("Authorization"); got != "Bearer "+adminToken {
		r.t.Errorf("Authorization is %q", got)
	}
	answer, ok := r.answers[q.Method+" "+q.URL.RequestURI()]
	if !ok {
		answer, ok = r.answers[q.Method+" "+q.URL.Path]
	}
	w.Header().Set("Content-Type", "application/json")
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"message":"there is no such key","type":"not_found_error","code":"not_found"}}`)
		return
	}
	_, _ = io.WriteString(w, answer)
}

// weir runs one command line against the recorded answers.
func (r *recorded) weir(args ...string) (code int, stdout, stderr string) {
	server := httptest.NewServer(r)
	defer server.Close()
	var out, errs bytes.Buffer
	env := func(name string) (string, bool) { return adminToken, name == "WEIR_ADMIN_TOKEN" }
	code = cli.Run(r.t.Context(), append(args, "--server", server.URL), env, &out, &errs)
	return code, out.String(), errs.String()
}

// Each folder below testdata is a command: what it says for people is compared
// with a golden file, what it says for scripts is the server's answer itself.
func TestTablesShowWhatTheServerAnswers(t *testing.T) {
	for _, c := range []struct{ name, args, request string }{
		{"key", "key show ci", "GET /api/v1/keys/ci"},
		{"key_made", "key create ci", "POST /api/v1/keys"},
		{"keys", "key list", "GET /api/v1/keys"},
		{"limits", "limits ci", "GET /api/v1/keys/ci/limits"},
		{"balance", "fund show", "GET /api/v1/funds"},
		{"booked", "fund top-up 25", "POST /api/v1/funds/entries"},
		{"entries", "fund entries", "GET /api/v1/funds/entries"},
		{"usage", "usage --by key,model,day", "GET /api/v1/usage"},
		{"requests", "requests", "GET /api/v1/requests"},
		{"settled", "explain 0199", "GET /api/v1/requests/0199"},
		{"refused", "explain 0199", "GET /api/v1/requests/0199"},
		{"verified", "verify", "POST /api/v1/verify"},
		{"budgets", "budget list", "GET /api/v1/models/budgets"},
		{"rate_limits", "rate-limit list", "GET /api/v1/models/rate-limits"},
		{"rate_limits", "rule list", "GET /api/v1/models/rate-limits"},
		{"plans", "plan list", "GET /api/v1/plans"},
		{"adjusted", "adjust 0199 --spend 0.01 --reason bill", "POST /api/v1/requests/0199/adjust"},
		{"limits", "key reset ci --reason bill", "POST /api/v1/keys/ci/reset"},
		{"prices", "prices list gpt", "GET /api/v1/prices"},
		{"price", "prices show gpt-5", "GET /api/v1/prices/model"},
		{"cost", "prices cost gpt-5 --input 1000 --tool-calls web_search=1 --audio-input-seconds 2.5 --tier priority", "POST /api/v1/prices/cost"},
		{"cost", "prices preview gpt-5 --input 1000 --cached 10", "POST /api/v1/prices/cost"},
		{"import", "prices import testdata/import.json --dry-run", "POST /api/v1/prices/import"},
		{"import_notes", "prices import testdata/import.json --notes --dry-run", "POST /api/v1/prices/import"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, err := os.ReadFile(filepath.Join("testdata", c.name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			r := &recorded{t: t, answers: map[string]string{c.request: string(answer)}}
			code, table, errs := r.weir(strings.Fields(c.args)...)
			if code != 0 || errs != "" {
				t.Fatalf("exit code %d: %s (asked %q)", code, errs, r.asked)
			}
			golden(t, filepath.Join("testdata", c.name+".golden"), table)
			code, raw, errs := r.weir(append(strings.Fields(c.args), "--json")...)
			if code != 0 || errs != "" || strings.TrimSpace(raw) != strings.TrimSpace(string(answer)) {
				t.Errorf("--json: exit code %d, %s\n%s", code, errs, raw)
			}
		})
	}
}

func TestDifferencesAreShownAndExitWithOne(t *testing.T) {
	answer, err := os.ReadFile("testdata/differs.json")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorded{t: t, answers: map[string]string{"POST /api/v1/verify": string(answer)}}
	code, table, errs := r.weir("verify")
	if code != 1 || errs != "" {
		t.Errorf("exit code %d: %s", code, errs)
	}
	golden(t, "testdata/differs.golden", table)
	if code, _, _ := r.weir("verify", "--json"); code != 1 {
		t.Errorf("--json: exit code %d", code)
	}
}

func TestARefusalGoesToStandardErrorAndExitsWithOne(t *testing.T) {
	r := &recorded{t: t}
	code, stdout, stderr := r.weir("key", "show", "nobody")
	if code != 1 || stdout != "" || !strings.Contains(stderr, "there is no such key") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
}

// Every page is asked for, and they make one table.
func TestAListOfKeysIsWhole(t *testing.T) {
	r := &recorded{t: t, answers: map[string]string{
		"GET /api/v1/keys":                      `{"keys":[{"name":"a","id":"key_a","status":"active"}],"next_cursor":"n1"}`,
		"GET /api/v1/keys?cursor=n1&limit=1000": `{"keys":[{"name":"b","id":"key_b","status":"active"}]}`,
	}}
	code, stdout, stderr := r.weir("key", "list")
	if code != 0 || stdout != "name  id     status\na     key_a  active\nb     key_b  active\n" {
		t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
}

// Names come from requests and files: none may move a terminal's cursor.
func TestControlCharactersNeverReachTheTerminal(t *testing.T) {
	r := &recorded{t: t, answers: map[string]string{
		"GET /api/v1/keys/x":        `{"name":"a\u001b[2Jb\u0007","id":"key_a","status":"active\r\n","team":"\u202eevil"}`,
		"GET /api/v1/keys/x/limits": `{"limits":[{"name":"\u001b]0;x\u0007","used":"1"}]}`,
		"GET /api/v1/requests/x":    `{"id":"x","message":"\u001b[31m"}`,
	}}
	for _, args := range [][]string{{"key", "show", "x"}, {"limits", "x"}, {"explain", "x"}} {
		code, stdout, stderr := r.weir(args...)
		if code != 0 || strings.ContainsAny(strings.ReplaceAll(stdout, "\n", ""), "\x1b\x07\r\u202e") {
			t.Errorf("%v: exit code %d\n%q\n%s", args, code, stdout, stderr)
		}
	}
}

// What is wrong with a command line exits with 2 and asks nobody.
func TestAWrongCommandLineExitsWithTwo(t *testing.T) {
	r := &recorded{t: t}
	for _, args := range []string{
		"nonsense", "key", "key create", "key create a b", "key show", "usage --by colour", "fund adjust --amount=-1",
		"requests --limit x", "prices cost m --input many", "explain", "budget raise b --usd 5",
		"budget raise b --reason r", "budget create b --usd 5 --tokens 5", "budget reset b", "adjust r --reason r", "adjust r --spend 1", "rate-limit reset r", "verify --nonsense", "key create a --allow-none --allow-all",
	} {
		code, stdout, stderr := r.weir(strings.Fields(args)...)
		if code != 2 || stdout != "" || !strings.HasPrefix(stderr, "weir: ") {
			t.Errorf("%s: exit code %d\n%s\n%s", args, code, stdout, stderr)
		}
	}
	if len(r.asked) != 0 {
		t.Errorf("asked: %q", r.asked)
	}
}

// A change says what is given and nothing else (KEY-4): 0 and null are values.
func TestAChangeSaysOnlyWhatIsGiven(t *testing.T) {
	for args, want := range map[string]string{
		"key set k --day-cap 5":                                                    `{"caps":{"day":"5"}}`,
		"key set k --day-cap 0 --rpm 0":                                            `{"caps":{"day":"0"},"limits":{"rpm":0}}`,
		"key set k --allow-none":                                                   `{"allowed_models":[]}`,
		"key set k --allow-all --expires never":                                    `{"allowed_models":null,"expires_at":null}`,
		"key set k --allow a --allow b/* --name new":                               `{"name":"new","allowed_models":["a","b/*"]}`,
		"key set k --max-output-tokens 9 --user u":                                 `{"user":"u","max_output_tokens":9}`,
		"key set k --plan p --attribute-users never":                               `{"plan":"p","attribute_users":null}`,
		"key set k --no-require-user":                                              `{"require_user":false}`,
		"key set k --no-count-cached":                                              `{"limits":{"count_cached":false}}`,
		"budget create b --scope org --usd 500 --period month --warn 80 --warn 90": `{"name":"b","scope":"org","metric":"spend","limit_usd":"500","period":"month","warn_percent":[80,90]}`,
		"budget create b --scope user --tokens 9 --window 1h --no-count-cached":    `{"name":"b","scope":"user","metric":"tokens","limit":9,"window":"1h","count_cached":false}`,
		"budget update b --each --no-warn --enforcement soft":                      `{"subject":null,"warn_percent":null,"enforcement":"soft"}`,
		"budget raise b --usd 5 --reason r":                                        `{"amount_usd":"5","reason":"r"}`,
		"budget reset b --subject ada --reason r":                                  `{"subject":"ada","reason":"r"}`,
		"rate-limit update r --no-enabled --limit 9":                               `{"limit":9,"enabled":false}`,
		"plan update p --allow-all --max-output-tokens 0":                          `{"allowed_models":null,"max_output_tokens":0}`,
		"adjust r --tokens 0 --reason r":                                           `{"tokens":0,"reason":"r"}`,
	} {
		var body []byte
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			body, _ = io.ReadAll(q.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{}`)
		}))
		env := func(string) (string, bool) { return adminToken, true }
		var errs bytes.Buffer
		code := cli.Run(t.Context(), append(strings.Fields(args), "--server", server.URL), env, io.Discard, &errs)
		server.Close()
		if code != 0 || strings.TrimSpace(string(body)) != want {
			t.Errorf("%s: exit code %d, sent %s, want %s\n%s", args, code, body, want, &errs)
		}
	}
}
