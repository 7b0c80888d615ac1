// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/directory"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/tenant"
)

const (
	secretOne = "a-secret-of-the-file-1"
	secretTwo = "a-secret-of-the-file-2"
)

func (w *world) applyFails(want string, declared ...admin.Declared) []document.Problem {
	w.t.Helper()
	generation := w.generation()
	_, err := w.Apply(w.t.Context(), "file", declared, "weir.yaml")
	var problems document.Problems
	if !errors.As(err, &problems) || !strings.Contains(err.Error(), want) {
		w.t.Errorf("want a problem with %q, got %v", want, err)
	}
	if w.generation() != generation {
		w.t.Errorf("%q: something was written", want)
	}
	return problems
}

func (w *world) generation() int64 {
	w.t.Helper()
	_, generation, err := w.book.Since(w.t.Context(), "default", 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return generation
}

// STO-2: what is new is made, what is the same is left alone, what differs is
// changed, what has gone is retired and comes back as itself.
func TestTheStoreFollowsTheFile(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		file := []admin.Declared{
			declaredWorkspace(t, "default", 1, nil), declaredProvider(t, 2, nil), declaredModel(t, "m1", 3),
			declaredKey(t, "ci", secretOne, 4, nil),
		}
		if out := w.apply(file...); !slices.Equal(out.Created, []string{"provider up", "model m1", "key ci"}) || !slices.Equal(out.Changed, []string{"workspace default"}) && out.Unchanged != 1 {
			t.Fatalf("first: %+v", out)
		}
		k, snapshot, err := w.directory.Identify(ctx, secretOne)
		if err != nil || !slices.Equal(snapshot.Models(k), []string{"m1"}) {
			t.Fatalf("identified %+v, %v", k, err)
		}
		if target, _ := snapshot.Resolve("m1"); target.Credential != "sk-very-secret" {
			t.Errorf("credential %q", target.Credential)
		}
		audits, generation := len(w.audits()), w.generation()
		if out := w.apply(file...); out.Any() || out.Unchanged != 4 || w.generation() != generation {
			t.Errorf("again: %+v", out)
		}
		file[3].Line = 9 // it only moved
		if out := w.apply(file...); out.Any() || len(w.audits()) != audits {
			t.Errorf("moved: %+v", out)
		}
		_, err = w.KeyDisable(ctx, system, admin.KeyRequest{Key: "ci"})
		if f := refused(t, err, fault.DeclaredInFile); !strings.Contains(f.Message, "weir.yaml:9") {
			t.Errorf("message %q", f.Message)
		}
		file[3] = declaredKey(t, "ci", secretOne, 4, func(k *tenant.Key) { k.Team = "a" })
		if out := w.apply(file...); !slices.Equal(out.Changed, []string{"key ci"}) {
			t.Errorf("changed: %+v", out)
		}
		if out := w.apply(file[:3]...); !slices.Equal(out.Retired, []string{"key ci"}) {
			t.Errorf("gone: %+v", out)
		}
		if _, _, err := w.directory.Identify(ctx, secretOne); !errors.Is(err, directory.ErrUnknownKey) {
			t.Errorf("a retired key: %v", err)
		}
		if out := w.apply(file...); !slices.Equal(out.Revived, []string{"key ci"}) {
			t.Errorf("back: %+v", out)
		}
		back, _, err := w.directory.Identify(ctx, secretOne)
		if err != nil || back.ID != k.ID || back.Team != "a" {
			t.Errorf("it comes back as itself: %+v, %v", back, err)
		}
	})
}

// STO-2: was names what an object was called. In a chain each name is free
// before it is taken; a circle has no such order.
func TestRenamesKeepTheObject(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply(declaredKey(t, "a", secretOne, 1, nil), declaredKey(t, "b", secretTwo, 2, nil))
		a, _, err := w.directory.Identify(ctx, secretOne)
		if err != nil {
			t.Fatal(err)
		}
		renamed := declaredKey(t, "c", secretOne, 1, nil)
		renamed.Was = "a"
		kept := declaredKey(t, "b", secretTwo, 2, nil)
		if out := w.apply(renamed, kept); !slices.Equal(out.Renamed, []string{"key c"}) || len(out.Retired) != 0 {
			t.Errorf("renamed: %+v", out)
		}
		c, _, err := w.directory.Identify(ctx, secretOne)
		if err != nil || c.ID != a.ID || c.Name != "c" {
			t.Errorf("identified %+v, %v", c, err)
		}
		if out := w.apply(renamed, kept); out.Any() {
			t.Errorf("was may stay: %+v", out)
		}
		first, second := declaredKey(t, "b", secretOne, 1, nil), declaredKey(t, "d", secretTwo, 2, nil)
		first.Was, second.Was = "c", "b"
		for range 2 {
			w.apply(first, second)
			if k, _, err := w.directory.Identify(ctx, secretOne); err != nil || k.ID != a.ID || k.Name != "b" {
				t.Errorf("the first of the chain: %+v, %v", k, err)
			}
			if k, _, err := w.directory.Identify(ctx, secretTwo); err != nil || k.Name != "d" {
				t.Errorf("the second of the chain: %+v, %v", k, err)
			}
		}
		first, second = declaredKey(t, "d", secretOne, 1, nil), declaredKey(t, "b", secretTwo, 2, nil)
		first.Was, second.Was = "b", "d"
		w.applyFails("belongs to", first, second)
	})
}

