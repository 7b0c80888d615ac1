// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admin/client"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/directory"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/price"
	"github.com/weirhq/weir/internal/store/memory"
	"github.com/weirhq/weir/internal/teller"
)

func service(t *testing.T) *admin.Service {
	t.Helper()
	c := clock.NewManual(time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC).UnixMicro())
	book := memory.New(memory.Options{Clock: c})
	prices, err := price.Load()
	if err != nil {
		t.Fatal(err)
	}
	d, err := directory.New(t.Context(), book, c, prices)
	if err != nil {
		t.Fatal(err)
	}
	desk := teller.New(book, teller.Options{})
	desk.Start()
	t.Cleanup(func() {
		if err := desk.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s := admin.New(admin.Options{
		Objects: book, Secrets: book, Log: book, Verifiable: book, Decider: desk, Snapshots: d, Prices: prices, Clock: c, Durable: true,
	})
	if err := errors.Join(s.EnsureDefault(t.Context()), s.SetToken(t.Context(), "the-token-of-the-test")); err != nil {
		t.Fatal(err)
	}
	return s
}

func handler(t *testing.T, s *admin.Service, who admin.Authenticate) http.Handler {
	t.Helper()
	h, err := admin.Handler(s, who)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ways are all that lead to the operations.
func ways(t *testing.T) map[string]*client.Client {
	t.Helper()
	tcp := httptest.NewServer(func() http.Handler { s := service(t); return handler(t, s, s.ByToken()) }())
	t.Cleanup(tcp.Close)
	path := filepath.Join(t.TempDir(), "weir.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	socket := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler(t, service(t), admin.BySocket()), ReadHeaderTimeout: time.Minute}}
	socket.Start()
	t.Cleanup(socket.Close)
	dial := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	t.Cleanup(dial.CloseIdleConnections)
	return map[string]*client.Client{
		"token":  client.New(client.Options{Base: tcp.URL, Token: "the-token-of-the-test"}),
		"socket": client.New(client.Options{Transport: dial}),
		"direct": client.New(client.Options{Transport: client.Direct(handler(t, service(t), admin.BySocket()))}),
	}
}

func TestEveryWayLeadsToTheSameOperations(t *testing.T) {
	for name, c := range ways(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			create := admin.KeyCreateRequest{IdempotencyKey: "once", Body: admin.KeyFields{
				Name: admin.Some("a key/with marks?"), Caps: admin.Some(admin.CapFields{Day: admin.Some("5"), SevenDay: admin.Null[string]()}),
				AllowedModels: admin.Some([]string{}),
			}}
			made, err := c.KeyCreate(ctx, create)
			if err != nil || made.Secret == "" || made.Caps.Day != "5" || made.AllowedModels == nil || len(*made.AllowedModels) != 0 {
				t.Fatalf("made %+v, %v", made, err)
			}
			if again, err := c.KeyCreate(ctx, create); err != nil || !again.Replayed || again.ID != made.ID {
				t.Errorf("again %+v, %v", again, err)
			}
			shown, err := c.KeyShow(ctx, admin.KeyRequest{Key: "a key/with marks?"})
			if err != nil || shown.ID != made.ID {
				t.Errorf("shown %+v, %v", shown, err)
			}
			changed, err := c.KeyUpdate(ctx, admin.KeyUpdateRequest{Key: made.ID, Body: admin.KeyFields{AllowedModels: admin.Null[[]string]()}})
			if err != nil || changed.AllowedModels != nil || changed.Caps.Day != "5" {
				t.Errorf("changed %+v, %v", changed, err)
			}
			limits, err := c.KeyLimits(ctx, admin.KeyRequest{Key: made.ID})
			if err != nil || len(limits.Limits) == 0 {
				t.Errorf("limits %+v, %v", limits, err)
			}
			list, err := c.KeyList(ctx, admin.KeyListRequest{Limit: 1})
			if err != nil || len(list.Keys) != 1 {
				t.Errorf("list %+v, %v", list, err)
			}
			limited(t, c, made.ID)
			usage, err := c.Usage(ctx, admin.UsageRequest{By: "key,day", From: "2026-03-01", To: "2026-03-04"})
			if err != nil || len(usage.By) != 2 {
				t.Errorf("usage %+v, %v", usage, err)
			}
			verified, err := c.Verify(ctx, admin.VerifyRequest{})
			if err != nil || !verified.Balanced {
				t.Errorf("verified %+v, %v", verified, err)
			}
			entries, err := c.AuditList(ctx, admin.AuditListRequest{})
			if err != nil || len(entries.Entries) != 10 || len(entries.Entries[0].After) == 0 {
				t.Errorf("audit %+v, %v", entries, err)
			}
		})
	}
}

// limited makes, changes and shows limits of a key; seven changes are audited.
func limited(t *testing.T, c *client.Client, key string) {
	t.Helper()
	ctx := t.Context()
	create := admin.BudgetCreateRequest{IdempotencyKey: "once more", Body: admin.BudgetFields{
		Name: admin.Some("b"), Scope: admin.Some("key"), Subject: admin.Some(key), Metric: admin.Some("spend"),
		LimitUSD: admin.Some("5"), Period: admin.Some("day"), WarnPercent: admin.Some([]int{80}),
	}}
	b, err := c.BudgetCreate(ctx, create)
	if again, other := c.BudgetCreate(ctx, create); err != nil || other != nil || again.ID != b.ID || !again.Replayed || b.Limit != 5_000_000 {
		t.Fatalf("budget %+v, %v, %v", b, err, other)
	}
	b, err = c.BudgetUpdate(ctx, admin.BudgetUpdateRequest{ID: b.ID, Body: admin.BudgetFields{Limit: admin.Some(int64(6_000_000)), WarnPercent: admin.Null[[]int]()}})
	if err != nil || b.LimitUSD != "6" || len(b.WarnPercent) != 0 {
		t.Errorf("changed %+v, %v", b, err)
	}
	b, err = c.BudgetRaise(ctx, admin.BudgetRaiseRequest{ID: b.ID, Body: admin.RaiseFields{AmountUSD: admin.Some("1"), Reason: "r"}})
	if err != nil || b.RemainUSD != "7" {
		t.Errorf("raised %+v, %v", b, err)
	}
	r, err := c.RateLimitCreate(ctx, admin.RateLimitCreateRequest{Body: admin.RateLimitFields{
		Name: admin.Some("r"), SubjectKind: admin.Some("org"), Metric: admin.Some("requests"), WindowSeconds: admin.Some(int64(60)), Limit: admin.Some(int64(5)),
	}})
	if err != nil || r.Remaining == nil || *r.Remaining != 5 {
		t.Errorf("rate limit %+v, %v", r, err)
	}
	plan, err := c.PlanCreate(ctx, admin.PlanCreateRequest{Body: admin.PlanFields{Name: admin.Some("p"), AllowedModels: admin.Some([]string{})}})
	if err != nil || plan.AllowedModels == nil || len(*plan.AllowedModels) != 0 {
		t.Errorf("plan %+v, %v", plan, err)
	}
	if k, err := c.KeyUpdate(ctx, admin.KeyUpdateRequest{Key: key, Body: admin.KeyFields{Plan: admin.Some("p"), AttributeUsers: admin.Some("header")}}); err != nil || k.Plan != "p" {
		t.Errorf("key %+v, %v", k, err)
	}
	if view, err := c.KeyReset(ctx, admin.KeyResetRequest{Key: key, Body: admin.KeyResetFields{Reason: "r"}}); err != nil || len(view.Limits) < 2 {
		t.Errorf("limits %+v, %v", view, err)
	}
	budgets, err := c.BudgetList(ctx, admin.BudgetListRequest{})
	rules, other := c.RateLimitList(ctx, admin.RateLimitListRequest{})
	if err != nil || other != nil || len(budgets.Budgets) != 1 || len(rules.RateLimits) != 1 {
		t.Errorf("lists %+v, %+v, %v, %v", budgets, rules, err, other)
	}
}

func TestARefusalIsTheSameFaultOnEveryWay(t *testing.T) {
	for name, c := range ways(t) {
		t.Run(name, func(t *testing.T) {
			for _, ask := range []struct {
				code  fault.Code
				param string
				err   error
			}{
				{fault.NotFound, "", second(c.KeyShow(t.Context(), admin.KeyRequest{Key: "nosuch"}))},
				{fault.InvalidRequest, "caps.day", second(c.KeyCreate(t.Context(), admin.KeyCreateRequest{Body: admin.KeyFields{
					Name: admin.Some("k"), Caps: admin.Some(admin.CapFields{Day: admin.Some("-1")}),
				}}))},
				{fault.InvalidRequest, "limit", second(c.KeyList(t.Context(), admin.KeyListRequest{Limit: -1}))},
			} {
				var f *fault.Fault
				if !errors.As(ask.err, &f) || f.Code != ask.code || f.Param != ask.param || f.HTTPStatus() < 400 || f.Message == "" {
					t.Errorf("want %s, got %v", ask.code, ask.err)
				}
			}
			if _, err := c.KeyShow(t.Context(), admin.KeyRequest{Key: ".."}); err == nil {
				t.Error("a path that leads elsewhere was sent")
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestAServerThatIsNotWeirIsNoFault(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	_, err := client.New(client.Options{Base: other.URL}).Status(t.Context(), admin.StatusRequest{})
	var f *fault.Fault
	if err == nil || errors.As(err, &f) {
		t.Errorf("got %v", err)
	}
}
