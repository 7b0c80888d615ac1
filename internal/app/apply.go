// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/store/postgres"
)

// apply makes the store hold what the file declares (STO-2). Without a file
// there is nothing to apply: what an earlier file declared stays.
func (s *Server) apply(ctx context.Context, file *config.File) error {
	if file.Name == "" {
		return nil
	}
	declared, err := declarations(file)
	if err != nil {
		return err
	}
	mark := fingerprint(declared)
	did, err := s.core.admin.Apply(ctx, "file", declared, file.Name)
	if err != nil {
		return fmt.Errorf("apply %s: %w", file.Name, err)
	}
	s.core.tellApplied(ctx, mark)
	if did.Any() {
		s.log.Info("configuration applied", "file", file.Name, "created", len(did.Created), "changed", len(did.Changed),
			"renamed", len(did.Renamed), "rotated", len(did.Rotated), "revived", len(did.Revived), "retired", len(did.Retired))
	}
	return nil
}

// declarations hands config's objects to admin: neither imports the other.
func declarations(file *config.File) ([]admin.Declared, error) {
	desired, err := file.Desired()
	if err != nil {
		return nil, err
	}
	declared := make([]admin.Declared, 0, len(desired))
	for _, d := range desired {
		one := admin.Declared{
			Workspace: d.Workspace, Kind: d.Kind, Name: d.Name, Was: d.Was, OwnerKind: d.OwnerKind, OwnerName: d.OwnerName,
			Body: d.Body, Given: d.Explicit,
		}
		if d.Credential != nil {
			one.Credential = *d.Credential
		}
		if d.SecretHash != nil {
			one.Secret = &admin.DeclaredSecret{Hash: *d.SecretHash, Prefix: prefixOf(d.Body)}
		}
		one.Line, _ = strconv.Atoi(d.Origin[strings.LastIndexByte(d.Origin, ':')+1:]) // "file:12", written by config
		declared = append(declared, one)
	}
	return declared, nil
}

// prefixOf reads the visible prefix of a key's secret out of its body.
func prefixOf(body []byte) string {
	var key struct {
		Prefix string `json:"prefix"`
	}
	_ = json.Unmarshal(body, &key) // the body was encoded a moment ago
	return key.Prefix
}

// Summary is what `weir check` says of a sound file.
type Summary struct {
	File                                string
	Workspaces, Providers, Models, Keys int
	Plans, Budgets, RateLimits          int
}

// Check reads and validates a configuration file without applying it.
func Check(path string, env func(string) (string, bool)) (Summary, error) {
	file, err := load(Options{ConfigPath: path, Env: env})
	if err != nil {
		return Summary{}, err
	}
	if file.Name == "" {
		return Summary{}, fmt.Errorf("read the configuration: there is no file %s", path)
	}
	if err := checkAddresses(&file.Process); err != nil {
		return Summary{}, err
	}
	desired, err := file.Desired()
	if err != nil {
		return Summary{}, err
	}
	s := Summary{File: file.Name}
	for _, d := range desired {
		switch d.Kind {
		case admin.KindWorkspace:
			s.Workspaces++
		case admin.KindProvider:
			s.Providers++
		case admin.KindModel:
			s.Models++
		case admin.KindKey:
			s.Keys++
		case admin.KindPlan:
			s.Plans++
		case admin.KindBudget:
			s.Budgets++
		case admin.KindRateLimit:
			s.RateLimits++
		}
	}
	return s, nil
}

// checkAddresses tells what the driver would not take of a database's addresses.
func checkAddresses(p *config.Process) error {
	if address, shared := p.StoreURL(); shared {
		if err := postgres.Validate(address); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	if p.Postgres.ListenURL == "" {
		return nil
	}
	if err := postgres.Validate(p.Postgres.ListenURL); err != nil {
		return fmt.Errorf("postgres.listen_url: %w", err)
	}
	return nil
}
