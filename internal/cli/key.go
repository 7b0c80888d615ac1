// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/admin"
)

// keysAPage is how many keys `key list` asks for at once; it shows them all.
const keysAPage = 1000

type keyCmd struct {
	Create  keyCreateCmd  `cmd:"" help:"Make a key. Its secret is shown once."`
	List    keyListCmd    `cmd:"" help:"List the keys by name."`
	Show    keyShowCmd    `cmd:"" help:"Show one key."`
	Set     keySetCmd     `cmd:"" help:"Change a key: only what is given changes."`
	Rotate  keyRotateCmd  `cmd:"" help:"Give a key a new secret; its limits and what they have counted stay."`
	Reset   keyResetCmd   `cmd:"" help:"Set to zero what the open windows of a key's caps and budgets have used."`
	Disable keyDisableCmd `cmd:"" help:"Refuse a key's requests until it is enabled again."`
	Enable  keyEnableCmd  `cmd:"" help:"Let a disabled key in again."`
	Delete  keyDeleteCmd  `cmd:"" help:"Retire a key. What it used stays in the reports."`
}

// keyFlags are what can be said of a key. A flag that is not given leaves the
// value to the workspace's template, or as it is.
type keyFlags struct {
	Team            *string  `placeholder:"NAME" help:"Team that its use counts for."`
	Project         *string  `placeholder:"NAME" help:"Project that its use counts for."`
	User            *string  `placeholder:"NAME" help:"User that its use counts for."`
	Plan            *string  `placeholder:"NAME" help:"Plan whose limits apply too; an empty text: none."`
	AttributeUsers  *string  `placeholder:"WORD" help:"Its requests may name their user: header, body or never."`
	RequireUser     *bool    `negatable:"" help:"Refuse requests that name no user."`
	Allow           []string `placeholder:"MODEL" help:"Model, alias or route that it may call, or prefix/*; repeatable. Without: all."`
	AllowNone       bool     `xor:"allow" help:"It may call no model."`
	AllowAll        bool     `xor:"allow" help:"It may call every model, whatever the template says."`
	MaxOutputTokens *int64   `placeholder:"N" help:"Most output tokens of a request."`
	Expires         *string  `placeholder:"TIME" help:"RFC 3339 instant from which it is refused, or never."`
	DayCap          *string  `placeholder:"USD" help:"Spend cap of a local day; 0: none."`
	SevenDayCap     *string  `placeholder:"USD" help:"Spend cap of seven days; 0: none."`
	ThirtyDayCap    *string  `placeholder:"USD" help:"Spend cap of thirty days; 0: none."`
	RPM             *int64   `name:"rpm" placeholder:"N" help:"Requests a minute; 0: unlimited."`
	TPM             *int64   `name:"tpm" placeholder:"N" help:"Tokens a minute; 0: unlimited."`
	Concurrency     *int64   `placeholder:"N" help:"Requests in flight; 0: unlimited."`
	CountCached     *bool    `negatable:"" help:"Count cache reads in tokens a minute, the default; --no-count-cached leaves them out."`
}

// given is a flag's value when it was given.
func given[T any](value *T) admin.Option[T] {
	if value == nil {
		return admin.Option[T]{}
	}
	return admin.Some(*value)
}

func (f *keyFlags) fields() admin.KeyFields {
	k := admin.KeyFields{
		Team: given(f.Team), Project: given(f.Project), User: given(f.User), MaxOutputTokens: given(f.MaxOutputTokens),
		ExpiresAt: given(f.Expires), Plan: given(f.Plan), AttributeUsers: given(f.AttributeUsers), RequireUser: given(f.RequireUser),
		AllowedModels: allow(f.Allow, f.AllowNone, f.AllowAll),
	}
	if f.AttributeUsers != nil && *f.AttributeUsers == "never" {
		k.AttributeUsers = admin.Null[string]()
	}
	if f.Expires != nil && *f.Expires == "never" {
		k.ExpiresAt = admin.Null[string]()
	}
	if f.DayCap != nil || f.SevenDayCap != nil || f.ThirtyDayCap != nil {
		k.Caps = admin.Some(admin.CapFields{Day: given(f.DayCap), SevenDay: given(f.SevenDayCap), ThirtyDay: given(f.ThirtyDayCap)})
	}
	if f.RPM != nil || f.TPM != nil || f.Concurrency != nil || f.CountCached != nil {
		k.Limits = admin.Some(admin.RunFields{
			RPM: given(f.RPM), TPM: given(f.TPM), Concurrency: given(f.Concurrency), CountCached: given(f.CountCached),
		})
	}
	return k
}

