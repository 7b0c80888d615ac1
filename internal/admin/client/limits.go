// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	"github.com/weirhq/weir/internal/admin"
)

// BudgetList lists budgets.
func (c *Client) BudgetList(ctx context.Context, r admin.BudgetListRequest) (admin.BudgetListAnswer, error) {
	return call[admin.BudgetListRequest, admin.BudgetListAnswer](ctx, c, admin.OpBudgetList, r)
}

// BudgetCreate makes a budget.
func (c *Client) BudgetCreate(ctx context.Context, r admin.BudgetCreateRequest) (admin.BudgetAnswer, error) {
	return call[admin.BudgetCreateRequest, admin.BudgetAnswer](ctx, c, admin.OpBudgetCreate, r)
}

// BudgetUpdate changes a budget.
func (c *Client) BudgetUpdate(ctx context.Context, r admin.BudgetUpdateRequest) (admin.BudgetAnswer, error) {
	return call[admin.BudgetUpdateRequest, admin.BudgetAnswer](ctx, c, admin.OpBudgetUpdate, r)
}

// BudgetDelete deletes a budget.
func (c *Client) BudgetDelete(ctx context.Context, r admin.BudgetRequest) (admin.BudgetAnswer, error) {
	return call[admin.BudgetRequest, admin.BudgetAnswer](ctx, c, admin.OpBudgetDelete, r)
}

// RateLimitList lists rate limits.
func (c *Client) RateLimitList(ctx context.Context, r admin.RateLimitListRequest) (admin.RateLimitListAnswer, error) {
	return call[admin.RateLimitListRequest, admin.RateLimitListAnswer](ctx, c, admin.OpRateLimitList, r)
}

// RateLimitCreate makes a rate limit.
func (c *Client) RateLimitCreate(ctx context.Context, r admin.RateLimitCreateRequest) (admin.RateLimitAnswer, error) {
	return call[admin.RateLimitCreateRequest, admin.RateLimitAnswer](ctx, c, admin.OpRateLimitCreate, r)
}

// RateLimitUpdate changes a rate limit.
func (c *Client) RateLimitUpdate(ctx context.Context, r admin.RateLimitUpdateRequest) (admin.RateLimitAnswer, error) {
	return call[admin.RateLimitUpdateRequest, admin.RateLimitAnswer](ctx, c, admin.OpRateLimitUpdate, r)
}

// RateLimitDelete deletes a rate limit.
func (c *Client) RateLimitDelete(ctx context.Context, r admin.RateLimitRequest) (admin.RateLimitAnswer, error) {
	return call[admin.RateLimitRequest, admin.RateLimitAnswer](ctx, c, admin.OpRateLimitDelete, r)
}

// PlanList lists plans.
func (c *Client) PlanList(ctx context.Context, r admin.PlanListRequest) (admin.PlanListAnswer, error) {
	return call[admin.PlanListRequest, admin.PlanListAnswer](ctx, c, admin.OpPlanList, r)
}

// PlanCreate makes a plan.
func (c *Client) PlanCreate(ctx context.Context, r admin.PlanCreateRequest) (admin.PlanAnswer, error) {
	return call[admin.PlanCreateRequest, admin.PlanAnswer](ctx, c, admin.OpPlanCreate, r)
}

// PlanShow shows a plan.
func (c *Client) PlanShow(ctx context.Context, r admin.PlanRequest) (admin.PlanAnswer, error) {
	return call[admin.PlanRequest, admin.PlanAnswer](ctx, c, admin.OpPlanShow, r)
}

// PlanUpdate changes a plan.
func (c *Client) PlanUpdate(ctx context.Context, r admin.PlanUpdateRequest) (admin.PlanAnswer, error) {
	return call[admin.PlanUpdateRequest, admin.PlanAnswer](ctx, c, admin.OpPlanUpdate, r)
}

// PlanDelete deletes a plan.
func (c *Client) PlanDelete(ctx context.Context, r admin.PlanRequest) (admin.PlanAnswer, error) {
	return call[admin.PlanRequest, admin.PlanAnswer](ctx, c, admin.OpPlanDelete, r)
}

// BudgetRaise raises a budget for its current window.
func (c *Client) BudgetRaise(ctx context.Context, r admin.BudgetRaiseRequest) (admin.BudgetAnswer, error) {
	return call[admin.BudgetRaiseRequest, admin.BudgetAnswer](ctx, c, admin.OpBudgetRaise, r)
}

// BudgetReset resets what a budget's window has used.
func (c *Client) BudgetReset(ctx context.Context, r admin.BudgetResetRequest) (admin.BudgetAnswer, error) {
	return call[admin.BudgetResetRequest, admin.BudgetAnswer](ctx, c, admin.OpBudgetReset, r)
}

// RateLimitReset empties a rate limit's window.
func (c *Client) RateLimitReset(ctx context.Context, r admin.RateLimitResetRequest) (admin.RateLimitAnswer, error) {
	return call[admin.RateLimitResetRequest, admin.RateLimitAnswer](ctx, c, admin.OpRateLimitReset, r)
}

// KeyReset resets what a key's caps and budgets have used.
func (c *Client) KeyReset(ctx context.Context, r admin.KeyResetRequest) (admin.KeyLimitsAnswer, error) {
	return call[admin.KeyResetRequest, admin.KeyLimitsAnswer](ctx, c, admin.OpKeyReset, r)
}

// RequestAdjust says what a request cost instead of what it was charged.
func (c *Client) RequestAdjust(ctx context.Context, r admin.RequestAdjustRequest) (admin.RequestAnswer, error) {
	return call[admin.RequestAdjustRequest, admin.RequestAnswer](ctx, c, admin.OpRequestAdjust, r)
}
