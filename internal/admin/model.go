// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/route"
	"github.com/weirhq/weir/internal/store"
)

// ModelList lists the models that the workspace has.
func (s *Service) ModelList(ctx context.Context, a Actor, _ ModelListRequest) (ModelListAnswer, error) {
	c, err := s.enter(ctx, a, OpModelList)
	if err != nil {
		return ModelListAnswer{}, err
	}
	list, err := s.models(ctx, c)
	return ModelListAnswer{Models: list}, answer(err)
}

// ModelShow is one model, by its name or an alias.
func (s *Service) ModelShow(ctx context.Context, a Actor, r ModelRequest) (ModelAnswer, error) {
	c, err := s.enter(ctx, a, OpModelShow)
	if err != nil {
		return ModelAnswer{}, err
	}
	list, err := s.models(ctx, c)
	if err != nil {
		return ModelAnswer{}, answer(err)
	}
	for i := range list {
		if list[i].Name == r.Model || slices.Contains(list[i].Aliases, r.Model) {
			return list[i], nil
		}
	}
	return ModelAnswer{}, fault.New(fault.NotFound, "workspace %s has no model %s", c.workspace.Name, document.Quote(r.Model))
}

// visible are a kind's objects by name: the shared ones, if the workspace
// inherits, and over them its own (SPEC 14).
func (s *Service) visible(ctx context.Context, c *scope, kind string) ([]store.Object, error) {
	byName := map[string]store.Object{}
	owners := []string{"", c.object.ID}
	if !c.workspace.Inherit {
		owners = owners[1:]
	}
	for _, owner := range owners {
		err := s.each(ctx, owner, kind, func(o store.Object) error {
			byName[o.Name] = o
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	list := make([]store.Object, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	return list, nil
}

func (s *Service) models(ctx context.Context, c *scope) ([]ModelAnswer, error) {
	snapshot, err := s.Snapshots.Refresh(ctx, c.object.ID)
	if err != nil {
		return nil, err
	}
	objects, err := s.visible(ctx, c, KindModel)
	if err != nil {
		return nil, err
	}
	list := make([]ModelAnswer, 0, len(objects))
	for i := range objects {
		view, err := viewModel(&objects[i])
		if err != nil {
			return nil, err
		}
		if target, _ := snapshot.Resolve(view.Name); target != nil && target.Price != nil {
			if view.Price, err = viewPrice(target.Price); err != nil {
				return nil, err
			}
		}
		list = append(list, view)
	}
	return list, nil
}

func viewModel(o *store.Object) (ModelAnswer, error) {
	m, err := route.DecodeModel(o.Body)
	if err != nil {
		return ModelAnswer{}, fmt.Errorf("read model %s: %w", o.Name, err)
	}
	return ModelAnswer{
		ID: o.ID, Name: o.Name, Shared: o.Workspace == "", Provider: m.Provider, Upstream: m.Upstream,
		ContextTokens: m.ContextTokens, MaxOutputTokens: m.MaxOutputTokens, DefaultOutputTokens: m.DefaultOutputTokens,
		ImageTokens: m.ImageTokens, BytesPerToken: m.BytesPerToken, OutputField: m.OutputField, Aliases: m.Aliases,
		Source: o.Source, Origin: o.Origin,
	}, nil
}

// ProviderList lists the providers that the workspace has.
func (s *Service) ProviderList(ctx context.Context, a Actor, _ ProviderListRequest) (ProviderListAnswer, error) {
	c, err := s.enter(ctx, a, OpProviderList)
	if err != nil {
		return ProviderListAnswer{}, err
	}
	list, err := s.providers(ctx, c)
	return ProviderListAnswer{Providers: list}, answer(err)
}

// ProviderShow is one provider.
func (s *Service) ProviderShow(ctx context.Context, a Actor, r ProviderRequest) (ProviderAnswer, error) {
	c, err := s.enter(ctx, a, OpProviderShow)
	if err != nil {
		return ProviderAnswer{}, err
	}
	list, err := s.providers(ctx, c)
	if err != nil {
		return ProviderAnswer{}, answer(err)
	}
	for i := range list {
		if list[i].Name == r.Provider {
			return list[i], nil
		}
	}
	return ProviderAnswer{}, fault.New(fault.NotFound, "workspace %s has no provider %s", c.workspace.Name, document.Quote(r.Provider))
}

func (s *Service) providers(ctx context.Context, c *scope) ([]ProviderAnswer, error) {
	objects, err := s.visible(ctx, c, KindProvider)
	if err != nil {
		return nil, err
	}
	list := make([]ProviderAnswer, 0, len(objects))
	for i := range objects {
		o := &objects[i]
		p, err := route.DecodeProvider(o.Body)
		if err != nil {
			return nil, fmt.Errorf("read provider %s: %w", o.Name, err)
		}
		credential, err := s.credential(ctx, o)
		if err != nil {
			return nil, err
		}
		list = append(list, ProviderAnswer{
			ID: o.ID, Name: o.Name, Shared: o.Workspace == "", Protocol: p.Protocol, Dialect: p.Speaks(), BaseURL: p.BaseURL,
			Auth: p.Auth, AuthName: p.AuthName, HasCredential: credential != "", ClientGone: p.ClientGone,
			HeaderNames: slices.Sorted(maps.Keys(p.Headers)), StreamUsage: p.StreamUsage,
			TrustProviderCost: p.TrustProviderCost, Source: o.Source, Origin: o.Origin,
		})
	}
	return list, nil
}

// credential is a provider's, "" when it has none. It never leaves the package.
func (s *Service) credential(ctx context.Context, o *store.Object) (string, error) {
	text, err := s.Secrets.Credential(ctx, o.Workspace, o.ID)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return text, err
}