type keyCreateCmd struct {
	Name string `arg:"" help:"Name, one of its kind in the workspace."`
	keyFlags
	IdempotencyKey string `placeholder:"TEXT" help:"Sent again with the same text, nothing more is made."`
	reach
}

func (c *keyCreateCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		body := c.fields()
		body.Name = admin.Some(c.Name)
		answer, err := a.KeyCreate(s.ctx, admin.KeyCreateRequest{IdempotencyKey: c.IdempotencyKey, Body: body})
		return show(a, answer, err, writeKey)
	})
}

type keyListCmd struct{ reach }

func (c *keyListCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		t := &table{empty: "no keys", columns: []column{
			{"name", left},
			{"id", left},
			{"secret", left},
			{"status", left},
			{"team", left},
			{"project", left},
			{"user", left},
			{"plan", left},
			{"day", point},
			{"7 days", point},
			{"30 days", point},
			{"rpm", right},
			{"tpm", right},
			{"at once", right},
		}}
		for cursor := ""; ; {
			answer, err := a.KeyList(s.ctx, admin.KeyListRequest{Cursor: cursor, Limit: keysAPage})
			if err := show(a, answer, err, func(io.Writer, *admin.KeyListAnswer) error { return nil }); err != nil {
				return err
			}
			for i := range answer.Keys {
				t.add(keyRow(&answer.Keys[i])...)
			}
			if answer.NextCursor == "" || answer.NextCursor == cursor {
				break
			}
			cursor = answer.NextCursor
		}
		if a.json {
			return nil
		}
		return t.write(s.stdout)
	})
}

func keyRow(k *admin.KeyAnswer) []string {
	return []string{
		k.Name, k.ID, dots(k.Prefix), k.Status, k.Team, k.Project, k.User, k.Plan,
		usd(k.Caps.Day), usd(k.Caps.SevenDay), usd(k.Caps.ThirtyDay),
		runLimit(k.Limits.RPM), runLimit(k.Limits.TPM), runLimit(k.Limits.Concurrency),
	}
}

// dots marks the beginning of a secret as no more than that.
func dots(prefix string) string {
	if prefix == "" {
		return ""
	}
	return prefix + "…"
}

func runLimit(n *int64) string {
	switch {
	case n == nil:
		return ""
	case *n == 0:
		return "unlimited"
	default:
		return count(*n)
	}
}

// keyName is the argument of commands about one key.
type keyName struct {
	Key string `arg:"" help:"Its name or id."`
	reach
}

type keyShowCmd struct{ keyName }

func (c *keyShowCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.KeyShow(s.ctx, admin.KeyRequest{Key: c.Key})
		return show(a, answer, err, writeKey)
	})
}

type keySetCmd struct {
	keyName
	Name *string `placeholder:"NAME" help:"New name."`
	keyFlags
}

func (c *keySetCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		body := c.fields()
		body.Name = given(c.Name)
		answer, err := a.KeyUpdate(s.ctx, admin.KeyUpdateRequest{Key: c.Key, Body: body})
		return show(a, answer, err, writeKey)
	})
}

type keyRotateCmd struct {
	keyName
	GraceSeconds   int64  `default:"0" placeholder:"N" help:"How long the old secret still works, 0 to 2592000."`
	IdempotencyKey string `placeholder:"TEXT" help:"Sent again with the same text, it is not rotated again."`
}

