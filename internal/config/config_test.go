// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/tenant"
)

var update = flag.Bool("update", false, "rewrite the wanted texts")

// variables is an environment.
func variables(pairs ...string) config.Lookup {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// environment is what the cases below see, unless they bring their own.
const environment = "CI_KEY=ci-secret-0123456789\nOPENAI_API_KEY=sk-upstream-0123456789\nWEIR_ADMIN_TOKEN=admin-token-0123456789\n"

func lookupOf(text string) config.Lookup {
	var pairs []string
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		pairs = append(pairs, name, value)
	}
	return variables(pairs...)
}

// Each case is a file and the problems that it has, word by word: every one of
// them names its line and its path, and says what to write instead.
func TestEveryFaultOfAFileNamesItsLineAndPath(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]string{"env": environment}
			for _, f := range archive.Files {
				files[f.Name] = string(f.Data)
			}
			got := ""
			if _, err := config.Parse("weir.yaml", []byte(files["weir.yaml"]), lookupOf(files["env"])); err != nil {
				got = err.Error() + "\n"
			}
			if got == "" {
				t.Error("the file is accepted")
			}
			if *update {
				rewrite(t, path, archive, got)
				return
			}
			if diff := cmp.Diff(files["want"], got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func rewrite(t *testing.T, path string, archive *txtar.Archive, want string) {
	t.Helper()
	kept := archive.Files[:0]
	for _, f := range archive.Files {
		if f.Name != "want" {
			kept = append(kept, f)
		}
	}
	archive.Files = append(kept, txtar.File{Name: "want", Data: []byte(want)})
	if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
		t.Fatal(err)
	}
}

func sample(t *testing.T) *config.File {
	t.Helper()
	text, err := os.ReadFile("../../docs/weir.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := config.Parse("weir.yaml", text, lookupOf(environment))
	if err != nil {
		t.Fatalf("the sample is refused:\n%v", err)
	}
	return f
}

func TestTheSampleSaysWhatItShows(t *testing.T) {
	f := sample(t)
	if f.Process.Listen != "127.0.0.1:8787" || f.Process.AdminToken != "admin-token-0123456789" {
		t.Errorf("process is %+v", f.Process)
	}
	if path, ok := f.Process.StorePath(); !ok || path != "weir.db" {
		t.Errorf("store path is %q, %t", path, ok)
	}
	if len(f.Providers) != 2 || f.Providers[0].Credential != "sk-upstream-0123456789" || f.Providers[1].Credential != "" {
		t.Errorf("providers are %+v", f.Providers)
	}
	if len(f.Models) != 2 || f.Models[0].Value.Prices[0].Input.String() != "0.15" || !f.Models[1].Value.Free {
		t.Errorf("models are %+v", f.Models)
	}
	w := f.Workspaces[0]
	if w.Name != tenant.DefaultWorkspace || !w.Declared || w.Settings.Zone != "Europe/Berlin" || *w.Settings.Limits.TPM != 200000 {
		t.Errorf("workspace is %+v", w)
	}
	k := w.Keys[0]
	if k.Value.Name != "ci" || k.SecretHash != tenant.HashSecret("ci-secret-0123456789") || *k.Value.Caps.Day != 5*money.Dollar {
		t.Errorf("key is %+v", k.Value)
	}
	if !k.Explicit["caps.day"] || k.Explicit["expires_at"] {
		t.Errorf("explicit fields are %v", k.Explicit)
	}
}

// A running server compares what is declared with what it has: the same text
// must always give the same bodies, and no secret may be in one.
func TestWhatIsDeclaredIsStableAndHoldsNoSecret(t *testing.T) {
	first, err := sample(t).Desired()
	if err != nil {
		t.Fatal(err)
	}
	second, err := sample(t).Desired()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("declared (-first +second):\n%s", diff)
	}
	var kinds []string
	for _, d := range first {
		name := d.Kind + " " + d.Workspace + "/" + d.Name
		if d.OwnerKind != "" {
			name += " of " + d.OwnerKind + " " + d.OwnerName
		}
		kinds = append(kinds, name)
		for line := range strings.Lines(environment) {
			if _, secret, _ := strings.Cut(strings.TrimSpace(line), "="); strings.Contains(string(d.Body), secret) {
				t.Errorf("the body of %s holds a secret: %s", d.Name, d.Body)
			}
		}
	}
	want := []string{
		"workspace default/default", "provider /openai", "provider /local", "model /gpt-4o-mini", "model /local-llama", "plan default/intern",
		"key default/ci", "budget default/hourly of key ci", "budget default/intern day of plan intern", "budget default/org month",
		"budget default/each developer", "rate_limit default/interactive users",
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("declared objects (-want +got):\n%s", diff)
	}
	if got, want := first[6].Origin, "weir.yaml:32"; got != want {
		t.Errorf("the key's origin is %s, want %s", got, want)
	}
}

