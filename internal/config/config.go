// SPDX-License-Identifier: Apache-2.0

// Package config turns weir.yaml and the environment into one validated value
// (SPEC 14, STO-2, STO-5). It tells everything that is wrong at once, each with
// its file, line and path.
//
// It is the only package that reads the file and the environment. It writes
// nothing: applying what the file declares is the caller's (app, admin).
package config

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/rule"
	"github.com/weirhq/weir/internal/tenant"
)

// DefaultName is the file that is read when none is named.
const DefaultName = "weir.yaml"

// MaxFileBytes bounds a configuration file.
const MaxFileBytes = 1 << 20

// Bounds of lists in a file.
const (
	maxWorkspaces = 1_000
	maxProviders  = 1_000
	maxModels     = 10_000
	maxKeys       = 10_000
	maxPlans      = 1_000
	maxBudgets    = 10_000
	maxRules      = 10 * rule.MaxRules // what is read; rule.MaxRules are accepted
)

// File is a configuration: what this process needs, and the objects that are
// declared.
type File struct {
	Name      string // as it was given; empty when there was no file
	Process   Process
	Providers []Provider // shared by every workspace that inherits
	Models    []Model    // shared likewise
	// Workspaces are the default one, which the top level describes, and those
	// under workspaces, in the file's order. Empty without a file.
	Workspaces []Workspace
}

// Workspace is a workspace with what the file declares in it.
type Workspace struct {
	Name, Was string
	Line      int
	// Declared is false for a default workspace of which the file gives no
	// setting: it stays the API's to change.
	Declared  bool
	Settings  *tenant.Workspace
	Providers []Provider
	Models    []Model
	Plans     []Plan
	Keys      []Key
	Budgets   []Budget // of the workspace; those of keys and plans are with them
	Rules     []Rule
}

// Provider is a declared provider and, apart from it, its credential.
type Provider struct {
	Was        string
	Line       int
	Value      *route.Provider
	Credential string // empty with auth: none
}

// Model is a declared model.
type Model struct {
	Was   string
	Line  int
	Value *route.Model
}

// Key is a declared key. Its secret is here as a hash only.
type Key struct {
	Was        string
	Line       int
	Value      *tenant.Key
	SecretHash [32]byte
	// Explicit are the paths of the fields that the file gives, nulls included:
	// the template fills none of these (SPEC KEY-4).
	Explicit map[string]bool
	Budgets  []Budget
}

// Plan is a declared plan with its budgets.
type Plan struct {
	Was     string
	Line    int
	Value   *tenant.Plan
	Budgets []Budget
}

// Budget is a declared budget. Its subject is as the file writes it: a key or
// plan is called by its name.
type Budget struct {
	Was   string
	Line  int
	Value *budget.Budget
}

// Rule is a declared rate rule, its subject likewise.
type Rule struct {
	Was   string
	Line  int
	Value *rule.Rule
}

// Lookup finds a variable of the environment, as os.LookupEnv does.
type Lookup func(name string) (value string, ok bool)

// Load reads and parses a file with the process's environment. A path of ""
// is no file: the defaults, with the environment's overrides.
func Load(path string) (*File, error) { return LoadWith(path, os.LookupEnv) }

// LoadWith is Load with another environment. A file of the default name that
// is not there is no file.
func LoadWith(path string, env Lookup) (*File, error) {
	if path == "" {
		return Default(env)
	}
	text, err := read(path)
	if errors.Is(err, os.ErrNotExist) && path == DefaultName {
		return Default(env)
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return Parse(path, text, env)
}

func read(path string) (text []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// One byte more than allowed, so that Parse tells that it is too long.
	return io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
}

// Default is the configuration without a file.
func Default(env Lookup) (*File, error) {
	f := &File{Process: defaultProcess()}
	if err := f.Process.override(env).Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// Parse reads the text of a file of that name. Errors are Problems: all that is
// wrong, by line.
func Parse(name string, text []byte, env Lookup) (*File, error) {
	root, problems := readYAML(text, env)
	if len(problems) > 0 {
		return nil, located(name, problems)
	}
	p := &parser{file: &File{Name: name, Process: defaultProcess()}}
	_, err := document.Read(root, p.top)
	var wrong document.Problems
	if err != nil && !errors.As(err, &wrong) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	overrides := p.file.Process.override(env)
	wrong = append(wrong, p.check()...)
	if err := append(located(name, wrong), overrides...).Err(); err != nil {
		return nil, err
	}
	return p.file, nil
}
