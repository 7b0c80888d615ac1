// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/hex"
	"errors"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/tenant"
)

// parser fills a File and remembers, beside it, where things stand that a later
// check compares.
type parser struct {
	file *File
	// names are those of one kind in one scope, secrets those of the whole file.
	names    []named
	secrets  []placedSecret
	bindings []binding
	// remembered are places that a store which keeps nothing could not serve.
	remembered []place
}

type place struct {
	path string
	line int
}

// space is where a name must be the only one of its kind: a scope, which is a
// workspace or "", what all share; and in it the path of the key or plan that a
// budget stands with.
type space struct{ scope, owner string }

type named struct {
	place
	space
	kind, name string
	object     string // the path of the object that has it
	was        string
	wasPlace   place
	alias      bool
}

type placedSecret struct {
	place
	hash     [32]byte
	upstream bool // a provider's credential
}

// binding is a model's mention of a provider.
type binding struct {
	place
	scope, provider string
	inherits        bool
}

// settings are the fields that make the top level declare the default
// workspace.
var settings = []string{
	"type", "funds", "credit_line", "time_zone", "limits", "type_defaults", "key_template", "budget_refusal", "hide_amounts",
	"hold_output_tokens", "on_short", "shrink_floor", "max_users",
}

// processFields stand at the top level alone.
var processFields = []string{
	"listen", "admin_listen", "store", "admin_token", "tls", "log_level", "bounds", "reservation_hold", "reservation_retention", "local_rate_limit",
}

var laterFields = []string{"routes", "prices"}

// top reads the file: the process, the default workspace, what is shared, and
// the other workspaces.
func (p *parser) top(r *document.Reader) {
	p.file.Process.read(r)
	if p.file.Process.AdminToken != "" {
		p.secret(r, "admin_token", tenant.HashSecret(p.file.Process.AdminToken), false)
	}
	r.Refuse("belongs to a workspace under workspaces: what stands at the top level is shared", "inherit")
	w := Workspace{Name: tenant.DefaultWorkspace, Line: r.Line(), Settings: tenant.NewWorkspace("", tenant.DefaultWorkspace)}
	p.settings(r, &w)
	given := r.Given()
	for _, field := range settings {
		w.Declared = w.Declared || given[field]
	}
	p.providers(r, "", &p.file.Providers)
	p.models(r, "", true, &p.file.Models)
	p.limits(r, &w)
	p.file.Workspaces = append(p.file.Workspaces, w)
	r.Objects("workspaces", maxWorkspaces, func(_ int, r *document.Reader) { p.workspace(r) })
	r.Later(laterFields...)
}

func (p *parser) workspace(r *document.Reader) {
	w := Workspace{Line: r.Line(), Declared: true}
	p.identity(r, tenant.KindWorkspace, space{}, &w.Name, &w.Was)
	w.Settings = tenant.NewWorkspace("", w.Name)
	if w.Name == tenant.DefaultWorkspace {
		r.Fail("name", "the top level describes the workspace %s: write its fields there", w.Name)
	}
	r.Bool("inherit", &w.Settings.Inherit)
	p.settings(r, &w)
	p.providers(r, w.Name, &w.Providers)
	p.models(r, w.Name, w.Settings.Inherit, &w.Models)
	p.limits(r, &w)
	r.Refuse("stands at the top level of the file only", processFields...)
	r.Refuse("workspaces do not nest", "workspaces")
	r.Later(laterFields...)
	p.file.Workspaces = append(p.file.Workspaces, w)
}

func (p *parser) settings(r *document.Reader, w *Workspace) {
	w.Settings.Fields(r)
	if w.Settings.Funds != tenant.Open {
		p.remember(r, "funds")
	}
	if t := w.Settings.KeyTemplate; t != nil && t.Caps.Any() {
		p.remember(r, "key_template.caps")
	}
}

// identity reads a declared object's name, and the one that it had before.
func (p *parser) identity(r *document.Reader, kind string, within space, name, was *string) {
	r.Need("name")
	r.String("name", name)
	r.String("was", was)
	if *was != "" && *was == *name {
		r.Fail("was", "is the name itself: leave it out")
	}
	if *name != "" {
		p.names = append(p.names, named{
			place: at(r, "name"), space: within, kind: kind, name: *name, object: r.Path(), was: *was, wasPlace: at(r, "was"),
		})
	}
}

func at(r *document.Reader, path string) place {
	return place{document.Join(r.Path(), path), r.LineOf(path)}
}

