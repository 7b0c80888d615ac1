// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/tenant"
)

// docs/configuration.md is held to the code. The strict reader is asked about
// every word that could be a field, in every object: it must know the fields
// that the page names, and no other.

// object is one that the file can have: a file in which %s stands for its
// fields, and the places on the page that describe them, each a heading with
// the path below it.
type object struct {
	file  string
	pages [][2]string
	later string   // where the page lists what is refused here for now
	less  []string // fields that the page describes, but not for here
}

const (
	process   = "The process"
	declared  = "What is declared"
	workspace = "A workspace"
	another   = "An item of `workspaces`"
	provider  = "An item of `providers`"
	model     = "An item of `models`"
	prices    = "The price of a model"
	key       = "An item of `keys`"
	plan      = "An item of `plans`"
	budgets   = "An item of `budgets`"
	rates     = "An item of `rate_limits`"
)

func objects() []object {
	top := "top level, `workspaces`"
	none := [][2]string(nil)
	list := []object{
		{"%s", append(none, [2]string{process}, [2]string{declared}, [2]string{workspace}), top, nil},
		{"workspaces: [{%s}]", append(none, [2]string{workspace}, [2]string{another}), top, nil},
	}
	one := func(file, page, path string, less ...string) {
		list = append(list, object{file: file, pages: [][2]string{{page, path}}, less: less})
	}
	one("providers: [{%s}]", provider, "")
	list[len(list)-1].later = "`providers`"
	one("models: [{%s}]", model, "")
	one("keys: [{%s}]", key, "")
	one("key_template: {%s}", workspace, "key_template")
	one("plans: [{%s}]", plan, "")
	one("budgets: [{%s}]", budgets, "")
	one("keys: [{budgets: [{%s}]}]", budgets, "", "subject", "subject_id")
	one("plans: [{budgets: [{%s}]}]", budgets, "", "subject", "subject_id")
	one("rate_limits: [{%s}]", rates, "")
	for _, path := range []string{"tls", "bounds", "local_rate_limit", "postgres"} {
		one(path+": {%s}", process, path)
	}
	for _, path := range []string{"timeouts", "bounds"} {
		one("providers: [{"+path+": {%s}}]", provider, path)
	}
	for _, path := range []string{"caps", "limits"} {
		one("keys: [{"+path+": {%s}}]", key, path)
		one("key_template: {"+path+": {%s}}", workspace, "key_template."+path)
	}
	for path, file := range map[string]string{
		"limits": "limits: {%s}", "type_defaults": "type_defaults: {%s}",
		"type_defaults.personal": "type_defaults: {personal: {%s}}", "type_defaults.enterprise": "type_defaults: {enterprise: {%s}}",
	} {
		one(file, workspace, path)
	}
	return list
}

// row is a line of one of the page's tables of fields.
type row struct{ kind, bounds, fallback string }

var (
	fieldRow = regexp.MustCompile("(?m)^\\| `([a-z0-9_.]+)` \\| ([^|]*)\\| ([^|]*)\\| ([^|]*)\\|")
	quoted   = regexp.MustCompile("`([^`]+)`")
	span     = regexp.MustCompile(`^(\S+) to (\S+)$`)
)

func section(t *testing.T, title string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, body, found := strings.Cut(string(text), "\n## "+title+"\n")
	if !found {
		t.Fatalf("the page has no section %q", title)
	}
	body, _, _ = strings.Cut(body, "\n## ")
	return body
}

// rows are the fields that the page describes directly below a path.
func rows(t *testing.T, title, path string) map[string]row {
	t.Helper()
	found := map[string]row{}
	for _, m := range fieldRow.FindAllStringSubmatch(section(t, title), -1) {
		parent, name := "", m[1]
		if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
			parent, name = name[:dot], name[dot+1:]
		}
		if parent == path {
			found[name] = row{strings.TrimSpace(m[2]), strings.TrimSpace(m[3]), strings.TrimSpace(m[4])}
		}
	}
	return found
}

func (o object) rows(t *testing.T) map[string]row {
	t.Helper()
	all := map[string]row{}
	for _, at := range o.pages {
		maps.Copy(all, rows(t, at[0], at[1]))
	}
	for _, name := range o.less {
		delete(all, name)
	}
	return all
}

