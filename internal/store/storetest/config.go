// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/store"
)

func edit(workspace, kind, id, name string, expect int64) store.Edit {
	return store.Edit{Expect: expect, Object: store.Object{
		Workspace: workspace, Kind: kind, ID: id, Name: name, Epoch: 3, Body: []byte(`{"a":1}`), Source: "file", Origin: "weir.yaml:7",
	}}
}

func change(t *testing.T, s Store, at int64, edits ...store.Edit) {
	t.Helper()
	if err := s.Change(t.Context(), at, edits); err != nil {
		t.Fatalf("change: %v", err)
	}
}

// objectVersions: an object changes only from the version that its editor saw.
func objectVersions(t *testing.T, driver Driver) {
	s := driver.open(t, Options{})
	change(t, s, 100, edit("acme", "budget", "b1", "ci", 0))
	second := edit("acme", "budget", "b1", "ci-renamed", 1)
	second.Object.Body = []byte(`{"a":2}`)
	change(t, s, 200, second)
	got, err := s.Object(t.Context(), "acme", "budget", "b1")
	if err != nil || got.Version != 2 || got.CreatedAt != 100 || got.UpdatedAt != 200 || got.RetiredAt != 0 || got.Epoch != 3 ||
		string(got.Body) != `{"a":2}` || got.Source != "file" || got.Origin != "weir.yaml:7" || got.Name != "ci-renamed" {
		t.Errorf("object %+v, %v", got, err)
	}
	for name, e := range map[string]store.Edit{
		"an old version": edit("acme", "budget", "b1", "ci", 1),
		"a new object":   edit("acme", "budget", "b1", "ci", 0),
		"none there":     edit("acme", "budget", "b9", "ci", 4),
		"a taken name":   edit("acme", "budget", "b2", "ci-renamed", 0),
	} {
		err := s.Change(t.Context(), 300, []store.Edit{e})
		if !errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), e.Object.Name) {
			t.Errorf("%s: %v, want a conflict that names the object", name, err)
		}
	}
	change(t, s, 300, edit("other", "budget", "b1", "ci-renamed", 0), edit("acme", "rule", "b1", "ci-renamed", 0))
	if _, err := s.Object(t.Context(), "acme", "budget", "b2"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("missing: %v", err)
	}
	if _, err := s.ByName(t.Context(), "acme", "budget", "ci"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("its old name: %v", err)
	}
}

func names(list []store.Object) (out []string) {
	for i := range list {
		out = append(out, list[i].Kind+"/"+list[i].Name)
	}
	return out
}

// sinceGeneration: what a snapshot loads first and after each change (ADM-4).
func sinceGeneration(t *testing.T, driver Driver) {
	s := driver.open(t, Options{})
	since := func(workspace string, generation int64) ([]string, int64) {
		list, now, err := s.Since(t.Context(), workspace, generation)
		if err != nil {
			t.Fatalf("since: %v", err)
		}
		return names(list), now
	}
	expect := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	if got, now := since("acme", 0); len(got) != 0 || now != 0 {
		t.Errorf("a new store: %v at %d", got, now)
	}
	change(t, s, 1, edit("acme", "budget", "b1", "b", 0), edit("acme", "key", "k1", "k", 0), edit("", "model", "m1", "m", 0), edit("other", "budget", "b1", "o", 0))
	got, first := since("acme", 0)
	expect("first load, without keys", got, "budget/b", "model/m")
	retire := edit("acme", "budget", "b1", "b", 1)
	retire.Retire = true
	change(t, s, 2, retire, edit("acme", "key", "k2", "j", 0))
	got, second := since("acme", first)
	expect("the change, with what retired and keys", got, "budget/b", "key/j")
	if second <= first {
		t.Errorf("generation %d after %d", second, first)
	}
	if _, now := since("other", 0); now != first {
		t.Errorf("another workspace's generation is %d, want %d", now, first)
	}
	change(t, s, 3, edit("", "price", "p1", "p", 0))
	got, third := since("acme", second)
	expect("a shared change", got, "price/p")
	got, now := since("other", first)
	expect("a shared change elsewhere", got, "price/p")
	if now != third || third <= second {
		t.Errorf("generations %d and %d after %d", now, third, second)
	}
	got, _ = since("acme", 0)
	expect("what retired is not loaded", got, "model/m", "price/p")
	list, err := s.List(t.Context(), "acme", "key", "", 1)
	if err != nil || len(list) != 1 || list[0].Name != "j" {
		t.Errorf("list: %v, %v", names(list), err)
	}
	list, err = s.List(t.Context(), "acme", "key", "j", 5)
	if err != nil || len(list) != 1 || list[0].Name != "k" {
		t.Errorf("list after j: %v, %v", names(list), err)
	}
}