func (p *parser) remember(r *document.Reader, path string) {
	p.remembered = append(p.remembered, at(r, path))
}

func (p *parser) secret(r *document.Reader, field string, hash [32]byte, upstream bool) {
	p.secrets = append(p.secrets, placedSecret{at(r, field), hash, upstream})
}

func (p *parser) providers(r *document.Reader, scope string, into *[]Provider) {
	r.Objects("providers", maxProviders, func(_ int, r *document.Reader) {
		v := Provider{Line: r.Line(), Value: route.NewProvider("", "")}
		p.identity(r, route.KindProvider, space{scope: scope}, &v.Value.Name, &v.Was)
		v.Value.Fields(r)
		p.credential(r, &v.Credential, v.Value.Auth == route.AuthServiceAccount)
		switch {
		case v.Value.Auth == route.AuthNone && v.Credential != "":
			r.Fail("api_key", "has no use with auth: none: leave one of them out")
		case v.Value.Auth != route.AuthNone && r.Node("api_key") == nil:
			r.Fail("api_key", "is required: write the credential, or auth: none")
		}
		*into = append(*into, v)
	})
}

func (p *parser) credential(r *document.Reader, into *string, account bool) {
	r.Text("api_key", func(s string) error {
		valid := validCredential
		if account {
			valid = func(s string) error { _, err := route.ReadServiceKey(s); return err }
		}
		if err := valid(s); err != nil {
			return err
		}
		*into = s
		p.secret(r, "api_key", tenant.HashSecret(s), true)
		return nil
	}, func() { r.Fail("api_key", "must be a string") })
}

const maxCredential = 8192

func validCredential(s string) error {
	if s == "" || len(s) > maxCredential {
		return errors.New("must have 1 to 8192 characters")
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return errors.New("must have printable ASCII characters without spaces only")
		}
	}
	return nil
}

func (p *parser) models(r *document.Reader, scope string, inherits bool, into *[]Model) {
	r.Objects("models", maxModels, func(_ int, r *document.Reader) {
		m := Model{Line: r.Line(), Value: &route.Model{}}
		p.identity(r, route.KindModel, space{scope: scope}, &m.Value.Name, &m.Was)
		m.Value.Fields(r)
		for _, alias := range m.Value.Aliases {
			p.names = append(p.names, named{
				place: at(r, "aliases"), space: space{scope: scope}, kind: route.KindModel, name: alias, object: r.Path(), alias: true,
			})
		}
		if m.Value.Provider != "" {
			p.bindings = append(p.bindings, binding{at(r, "provider"), scope, m.Value.Provider, inherits})
		}
		*into = append(*into, m)
	})
}

func (p *parser) keys(r *document.Reader, w *Workspace) {
	r.Objects("keys", maxKeys, func(_ int, r *document.Reader) {
		k := Key{Line: r.Line(), Value: &tenant.Key{}}
		p.identity(r, tenant.KindKey, space{scope: w.Name}, &k.Value.Name, &k.Was)
		p.keySecret(r, &k)
		k.Value.Fields(r)
		r.Add(k.Value.Validate(w.Settings))
		if k.Value.Caps.Any() {
			p.remember(r, "caps")
		}
		k.Explicit = r.Given()
		k.Budgets = p.owned(r, w.Name, budget.ScopeKey, k.Value.Name)
		w.Keys = append(w.Keys, k)
	})
}

// keySecret reads the secret or its hash. Only a secret has a visible prefix.
func (p *parser) keySecret(r *document.Reader, k *Key) {
	plain, hashed := r.Node("secret"), r.Node("secret_sha256")
	if (plain == nil) == (hashed == nil) {
		r.Fail("", "needs one of secret and secret_sha256")
		return
	}
	wrong := func() { r.Fail("", "needs one of secret and secret_sha256, not null") }
	r.Text("secret", func(s string) error {
		if err := tenant.ValidSecret(s); err != nil {
			return err
		}
		k.SecretHash, k.Value.Prefix = tenant.HashSecret(s), tenant.SecretPrefix(s)
		p.secret(r, "secret", k.SecretHash, false)
		return nil
	}, wrong)
	r.Text("secret_sha256", func(s string) error {
		raw, err := hex.DecodeString(s)
		if err != nil || len(raw) != len(k.SecretHash) {
			return errors.New("must be the secret's SHA-256 in 64 hexadecimal digits")
		}
		k.SecretHash = [32]byte(raw)
		p.secret(r, "secret_sha256", k.SecretHash, false)
		return nil
	}, wrong)
}
