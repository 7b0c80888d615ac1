// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/store"
)

// reloadModels: a request of chatBody costs 320 µ$.
const reloadModels = `
models:
  - {name: m, provider: sim, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
`

const reloadKey = "the-secret-of-the-reloaded-key"

func reloadKeys(keys string) string { return reloadModels + "keys:\n" + keys }

// keptLog is a log that a test reads while the program writes it.
type keptLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *keptLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *keptLog) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), s)
}

func (l *keptLog) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), s)
}

// TestAChangedFileHoldsWithoutARestart: STO-2. Limits, keys, secrets, models and
// settings of the workspace; each waits for the file's change alone.
func TestAChangedFileHoldsWithoutARestart(t *testing.T) {
	w := newWorld(t, reloadKeys("  - {name: k, secret: "+reloadKey+"}\n"))
	until := func(what, key, model string, status int) {
		t.Helper()
		w.eventually(what, func() bool { return w.chat(key, model).status == status })
	}
	w.must(w.chat(reloadKey, "m"), 200, "")
	w.write(reloadKeys("  - {name: k, secret: " + reloadKey + `, caps: {day: "0.0003"}}` + "\n"))
	until("the cap, which sees what was spent", reloadKey, "m", 402)
	w.write(reloadKeys("  - {name: k, secret: " + reloadKey + ", limits: {rpm: 100000}}\n  - {name: second, secret: the-secret-of-the-second-key}\n"))
	until("the second key", "the-secret-of-the-second-key", "m", 200)
	w.must(w.chat(reloadKey, "m"), 200, "") // in the same transaction
	w.write(reloadKeys("  - {name: k, secret: the-secret-after-the-rotation}\n  - {name: second, secret: the-secret-of-the-second-key, disabled: true}\n"))
	until("the rotation", "the-secret-after-the-rotation", "m", 200)
	w.must(w.chat(reloadKey, "m"), 401, "invalid_api_key")
	w.must(w.chat("the-secret-of-the-second-key", "m"), 403, "apikey_inactive")
	w.write(reloadModels)
	until("the keys' end", "the-secret-after-the-rotation", "m", 401)
	w.must(w.do(context.Background(), http.MethodGet, "/v1/models", "the-secret-of-the-second-key", ""), 401, "invalid_api_key")
	w.write(strings.Replace(reloadKeys("  - {name: k, secret: "+reloadKey+`, caps: {day: "0.0003"}}`+"\n"), "name: m,", "name: renamed, was: m,", 1))
	until("a key that comes back as itself", reloadKey, "renamed", 402)
	w.must(w.chat(reloadKey, "m"), 404, "model_not_found")
	w.write("funds: prepaid\n" + reloadKeys("  - {name: k, secret: "+reloadKey+"}\n"))
	until("the workspace's funds", reloadKey, "m", 402)
	w.settled("1", "10")
}

// TestABrokenFileKeepsTheOldOneInForce, and says file and line: STO-2.
func TestABrokenFileKeepsTheOldOneInForce(t *testing.T) {
	log := &keptLog{}
	w := newWorldWith(t, start, reloadKeys("  - {name: k, secret: "+reloadKey+"}\n"), func(o *app.Options) { o.Stderr = log })
	for _, c := range []struct{ name, text, says string }{
		{"an unknown field", reloadKeys("  - {name: k, secret: " + reloadKey + ", wrong_field: 1}\n"), "wrong_field"},
		{"no YAML", "keys: [", "weir.yaml:"},
		{"a model without its provider", strings.Replace(reloadModels, "provider: sim", "provider: gone", 1), "gone"},
		{"caps out of order", reloadKeys("  - {name: k, secret: " + reloadKey + `, caps: {day: "9", seven_day: "1"}}` + "\n"), "seven_day"},
	} {
		w.write(c.text)
		w.eventually(c.name+" in the log", func() bool {
			return log.has(c.says) && log.has("the one before stays in force") && log.has("weir.yaml:")
		})
		w.must(w.chat(reloadKey, "m"), 200, "")
	}
	w.write(reloadKeys("  - {name: k, secret: the-secret-after-the-repair}\n"))
	w.eventually("the repaired file", func() bool { return w.chat("the-secret-after-the-repair", "m").status == 200 })
	w.settled("1", "10")
}

// TestSIGHUPReadsTheFileAgain, also where nothing can be seen of its change: the
// file is a link to another folder.
func TestSIGHUPReadsTheFileAgain(t *testing.T) {
	w := newWorld(t, reloadKeys("  - {name: k, secret: "+reloadKey+"}\n"))
	w.stop()
	elsewhere := filepath.Join(t.TempDir(), "real.yaml")
	if err := os.Rename(w.config, elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, w.config); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.must(w.chat(reloadKey, "m"), 200, "")
	w.write(reloadKeys("  - {name: k, secret: the-secret-after-the-signal}\n"))
	w.must(w.chat(reloadKey, "m"), 200, "")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	w.eventually("the file after SIGHUP", func() bool { return w.chat("the-secret-after-the-signal", "m").status == 200 })
	w.must(w.chat(reloadKey, "m"), 401, "invalid_api_key")
}