func (c *keyRotateCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.KeyRotate(s.ctx, admin.KeyRotateRequest{
			Key: c.Key, IdempotencyKey: c.IdempotencyKey, Body: admin.RotateFields{GraceSeconds: c.GraceSeconds},
		})
		return show(a, answer, err, writeKey)
	})
}

type keyResetCmd struct {
	keyName
	reasonFlags
}

func (c *keyResetCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.KeyReset(s.ctx, admin.KeyResetRequest{
			Key: c.Key, IdempotencyKey: c.IdempotencyKey, Body: admin.KeyResetFields{Reason: c.Reason},
		})
		return show(a, answer, err, writeLimits)
	})
}

type keyDisableCmd struct{ keyName }

func (c *keyDisableCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.KeyDisable(s.ctx, admin.KeyRequest{Key: c.Key})
		return show(a, answer, err, writeKey)
	})
}

type keyEnableCmd struct{ keyName }

func (c *keyEnableCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.KeyEnable(s.ctx, admin.KeyRequest{Key: c.Key})
		return show(a, answer, err, writeKey)
	})
}

type keyDeleteCmd struct{ keyName }

func (c *keyDeleteCmd) Run(s *session) error {
	return c.with(s, func(a *asked) error {
		answer, err := a.KeyDelete(s.ctx, admin.KeyRequest{Key: c.Key})
		return show(a, answer, err, writeKey)
	})
}

// writeKey shows one key; a value from the template says so.
func writeKey(w io.Writer, k *admin.KeyAnswer) error {
	t := &table{columns: make([]column, 3)}
	from := func(field string) string {
		if date := k.FromTemplate[field]; date != "" {
			return "from template, " + date
		}
		return ""
	}
	add := func(name, value, note string) {
		if value != "" {
			t.add(name, value, note)
		}
	}
	add("key", k.Name, "")
	add("id", k.ID, "")
	switch {
	case k.Secret != "":
		add("secret", k.Secret, "shown this once")
	case k.Replayed:
		add("secret", dots(k.Prefix), "made before: it was in the first answer")
	default:
		add("secret", dots(k.Prefix), "")
	}
	add("status", k.Status, "")
	add("expires", instant(k.ExpiresAt), "")
	add("team", k.Team, from("team"))
	add("project", k.Project, from("project"))
	add("user", k.User, from("user"))
	add("plan", k.Plan, from("plan"))
	if k.AttributeUsers != "" || k.RequireUser {
		add("users", users(k), first(from("attribute_users"), from("require_user")))
	}
	add("models", allowed(k.AllowedModels), from("allowed_models"))
	if k.MaxOutputTokens != nil {
		add("max output", count(*k.MaxOutputTokens)+" tokens", from("max_output_tokens"))
	}
	add("day cap", usd(k.Caps.Day), from("caps.day"))
	add("7-day cap", usd(k.Caps.SevenDay), from("caps.seven_day"))
	add("30-day cap", usd(k.Caps.ThirtyDay), from("caps.thirty_day"))
	add("rpm", runLimit(k.Limits.RPM), from("limits.rpm"))
	add("tpm", runLimit(k.Limits.TPM), from("limits.tpm"))
	add("at once", runLimit(k.Limits.Concurrency), from("limits.concurrency"))
	if k.Source == "file" {
		add("declared", k.Origin, "read-only here")
	}
	add("changed", instant(k.UpdatedAt), "version "+strconv.FormatInt(k.Version, 10))
	return t.write(w)
}

// users says where a key's requests name their users.
func users(k *admin.KeyAnswer) string {
	text := map[string]string{"header": "named by requests", "body": "named by requests, in their body too"}[k.AttributeUsers]
	if k.RequireUser {
		text = first(text, "the key's own") + ", required"
	}
	return text
}

func allowed(models *[]string) string {
	switch {
	case models == nil:
		return "all"
	case len(*models) == 0:
		return "none"
	default:
		return strings.Join(*models, ", ")
	}
}