// notYet lists the fields that the page says are refused at a place.
func notYet(t *testing.T, place string) map[string]bool {
	t.Helper()
	list := map[string]bool{}
	for line := range strings.Lines(section(t, "Not in this version")) {
		if rest, ok := strings.CutPrefix(line, "| "+place+" | "); ok && place != "" {
			for _, m := range quoted.FindAllStringSubmatch(rest, -1) {
				list[m[1]] = true
			}
		}
	}
	return list
}

// words are the literals of the packages that read the file. A field's name
// stands nowhere else.
func words(t *testing.T) []string {
	t.Helper()
	plain := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	found := map[string]bool{}
	for _, dir := range []string{".", "../tenant", "../budget", "../rule", "../route", "../price"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					if word, err := strconv.Unquote(l.Value); err == nil && plain.MatchString(word) {
						found[word] = true
					}
				}
				return true
			})
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// faults are what is wrong with a file, by the last name of the path.
func faults(t *testing.T, text string) map[string]string {
	t.Helper()
	_, err := config.Parse("weir.yaml", []byte(text), variables())
	var list config.Problems
	if err != nil && !errors.As(err, &list) {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, p := range list {
		found[p.Path[strings.LastIndexByte(p.Path, '.')+1:]] += p.Text + "\n"
	}
	return found
}

func TestThePageNamesEveryFieldThatTheFileCanHave(t *testing.T) {
	all := words(t)
	for _, o := range objects() {
		t.Run(o.file, func(t *testing.T) {
			file := strings.Replace(o.file, "%s", `"`+strings.Join(all, `": null, "`)+`": null`, 1)
			if o.file == "%s" {
				file = "{" + file + "}"
			}
			found, refused := faults(t, file), notYet(t, o.later)
			var read []string
			for _, word := range all {
				text := found[word]
				switch {
				case strings.Contains(text, "is not available in this version"):
					if !refused[word] {
						t.Errorf("the page does not say that %s is not available yet", word)
					}
				case strings.Contains(text, "unknown field"), strings.Contains(text, "at the top level"), strings.Contains(text, "do not nest"),
					strings.Contains(text, "that it stands with"), strings.Contains(text, "a template has no budgets"):
					delete(refused, word)
				case !refused[word]:
					read = append(read, word)
				}
			}
			if diff := cmp.Diff(slices.Sorted(maps.Keys(o.rows(t))), read); diff != "" {
				t.Errorf("fields (-page +reader):\n%s", diff)
			}
		})
	}
}

// A null in a price is not set, and silent: each word is tried with a value.
func TestThePageNamesEveryPartOfAPrice(t *testing.T) {
	const file = "providers: [{name: p, base_url: \"https://h\", auth: none}]\nmodels: [{name: m, provider: p, price: {%s}}]"
	var read []string
	for _, word := range words(t) {
		if word == "id" { // begins a stored row, which no file has
			continue
		}
		if text := faults(t, fmt.Sprintf(file, `"`+word+`": "1"`))[word]; !strings.Contains(text, "is no price that is known here") {
			read = append(read, word)
		}
	}
	for _, nested := range []string{`above: {"200000": {input: "4", output: "18"}}`, `factor: {flex: "1/2"}`, `per_tool_call: {web_search: "0.01"}`, `service_tier: {flex: {input: "1"}}`} {
		if wrong := faults(t, fmt.Sprintf(file, `input: "2", `+nested)); len(wrong) > 0 {
			t.Errorf("%s is refused: %v", nested, wrong)
		}
		name, _, _ := strings.Cut(nested, ":")
		read = append(read, name)
	}
	slices.Sort(read)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(rows(t, prices, ""))), read); diff != "" {
		t.Errorf("fields (-page +reader):\n%s", diff)
	}
}

func TestThePagesBoundsAndWordsAreTheReaders(t *testing.T) {
	checked := 0
	for _, o := range objects() {
		for name, r := range o.rows(t) {
			refuses := func(value string) string {
				text := faults(t, fmt.Sprintf(o.file, name+": "+value))[name]
				if !strings.Contains(text, "must be") {
					return ""
				}
				return text
			}
			switch m := span.FindStringSubmatch(r.bounds); {
			case r.kind == "word":
				checked++
				var want []string
				for _, word := range quoted.FindAllStringSubmatch(r.bounds, -1) {
					want = append(want, word[1])
				}
				got, _, _ := strings.Cut(strings.TrimPrefix(refuses("nonsense"), "must be "), ", is ")
				if strings.Join(want, " or ") != got {
					t.Errorf("%s of %s: the page says %v, the reader %q", name, o.file, want, got)
				}
			case m != nil && (r.kind == "whole number" || r.kind == "time"):
				checked++
				for i, edge := range m[1:] {
					inside, outside := edges(t, r.kind, edge, int64(2*i-1))
					if text := refuses(inside); text != "" {
						t.Errorf("%s: %s of %s is refused: %s", name, inside, o.file, text)
					}
					if refuses(outside) == "" {
						t.Errorf("%s: %s of %s is accepted", name, outside, o.file)
					}
				}
			}
		}
	}
	if checked < 40 {
		t.Errorf("the page gives bounds of %d fields only", checked)
	}
}