// TestAFileThatIsSwappedByALinkIsReadAgain, as a mounted ConfigMap is changed.
func TestAFileThatIsSwappedByALinkIsReadAgain(t *testing.T) {
	w := newWorld(t, reloadKeys("  - {name: k, secret: "+reloadKey+"}\n"))
	w.stop()
	dir := filepath.Dir(w.config)
	first, data := filepath.Join(dir, "first"), filepath.Join(dir, "..data")
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(first, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(w.config, filepath.Join(first, "weir.yaml")); err != nil {
		t.Fatal(err)
	}
	link("first", data)
	link("..data/weir.yaml", w.config)
	w.start()
	w.must(w.chat(reloadKey, "m"), 200, "")
	text, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(dir, "second")
	if err := os.Mkdir(second, 0o700); err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(text), reloadKey, "the-secret-after-the-swap")
	if err := os.WriteFile(filepath.Join(second, "weir.yaml"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	link("second", data+"_tmp")
	if err := os.Rename(data+"_tmp", data); err != nil {
		t.Fatal(err)
	}
	w.eventually("the swapped file", func() bool { return w.chat("the-secret-after-the-swap", "m").status == 200 })
}

// TestARenamedKeyKeepsItsCounters: was, STO-2, BUD-4. So does a restart.
func TestARenamedKeyKeepsItsCounters(t *testing.T) {
	capped := func(names string) string {
		return reloadKeys("  - {" + names + ", secret: " + reloadKey + `, caps: {day: "0.0003"}, limits: {rpm: 3}}` + "\n")
	}
	w := newWorld(t, capped("name: before"))
	w.must(w.chat(reloadKey, "m"), 200, "")
	w.must(w.chat(reloadKey, "m"), 402, "day_limit_reached")
	w.restart()
	a := w.must(w.chat(reloadKey, "m"), 402, "day_limit_reached")
	if !strings.Contains(a.body, `"used":"0.00032"`) {
		t.Errorf("after a restart: %s", a.body)
	}
	w.write(capped("name: after, was: before"))
	w.eventually("the new name", func() bool {
		k, err := w.admin.KeyShow(context.Background(), admin.KeyRequest{Key: "after"})
		return err == nil && k.Name == "after"
	})
	a = w.must(w.chat(reloadKey, "m"), 402, "day_limit_reached")
	if !strings.Contains(a.body, `"used":"0.00032"`) || !strings.Contains(a.body, `"subject":"after"`) {
		t.Errorf("after the rename: %s", a.body)
	}
	w.restart() // the line with was stays in the file
	w.must(w.chat(reloadKey, "m"), 402, "day_limit_reached")
	w.settled("1", "10")
}

// TestANameInFileAndAPIIsAnError that names both: STO-2. What the file declares
// is not the API's to change (ADM-5).
func TestANameInFileAndAPIIsAnError(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, reloadKeys("  - {name: mine, secret: "+reloadKey+"}\n"))
	made, err := w.admin.KeyCreate(ctx, admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some("both")}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.admin.KeyDisable(ctx, admin.KeyRequest{Key: "mine"})
	if err == nil || !strings.Contains(err.Error(), "weir.yaml:") {
		t.Errorf("a change of what the file declares: %v", err)
	}
	w.stop()
	w.write(reloadKeys("  - {name: mine, secret: " + reloadKey + "}\n  - {name: both, secret: the-secret-of-the-double-key}\n"))
	if _, err := app.Start(ctx, w.options()); err == nil || !strings.Contains(err.Error(), made.ID) || !strings.Contains(err.Error(), "weir.yaml:") {
		t.Fatalf("started with a name in file and API: %v", err)
	}
	w.write(reloadKeys("  - {name: mine, secret: " + reloadKey + "}\n"))
	w.start()
	w.must(w.chat(made.Secret, "m"), 200, "")
}

// TestASecondProcessOnTheStoreIsRefused, and leaves the first alone: STO-1.
func TestASecondProcessOnTheStoreIsRefused(t *testing.T) {
	w := newWorld(t, reloadKeys("  - {name: k, secret: "+reloadKey+"}\n"))
	if _, err := app.Start(context.Background(), w.options()); !errors.Is(err, store.ErrLocked) {
		t.Fatalf("a second process started: %v", err)
	}
	w.must(w.chat(reloadKey, "m"), 200, "")
	w.settled("1", "10")
}

// TestAStoreThatCannotBeOpenedStopsTheStart: BUD-6. Nothing falls back to memory.
func TestAStoreThatCannotBeOpenedStopsTheStart(t *testing.T) {
	w := newWorldOn(t, embedded, start, reloadKeys("  - {name: k, secret: "+reloadKey+"}\n"), nil)
	w.stop()
	path := w.storePath()
	for _, c := range []struct {
		name  string
		spoil func() error
	}{
		{"no database", func() error { return os.WriteFile(path, []byte(strings.Repeat("not a database ", 512)), 0o600) }},
		{"a folder", func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }},
	} {
		if err := c.spoil(); err != nil {
			t.Fatal(err)
		}
		if s, err := app.Start(context.Background(), w.options()); err == nil {
			t.Errorf("%s: started at %s", c.name, s.Addr())
		}
	}
}

// TestAStoreThatKeepsNothingTakesNoCaps: BUD-6.
func TestAStoreThatKeepsNothingTakesNoCaps(t *testing.T) {
	for _, text := range []string{
		reloadKeys("  - {name: k, secret: " + reloadKey + `, caps: {day: "1"}}` + "\n"),
		"funds: prepaid\n" + reloadModels,
		`key_template: {caps: {day: "1"}}` + "\n" + reloadModels,
	} {
		path := filepath.Join(t.TempDir(), "weir.yaml")
		head := "listen: 127.0.0.1:0\nstore: memory\nproviders:\n  - {name: sim, protocol: openai, base_url: \"http://127.0.0.1:1\", auth: none}\n"
		if err := os.WriteFile(path, []byte(head+text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := app.Start(context.Background(), app.Options{ConfigPath: path, Stdout: io.Discard, Stderr: testLog{t}})
		if err == nil || !strings.Contains(err.Error(), "weir.yaml:") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