// KEY-3, STO-2: another secret under one name is a rotation; going back to the
// earlier one is another.
func TestAnotherSecretUnderOneNameIsARotation(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply(declaredKey(t, "ci", secretOne, 1, nil))
		first, _, err := w.directory.Identify(ctx, secretOne)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct{ now, before string }{{secretTwo, secretOne}, {secretOne, secretTwo}} {
			w.clock.Advance(time.Second)
			// Both secrets begin alike, so that nothing but the hash tells them apart.
			if out := w.apply(declaredKey(t, "ci", step.now, 1, nil)); !slices.Equal(out.Rotated, []string{"key ci"}) {
				t.Errorf("rotated: %+v", out)
			}
			w.clock.Advance(time.Microsecond)
			if k, _, err := w.directory.Identify(ctx, step.now); err != nil || k.ID != first.ID {
				t.Errorf("the new secret: %+v, %v", k, err)
			}
			if _, _, err := w.directory.Identify(ctx, step.before); !errors.Is(err, directory.ErrUnknownKey) {
				t.Errorf("the old secret: %v", err)
			}
		}
	})
}

// SPEC 14: a secret is in one place; the error names both.
func TestASecretBelongsToOneKey(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		problems := w.applyFails("weir.yaml:1", declaredKey(t, "a", secretOne, 1, nil), declaredKey(t, "b", secretOne, 2, nil))
		if len(problems) != 1 || problems[0].Line != 2 {
			t.Errorf("problems %+v", problems)
		}
		w.apply(declaredKey(t, "a", secretOne, 1, nil))
		w.applyFails("was: that key's name", declaredKey(t, "b", secretOne, 2, nil))
		made := w.key("made", nil)
		w.applyFails("made through the API", declaredKey(t, "c", made.Secret, 3, nil))
	})
}

func TestOneNameInFileAndAPIIsAnErrorThatNamesBoth(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		made := w.key("ci", nil)
		problems := w.applyFails(made.ID, declaredKey(t, "ci", secretOne, 7, nil))
		if len(problems) != 1 || problems[0].Line != 7 {
			t.Errorf("problems %+v", problems)
		}
		w.applyFails("declared twice", declaredKey(t, "x", secretOne, 7, nil), declaredKey(t, "x", secretTwo, 8, nil))
		w.apply(declaredKey(t, "filed", secretOne, 7, nil))
		_, err := w.KeyCreate(t.Context(), system, admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some("filed")}})
		if f := refused(t, err, fault.Conflict); !strings.Contains(f.Message, "weir.yaml:7") {
			t.Errorf("message %q", f.Message)
		}
		// One that was deleted through the API gives its name up.
		if _, err := w.KeyDelete(t.Context(), system, admin.KeyRequest{Key: "ci"}); err != nil {
			t.Fatal(err)
		}
		w.apply(declaredKey(t, "filed", secretOne, 7, nil), declaredKey(t, "ci", secretTwo, 8, nil))
		if k, _, err := w.directory.Identify(t.Context(), secretTwo); err != nil || k.ID == made.ID {
			t.Errorf("a new key, not the deleted one: %+v, %v", k, err)
		}
	})
}

// KEY-4: a key of the file copies when its name is first seen, and keeps that.
func TestAKeyOfTheFileCopiesTheTemplateOnce(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		template := func(rpm int64) admin.Declared {
			return declaredWorkspace(t, "default", 1, func(w *tenant.Workspace) {
				w.KeyTemplate = &tenant.Template{Limits: tenant.RuntimeLimits{RPM: &rpm, TPM: &rpm}}
			})
		}
		declared := declaredKey(t, "ci", secretOne, 4, nil)
		declared.Given = map[string]bool{"limits.tpm": true} // null in the file
		w.apply(template(60), declared)
		if out := w.apply(template(30), declared); !slices.Equal(out.Changed, []string{"workspace default"}) {
			t.Errorf("changed: %+v", out)
		}
		k, err := w.KeyShow(ctx, system, admin.KeyRequest{Key: "ci"})
		if err != nil || *k.Limits.RPM != 60 || k.Limits.TPM != nil || k.FromTemplate["limits.rpm"] != "2026-03-04" {
			t.Errorf("key %+v, %v", k, err)
		}
	})
}

// A snapshot is made of all models: one without its provider must not get in.
func TestAModelNeedsItsProvider(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		w.applyFails("needs the provider", declaredModel(t, "m1", 2))
		w.apply(declaredProvider(t, 1, nil), declaredModel(t, "m1", 2))
		w.applyFails("needs the provider", declaredModel(t, "m1", 2))
		w.applyFails("but for the case", declaredProvider(t, 1, nil), declaredModel(t, "m1", 2), declaredModel(t, "M1", 3))
		if out := w.apply(); !slices.Equal(out.Retired, []string{"model m1", "provider up"}) {
			t.Errorf("gone: %+v", out)
		}
	})
}