// edges are a bound as the page writes it, and the nearest value beyond it.
func edges(t *testing.T, kind, bound string, step int64) (inside, outside string) {
	t.Helper()
	if kind == "time" {
		micros, err := document.ParseDuration(bound, 0, 1<<60)
		if err != nil {
			t.Fatal(err)
		}
		const millisecond = 1000
		return bound, document.FormatDuration(micros + step*millisecond)
	}
	n, err := strconv.ParseInt(bound, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return bound, strconv.FormatInt(n+step, 10)
}

func TestThePagesDefaultsAreThePrograms(t *testing.T) {
	f, err := config.Default(variables())
	if err != nil {
		t.Fatal(err)
	}
	p, b, u, w := f.Process, f.Process.Bounds, route.NewProvider("", ""), tenant.NewWorkspace("", "")
	g := f.Process.Postgres
	length, number := document.FormatDuration, func(n int64) string { return strconv.FormatInt(n, 10) }
	for at, want := range map[[2]string]map[string]string{
		{process, ""}: {
			"listen": p.Listen, "admin_listen": p.AdminListen, "store": p.Store, "log_level": p.LogLevel,
			"reservation_hold": length(p.HoldMicros), "reservation_retention": length(p.RetentionMicros),
		},
		{process, "bounds"}: {
			"max_body_bytes": number(b.MaxBodyBytes), "max_header_bytes": number(b.MaxHeaderBytes), "max_spool_bytes": number(b.MaxSpoolBytes), "max_connections": number(b.MaxConnections),
			"header_timeout": length(b.HeaderTimeoutMicros), "body_timeout": length(b.BodyTimeoutMicros),
			"write_timeout": length(b.WriteTimeoutMicros), "idle_timeout": length(b.IdleTimeoutMicros), "leave_time": length(b.LeaveMicros), "drain_timeout": length(b.DrainMicros),
		},
		{process, "postgres"}: {
			"connections": number(g.Connections), "reporting_connections": number(g.ReportingConnections),
			"lock_timeout": length(g.LockTimeoutMicros), "batch_timeout": length(g.BatchTimeoutMicros), "early_release": strconv.FormatBool(g.EarlyRelease),
			"migrate": g.Migrate,
		},
		{workspace, ""}: {"type": w.Type, "funds": w.Funds, "on_short": w.OnShort, "shrink_floor": number(w.ShrinkFloor), "max_users": number(w.MaxUsers)},
		{provider, ""}:  {"protocol": u.Protocol, "auth": u.Auth, "stream_usage": u.StreamUsage, "charge_partial_on_upstream_failure": strconv.FormatBool(u.ChargesPartial())},
		{provider, "timeouts"}: {
			"connect": length(u.Timeouts.Connect), "first_byte": length(u.Timeouts.FirstByte), "idle": length(u.Timeouts.Idle), "total": length(u.Timeouts.Total),
		},
		{provider, "bounds"}: {
			"max_connections": number(u.Bounds.MaxConnections), "max_idle_connections": number(u.Bounds.MaxIdleConnections),
			"max_answer_bytes": number(u.Bounds.MaxAnswerBytes), "max_event_bytes": number(u.Bounds.MaxEventBytes),
		},
	} {
		fields := rows(t, at[0], at[1])
		for name, value := range want {
			if got := strings.Trim(fields[name].fallback, "`"); got != value {
				t.Errorf("%v %s: the page says %q, the program %q", at, name, got, value)
			}
		}
	}
}

func TestThePageNamesEveryVariable(t *testing.T) {
	text := section(t, "Variables")
	for _, name := range []string{
		config.EnvListen, config.EnvAdminListen, config.EnvStore, config.EnvStateDir, config.EnvAdminToken, config.EnvLogLevel, config.EnvHold, config.EnvRetention,
	} {
		if !strings.Contains(text, "| `"+name+"` |") {
			t.Errorf("the page lacks %s", name)
		}
	}
}
