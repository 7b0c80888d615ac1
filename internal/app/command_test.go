// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/cli"
	"github.com/weirhq/weir/internal/config"
)

// commands are lines of the command line on a store that has a key k and a request
// %REQUEST%. %N% is another name in each run, %BUCKET% a key of a retry's.
var commands = []struct{ line, want string }{
	{"check %CONFIG%", "is valid"},
	{"migrate --status", "this program knows"},
	{"migrate", "nothing to do"},
	{"key create made%N%", "shown this once"},
	{"key list", "made%N%"},
	{"key show k", "active"},
	{"key set made%N% --day-cap 5 --rpm 7", "$5.00"},
	{"key rotate made%N%", "shown this once"},
	{"key reset k --reason r", "day cap"},
	{"key disable made%N%", "disabled"},
	{"key enable made%N%", "active"},
	{"fund show", "balance"},
	{"fund top-up 25", "top-up"},
	{"fund credit 1", "credit"},
	{"fund adjust --amount=-1 --reason r", "balance"},
	{"fund entries", "top-up"},
	{"budget create b%N% --scope org --usd 500 --period month", "b%N%"},
	{"budget list", "b%N%"},
	{"budget update b%N% --usd 600", "600"},
	{"budget raise b%N% --usd 5 --reason r", "b%N%"},
	{"budget reset b%N% --reason r", "b%N%"},
	{"budget delete b%N%", ""},
	{"rate-limit create r%N% --subject-kind org --metric requests --limit 900 --window-seconds 3600", "r%N%"},
	{"rate-limit list", "r%N%"},
	{"rate-limit update r%N% --limit 901", "901"},
	{"rate-limit reset r%N% --reason r", "r%N%"},
	{"rate-limit delete r%N%", ""},
	{"plan create p%N% --max-output-tokens 60", "p%N%"},
	{"plan list", "p%N%"},
	{"plan show p%N%", "60"},
	{"plan update p%N% --max-output-tokens 61", "61"},
	{"plan delete p%N%", ""},
	{"limits k", "day cap"},
	{"usage --by key,model", "k"},
	{"requests", "%REQUEST%"},
	{"explain %REQUEST%", "%REQUEST%"},
	{"adjust %REQUEST% --spend 0.01 --reason bill", "%REQUEST%"},
	{"prices list gpt-5", "gpt-5"},
	{"prices show m", "m"},
	{"prices cost m --input 1000", "0.001"},
	{"prices preview m --input 1000 --output 0", "0.001"},
	{"prices import ../price/feed/testdata/models.dev.json --dry-run", "nothing was changed"},
	{"prices import ../price/feed/testdata/models.dev.json", "models.dev"},
	{"prices list claude-x --provider anthropic", "imported"},
	{"replicas list", "running"},
	{"verify", "the books balance"},
	{"key delete made%N%", ""},
}

// notOnAStore are commands that are about no store, or about more than this one.
var notOnAStore = map[string]string{
	"serve": "runs", "demo": "runs", "simulator": "runs", "version": "asks no store", "ready": "asks a server over HTTP",
	"move":            "TestAStoreIsMovedWhole",
	"backup":          "TestABackupOfADatabaseIsItsOwn",
	"replicas forget": "TestForgettingADeadReplicaChargesWhatItLeftAtOnce",
}

// weir runs one command line with the configuration of w.
func (w *world) weir(env func(string) (string, bool), line string) (code int, stdout, stderr string) {
	args := strings.Fields(line)
	if args[0] != "check" {
		args = append(args, "--config", w.config)
	}
	var out, errs bytes.Buffer
	code = cli.Run(context.Background(), args, env, &out, &errs)
	return code, out.String(), errs.String()
}

// TestEveryCommandWorksOnADatabase: ADM-6, STO-1. Through the server of the same
// configuration, beside one that runs elsewhere, and without any; what one of them
// has changed the next one finds.
func TestEveryCommandWorksOnADatabase(t *testing.T) {
	url := database.Database(t)
	text := "funds: prepaid\n" + replicaModel + "keys: [{name: k, secret: " + replicaKey + ", caps: {day: \"50\"}}]\n"
	w := newWorldOn(t, url, start, text, func(o *app.Options) { o.Clock = nil })
	w.fund("10")
	none := func(string) (string, bool) { return "", false }
	elsewhere := t.TempDir()
	for i, c := range []struct {
		name string
		env  func(string) (string, bool)
		stop bool
	}{
		{"through its server", none, false},
		{"beside a server", func(name string) (string, bool) { return elsewhere, name == config.EnvStateDir }, false},
		{"without a server", none, true},
	} {
		a := w.must(w.chat(replicaKey, "m"), 200, "")
		w.quietly()
		if c.stop {
			w.stop()
		}
		names := strings.NewReplacer("%N%", string(rune('a'+i)), "%REQUEST%", a.header.Get("X-Weir-Request-Id"), "%CONFIG%", w.config)
		for _, command := range commands {
			line, want := names.Replace(command.line), names.Replace(command.want)
			if c.stop && line == "replicas list" {
				want = "stopped"
			}
			if code, stdout, stderr := w.weir(c.env, line); code != 0 || !strings.Contains(stdout, want) || stderr != "" {
				t.Errorf("%s: weir %s: exit code %d, want %q\n%s%s", c.name, line, code, want, stdout, stderr)
			}
		}
		code, stdout, stderr := w.weir(c.env, "key create scripted"+names.Replace("%N%")+" --json")
		var made struct{ Secret string }
		if err := json.Unmarshal([]byte(stdout), &made); code != 0 || err != nil || made.Secret == "" {
			t.Fatalf("%s: a key for a script: exit code %d\n%s%s", c.name, code, stdout, stderr)
		}
		if c.stop {
			w.start()
		}
		w.must(w.do(context.Background(), http.MethodGet, "/v1/key", made.Secret, ""), 200, "")
	}
	w.balanced()
}

// quietly waits until nothing runs.
func (w *world) quietly() {
	w.t.Helper()
	w.eventually("the settlements", func() bool {
		open, err := w.server.OpenUntil(context.Background())
		return err == nil && len(open) == 0
	})
}

// TestTheTableOfCommandsIsWhole: a command that is added is tried on a database, or
// it is said why not.
func TestTheTableOfCommandsIsWhole(t *testing.T) {
	text, err := cli.Reference()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "## weir ")
		if !ok || notOnAStore[name] != "" {
			continue
		}
		tried := false
		for _, c := range commands {
			tried = tried || c.line == name || strings.HasPrefix(c.line, name+" ")
		}
		if !tried {
			t.Errorf("weir %s is not tried on a database", name)
		}
	}
}

// TestABackupOfADatabaseIsItsOwn: what is PostgreSQL's is said in a sentence.
func TestABackupOfADatabaseIsItsOwn(t *testing.T) {
	w := newSharedWorld(t, replicaModel)
	none := func(string) (string, bool) { return "", false }
	if code, _, stderr := w.weir(none, "backup "+filepath.Join(t.TempDir(), "copy.db")); code != 1 || !strings.Contains(stderr, "pg_dump") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