// retiredComeBack: an object that left the file and returns is the same one
// (STO-2).
func retiredComeBack(t *testing.T, driver Driver) {
	s := driver.open(t, Options{})
	change(t, s, 1, edit("acme", "key", "k1", "ci", 0))
	retire := edit("acme", "key", "k1", "ci", 1)
	retire.Retire = true
	change(t, s, 2, retire)
	got, err := s.ByName(t.Context(), "acme", "key", "ci")
	if err != nil || got.ID != "k1" || got.RetiredAt != 2 || got.Version != 2 {
		t.Fatalf("the retired one: %+v, %v", got, err)
	}
	if list, err := s.List(t.Context(), "acme", "key", "", 10); err != nil || len(list) != 0 {
		t.Errorf("live: %v, %v", names(list), err)
	}
	change(t, s, 3, edit("acme", "key", "k2", "ci", 0))
	if got, err := s.ByName(t.Context(), "acme", "key", "ci"); err != nil || got.ID != "k2" {
		t.Errorf("the live one comes first: %+v, %v", got, err)
	}
	if err := s.Change(t.Context(), 4, []store.Edit{edit("acme", "key", "k1", "ci", 2)}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("coming back to a taken name: %v", err)
	}
	retire = edit("acme", "key", "k2", "ci", 1)
	retire.Retire = true
	change(t, s, 5, retire)
	if got, err := s.ByName(t.Context(), "acme", "key", "ci"); err != nil || got.ID != "k2" {
		t.Errorf("the one retired last: %+v, %v", got, err)
	}
	change(t, s, 6, edit("acme", "key", "k1", "ci", 2))
	if got, err := s.ByName(t.Context(), "acme", "key", "ci"); err != nil || got.ID != "k1" || got.RetiredAt != 0 || got.CreatedAt != 1 || got.Version != 3 {
		t.Errorf("back again: %+v, %v", got, err)
	}
}

// changeAtomic: a change is made whole or not at all, secrets and audit with it.
func changeAtomic(t *testing.T, driver Driver) {
	s := driver.open(t, Options{})
	hash := [32]byte{1}
	good := edit("acme", "key", "k1", "ci", 0)
	good.AddSecret = &store.KeySecret{Hash: hash}
	good.Audit = store.Audit{Workspace: "acme", Action: "key.create"}
	err := s.Change(t.Context(), 1, []store.Edit{good, edit("acme", "key", "k2", "ci", 0)})
	if !errors.Is(err, store.ErrConflict) {
		t.Fatalf("change: %v", err)
	}
	if _, err := s.Object(t.Context(), "acme", "key", "k1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("object: %v", err)
	}
	if _, err := s.KeyBySecret(t.Context(), hash); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("secret: %v", err)
	}
	if list, err := s.AuditList(t.Context(), "acme", 0, 10); err != nil || len(list) != 0 {
		t.Errorf("audit: %v, %v", list, err)
	}
	if _, now, err := s.Since(t.Context(), "acme", 0); err != nil || now != 0 {
		t.Errorf("generation %d, %v", now, err)
	}
}