// ADM-3: neither credentials nor the values of headers are in the audit.
func TestTheAuditOfAFileHoldsNoSecret(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		header := func(value string) func(*route.Provider) {
			return func(p *route.Provider) { p.Headers = map[string]string{"X-Org": value} }
		}
		w.apply(declaredProvider(t, 1, header("header-one")), declaredKey(t, "ci", secretOne, 2, nil))
		changed := declaredProvider(t, 1, header("header-two"))
		changed.Credential = "sk-another-secret"
		if out := w.apply(changed, declaredKey(t, "ci", secretOne, 2, nil)); !slices.Equal(out.Changed, []string{"provider up"}) {
			t.Errorf("changed: %+v", out)
		}
		text, err := json.Marshal(w.audits())
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"header-one", "header-two", "sk-very-secret", "sk-another-secret", secretOne} {
			if strings.Contains(string(text), secret) {
				t.Errorf("the audit shows %s", secret)
			}
		}
		if !strings.Contains(string(text), `"actor":"file"`) || !strings.Contains(string(text), "X-Org") {
			t.Errorf("audit %s", text)
		}
	})
}

func TestAWorkspaceThatLeftTheFileIsRetiredWithItsKeys(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		key := declaredKey(t, "ci", secretOne, 3, nil)
		key.Workspace = "other"
		w.apply(declaredWorkspace(t, "other", 2, nil), key)
		other := admin.Actor{Name: "test", Role: admin.System, Workspace: "other"}
		made, err := w.KeyCreate(ctx, other, admin.KeyCreateRequest{Body: admin.KeyFields{Name: admin.Some("made")}})
		if err != nil {
			t.Fatal(err)
		}
		w.applyFails("was made through the API")
		if _, err := w.KeyDelete(ctx, other, admin.KeyRequest{Key: made.ID}); err != nil {
			t.Fatal(err)
		}
		if out := w.apply(); !slices.Equal(out.Retired, []string{"workspace other", "key ci (other)"}) {
			t.Errorf("gone: %+v", out)
		}
		_, err = w.KeyList(ctx, other, admin.KeyListRequest{})
		refused(t, err, fault.NotFound)
		if _, _, err := w.directory.Identify(ctx, secretOne); !errors.Is(err, directory.ErrUnknownKey) {
			t.Errorf("its key: %v", err)
		}
		if out := w.apply(declaredWorkspace(t, "other", 2, nil), key); !slices.Equal(out.Revived, []string{"workspace other", "key ci (other)"}) {
			t.Errorf("back: %+v", out)
		}
		renamed := declaredWorkspace(t, "third", 2, nil)
		renamed.Was = "other"
		key.Workspace = "third"
		if out := w.apply(renamed, key); !slices.Equal(out.Renamed, []string{"workspace third"}) || out.Any() && len(out.Retired) != 0 {
			t.Errorf("renamed: %+v", out)
		}
		if _, snapshot, err := w.directory.Identify(ctx, secretOne); err != nil || snapshot.Workspace.Name != "third" || snapshot.Workspace.ID != "other" {
			t.Errorf("its key after the rename: %v", err)
		}
		list, err := w.WorkspaceList(ctx, system, admin.WorkspaceListRequest{})
		if err != nil || len(list.Workspaces) != 2 || list.Workspaces[1].Name != "third" {
			t.Errorf("workspaces %+v, %v", list, err)
		}
	})
}

// CAP-3: a new zone starts a new epoch, by the API and by the file.
func TestANewZoneStartsANewEpoch(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		epoch := func(want uint32) {
			t.Helper()
			snapshot, err := w.directory.Snapshot(ctx, "default")
			if err != nil || snapshot.Workspace.ZoneEpoch != want {
				t.Errorf("epoch %d, want %d, %v", snapshot.Workspace.ZoneEpoch, want, err)
			}
		}
		epoch(0)
		if _, err := w.WorkspaceUpdate(ctx, system, admin.WorkspaceUpdateRequest{Body: admin.WorkspaceFields{TimeZone: admin.Some("Asia/Kathmandu")}}); err != nil {
			t.Fatal(err)
		}
		epoch(1)
		zone := func(name string) admin.Declared {
			return declaredWorkspace(t, "default", 1, func(w *tenant.Workspace) { w.Zone = name })
		}
		w.apply(zone("Africa/Cairo"))
		epoch(2)
		w.apply(zone("Africa/Cairo"))
		epoch(2)
		_, err := w.WorkspaceUpdate(ctx, system, admin.WorkspaceUpdateRequest{Body: admin.WorkspaceFields{TimeZone: admin.Some("UTC")}})
		refused(t, err, fault.DeclaredInFile)
		w.apply() // the default workspace goes back to the API
		if _, err := w.WorkspaceUpdate(ctx, system, admin.WorkspaceUpdateRequest{Body: admin.WorkspaceFields{TimeZone: admin.Some("UTC")}}); err != nil {
			t.Error(err)
		}
		epoch(3)
	})
}