func TestNoFileIsTheDefaultsAndDeclaresNothing(t *testing.T) {
	f, err := config.Default(variables())
	if err != nil {
		t.Fatal(err)
	}
	if f.Process.Listen != "127.0.0.1:8787" || f.Process.HoldMicros != 30*60*1_000_000 || f.Process.AdminAddress() != f.Process.Listen {
		t.Errorf("process is %+v", f.Process)
	}
	if declared, err := f.Desired(); err != nil || len(declared) != 0 {
		t.Errorf("declared is %v, %v", declared, err)
	}
}

// A file that gives no setting of the default workspace leaves it to the API.
func TestAFileDeclaresTheDefaultWorkspaceOnlyWhenItDescribesIt(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "# nothing\n": false, "---\n": false, "listen: 127.0.0.1:1\n": false,
		"funds: open\n": true, "limits: {rpm: 0}\n": true, "time_zone: UTC\r\n": true,
	} {
		f, err := config.Parse("weir.yaml", []byte(text), variables())
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := f.Workspaces[0].Declared; got != want {
			t.Errorf("%q declares the default workspace: %t, want %t", text, got, want)
		}
	}
}

func TestTheEnvironmentHasTheLastWord(t *testing.T) {
	env := variables(config.EnvListen, "0.0.0.0:80", config.EnvStore, "sqlite:/data/w.db", config.EnvHold, "5m",
		config.EnvAdminToken, "another-token-0123456789", config.EnvLogLevel, "")
	f, err := config.Parse("weir.yaml", []byte("listen: 127.0.0.1:1\nlog_level: warn\nreservation_hold: 10m\n"), env)
	if err != nil {
		t.Fatal(err)
	}
	p := f.Process
	if p.Listen != "0.0.0.0:80" || p.Store != "sqlite:/data/w.db" || p.HoldMicros != 300_000_000 || p.LogLevel != "warn" ||
		p.AdminToken != "another-token-0123456789" {
		t.Errorf("process is %+v", p)
	}
	if f, err := config.Default(variables(config.EnvRetention, "30d")); err != nil || f.Process.RetentionMicros != 30*24*3600*1_000_000 {
		t.Errorf("RES-6: a retention is refused: %v", err)
	}
	_, err = config.Default(variables(config.EnvHold, "soon"))
	if got, want := err.Error(), `environment: WEIR_RESERVATION_HOLD: must be a length of time from 1m to 1d, is "soon"`; got != want {
		t.Errorf("error is\n%s, want\n%s", got, want)
	}
}

// BUD-6: the environment can move the store under a file that was right.
func TestAMemoryStoreFromTheEnvironmentIsHeldToTheFile(t *testing.T) {
	text := "keys:\n  - {name: a, secret: aaaaaaaaaaaaaaaa, caps: {day: 1}}\n"
	if _, err := config.Parse("weir.yaml", []byte(text), variables()); err != nil {
		t.Fatal(err)
	}
	_, err := config.Parse("weir.yaml", []byte(text), variables(config.EnvStore, config.Memory))
	var problems config.Problems
	if !errors.As(err, &problems) || problems[0].Line != 2 || problems[0].Path != "keys[0].caps" {
		t.Errorf("error is %v", err)
	}
}

func TestAVariableChangesNoStructureAndIsReadAsWhatIsWanted(t *testing.T) {
	env := variables("RPM", "7", "NAME", "a: [b", "COST", "1.50")
	text := "limits: {rpm: \"${RPM}\"}\nkeys:\n  - name: ${NAME}\n    secret: $$literal-$${RPM}-and-$5\n    caps: {day: \"${COST}\"}\n"
	f, err := config.Parse("weir.yaml", []byte(text), env)
	if err != nil {
		t.Fatal(err)
	}
	k := f.Workspaces[0].Keys[0]
	if *f.Workspaces[0].Settings.Limits.RPM != 7 || k.Value.Name != "a: [b" || k.Value.Caps.Day.String() != "1.5" {
		t.Errorf("key is %+v", k.Value)
	}
	if k.SecretHash != tenant.HashSecret("$$literal-${RPM}-and-$5") {
		t.Error("the dollars of the secret were changed")
	}
}