// secretsGrace: a rotation keeps the key; the old secret has an end (KEY-3).
func secretsGrace(t *testing.T, driver Driver) {
	s := driver.open(t, Options{})
	old, fresh, end := [32]byte{1}, [32]byte{2}, int64(500)
	first := edit("acme", "key", "k1", "ci", 0)
	first.AddSecret = &store.KeySecret{Hash: old}
	change(t, s, 1, first)
	rotate := edit("acme", "key", "k1", "ci", 1)
	rotate.AddSecret, rotate.ExpireSecrets = &store.KeySecret{Hash: fresh}, &end
	change(t, s, 2, rotate)
	for hash, notAfter := range map[[32]byte]int64{old: end, fresh: 0} {
		got, err := s.KeyBySecret(t.Context(), hash)
		if want := (store.KeySecret{Hash: hash, Workspace: "acme", KeyID: "k1", NotAfter: notAfter}); err != nil || got != want {
			t.Errorf("secret %+v, %v, want %+v", got, err, want)
		}
	}
	later, sooner := int64(900), int64(0)
	for _, at := range []*int64{&later, &sooner} {
		got, err := s.Object(t.Context(), "acme", "key", "k1")
		if err != nil {
			t.Fatal(err)
		}
		e := edit("acme", "key", "k1", "ci", got.Version)
		e.ExpireSecrets = at
		change(t, s, 3, e)
		secret, err := s.KeyBySecret(t.Context(), old)
		if want := max(1, min(end, *at)); err != nil || secret.NotAfter != want {
			t.Errorf("end %d, %v, want %d: an end is never put off, and 0 is at once", secret.NotAfter, err, want)
		}
	}
	thief := edit("acme", "key", "k2", "other", 0)
	thief.AddSecret = &store.KeySecret{Hash: fresh}
	if err := s.Change(t.Context(), 4, []store.Edit{thief}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another key's secret: %v", err)
	}
	if _, err := s.KeyBySecret(t.Context(), [32]byte{9}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
}

// credentials are in no object, and the store has a secret of its own.
func credentials(t *testing.T, driver Driver) {
	s := driver.open(t, Options{})
	secret := "sk-provider"
	e := edit("", "provider", "p1", "openai", 0)
	e.Credential = &secret
	change(t, s, 1, e)
	if got, err := s.Credential(t.Context(), "", "p1"); err != nil || got != secret {
		t.Errorf("credential %q, %v", got, err)
	}
	if _, err := s.Credential(t.Context(), "acme", "p1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another workspace's: %v", err)
	}
	list, _, err := s.Since(t.Context(), "acme", 0)
	if err != nil || len(list) != 1 || bytes.Contains(list[0].Body, []byte(secret)) {
		t.Errorf("since: %+v, %v", list, err)
	}
	change(t, s, 2, edit("", "provider", "p1", "openai", 1))
	if got, err := s.Credential(t.Context(), "", "p1"); err != nil || got != secret {
		t.Errorf("after another change: %q, %v", got, err)
	}
	secret = ""
	e.Expect = 2
	change(t, s, 3, e)
	if _, err := s.Credential(t.Context(), "", "p1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("removed: %v", err)
	}
	if own, err := s.StoreSecret(t.Context()); err != nil || len(own) != 32 {
		t.Errorf("the store's secret: %d bytes, %v", len(own), err)
	}
	if _, err := s.AdminTokenHash(t.Context()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("no admin token yet: %v", err)
	}
	if err := s.SetAdminTokenHash(t.Context(), [32]byte{7}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.AdminTokenHash(t.Context()); err != nil || got != [32]byte{7} {
		t.Errorf("admin token: %v, %v", got, err)
	}
}

// auditList: every change is audited, in its transaction (ADM-3).
func auditList(t *testing.T, driver Driver) {
	s := driver.open(t, Options{})
	for i, action := range []string{"create", "update", "delete"} {
		e := edit("acme", "budget", "b1", "ci", int64(i))
		e.Audit = store.Audit{At: int64(i), Workspace: "acme", Actor: "ada", Action: action, Kind: "budget", ID: "b1", Name: "ci", After: []byte(`{}`)}
		if i > 0 {
			e.Audit.Before = []byte(`{"a":1}`)
		}
		other := edit("other", "budget", "b1", "ci", int64(i))
		other.Audit = store.Audit{Workspace: "other", Action: action}
		change(t, s, int64(i), e, other)
	}
	list, err := s.AuditList(t.Context(), "acme", 0, 2)
	if err != nil || len(list) != 2 || list[0].Action != "delete" || list[1].Action != "update" || list[1].Actor != "ada" ||
		string(list[1].Before) != `{"a":1}` || list[0].Seq <= list[1].Seq {
		t.Fatalf("audit %+v, %v", list, err)
	}
	list, err = s.AuditList(t.Context(), "acme", list[1].Seq, 2)
	if err != nil || len(list) != 1 || list[0].Action != "create" || list[0].Before != nil || string(list[0].After) != `{}` {
		t.Errorf("the next page: %+v, %v", list, err)
	}
}