// A secret that is put into the wrong field must not come out in the error.
func TestNoErrorShowsWhatTheEnvironmentHolds(t *testing.T) {
	const secret = "sk-very-secret-0123456789 \x01"
	for _, field := range []string{
		"listen", "store", "postgres: {listen_url: X}", "admin_token", "log_level", "reservation_hold", "reservation_retention", "on_short", "max_users", "local_rate_limit",
		"local_rate_limit: {fill_interval: X}", "local_rate_limit: {type: X}", "local_rate_limit: {max_tokens: X}",
		"budgets: [{name: a, scope: X}]", "budgets: [{name: a, scope: user, subject: X}]", "budgets: [{name: a, scope: key, subject: X}]",
		"budgets: [{name: a, metric: X}]", "budgets: [{name: a, metric: spend, limit: X}]", "budgets: [{name: a, metric: tokens, limit: X}]",
		"budgets: [{name: a, period: X}]", "budgets: [{name: a, period: day, time_zone: X}]", "budgets: [{name: a, window: X}]",
		"budgets: [{name: a, model: X}]", "budgets: [{name: a, provider: X}]", "budgets: [{name: a, warn_percent: X}]", "budgets: [{name: a, warn_percent: [X]}]",
		"budgets: [{name: a, enforcement: X}]", "budgets: [{name: X}]", "rate_limits: [{name: a, subject_kind: tag, subject_id: X}]",
		"rate_limits: [{name: a, window_seconds: X}]", "rate_limits: [{name: a, enabled: X}]", "plans: [{name: X}]", "plans: [{name: a, allowed_models: [X]}]",
		"keys: [{name: a, secret: aaaaaaaaaaaaaaaa, plan: X}]", "keys: [{name: a, secret: aaaaaaaaaaaaaaaa, budgets: [{window: X}]}]",
		"type", "funds", "credit_line", "time_zone", "limits", "key_template", "budget_refusal", "hide_amounts",
		"providers: [{name: a, auth: none, base_url: X}]", "providers: [{name: a, base_url: 'http://a', api_key: X}]", "providers: [{name: a, base_url: 'http://a', auth: X}]",
		"providers: [{name: a, auth: none, base_url: 'http://a', headers: {a: X}}]", "providers: [{name: a, auth: none, base_url: 'http://a', timeouts: {idle: X}}]",
		"models: [{name: a, provider: b, price: X}]", "models: [{name: a, provider: b, price: {input: X}}]", "models: [{name: a, provider: b, context_tokens: X}]",
		"keys: [{name: a, secret: X}]", "keys: [{name: a, secret_sha256: X}]", "keys: [{name: a, secret: aaaaaaaaaaaaaaaa, caps: {day: X}}]", "keys: [{name: a, secret: aaaaaaaaaaaaaaaa, expires_at: X}]",
	} {
		text := strings.ReplaceAll(field, "X", `"${SECRET}"`)
		if text == field {
			text = field + `: "${SECRET}"`
		}
		_, err := config.Parse("weir.yaml", []byte(text), variables("SECRET", secret))
		if err == nil {
			t.Errorf("%s: accepted", text)
		} else if strings.Contains(err.Error(), "very-secret") {
			t.Errorf("%s: the error shows the secret: %v", text, err)
		}
	}
}

func TestAFileIsBoundedInSizeDepthAndWidth(t *testing.T) {
	for name, text := range map[string]string{
		"size":    strings.Repeat("#", config.MaxFileBytes+1),
		"lists":   strings.Repeat("[", 100_000),
		"objects": strings.Repeat("{a: ", 100_000),
		"entries": strings.Repeat("- ", 200_000),
		"keys":    strings.Repeat("? ", 200_000),
		"width":   strings.Repeat("a: b\n", 100_000),
		"indents": func() string {
			var b strings.Builder
			for i := range 1_000 {
				b.WriteString(strings.Repeat(" ", i) + "a:\n")
			}
			return b.String()
		}(),
	} {
		if _, err := config.Parse("weir.yaml", []byte(text), variables()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestLoadNamesTheFileThatIsMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.yaml")
	if _, err := config.Load(path); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("error is %v", err)
	}
}

func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("../../docs/weir.example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	for _, seed := range []string{"a: [1\n", "? x\n", "- &a b\n- *a\n", "a: |\n  b\n", "keys: [{name: x}]\n", "workspaces: [{name: a, keys: null}]", "\"\\x\"", "${", "a: !!int b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := config.Parse("weir.yaml", []byte(text), lookupOf(environment))
		if err != nil {
			if err.Error() == "" {
				t.Error("an error says nothing")
			}
			return
		}
		if _, err := file.Desired(); err != nil {
			t.Errorf("accepted, but cannot be written: %v", err)
		}
	})
}
