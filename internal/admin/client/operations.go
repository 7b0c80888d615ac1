// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	"github.com/weirhq/weir/internal/admin"
)

// KeyList lists keys.
func (c *Client) KeyList(ctx context.Context, r admin.KeyListRequest) (admin.KeyListAnswer, error) {
	return call[admin.KeyListRequest, admin.KeyListAnswer](ctx, c, admin.OpKeyList, r)
}

// KeyCreate makes a key.
func (c *Client) KeyCreate(ctx context.Context, r admin.KeyCreateRequest) (admin.KeyAnswer, error) {
	return call[admin.KeyCreateRequest, admin.KeyAnswer](ctx, c, admin.OpKeyCreate, r)
}

// KeyShow shows a key.
func (c *Client) KeyShow(ctx context.Context, r admin.KeyRequest) (admin.KeyAnswer, error) {
	return call[admin.KeyRequest, admin.KeyAnswer](ctx, c, admin.OpKeyShow, r)
}

// KeyUpdate changes a key.
func (c *Client) KeyUpdate(ctx context.Context, r admin.KeyUpdateRequest) (admin.KeyAnswer, error) {
	return call[admin.KeyUpdateRequest, admin.KeyAnswer](ctx, c, admin.OpKeyUpdate, r)
}

// KeyDelete deletes a key.
func (c *Client) KeyDelete(ctx context.Context, r admin.KeyRequest) (admin.KeyAnswer, error) {
	return call[admin.KeyRequest, admin.KeyAnswer](ctx, c, admin.OpKeyDelete, r)
}

// KeyRotate gives a key a new secret.
func (c *Client) KeyRotate(ctx context.Context, r admin.KeyRotateRequest) (admin.KeyAnswer, error) {
	return call[admin.KeyRotateRequest, admin.KeyAnswer](ctx, c, admin.OpKeyRotate, r)
}

// KeyDisable disables a key.
func (c *Client) KeyDisable(ctx context.Context, r admin.KeyRequest) (admin.KeyAnswer, error) {
	return call[admin.KeyRequest, admin.KeyAnswer](ctx, c, admin.OpKeyDisable, r)
}

// KeyEnable enables a key.
func (c *Client) KeyEnable(ctx context.Context, r admin.KeyRequest) (admin.KeyAnswer, error) {
	return call[admin.KeyRequest, admin.KeyAnswer](ctx, c, admin.OpKeyEnable, r)
}

// KeyLimits lists what limits a key.
func (c *Client) KeyLimits(ctx context.Context, r admin.KeyRequest) (admin.KeyLimitsAnswer, error) {
	return call[admin.KeyRequest, admin.KeyLimitsAnswer](ctx, c, admin.OpKeyLimits, r)
}

// WorkspaceShow shows the workspace.
func (c *Client) WorkspaceShow(ctx context.Context, r admin.WorkspaceRequest) (admin.WorkspaceAnswer, error) {
	return call[admin.WorkspaceRequest, admin.WorkspaceAnswer](ctx, c, admin.OpWorkspaceShow, r)
}

// WorkspaceUpdate changes the workspace.
func (c *Client) WorkspaceUpdate(ctx context.Context, r admin.WorkspaceUpdateRequest) (admin.WorkspaceAnswer, error) {
	return call[admin.WorkspaceUpdateRequest, admin.WorkspaceAnswer](ctx, c, admin.OpWorkspaceUpdate, r)
}

// WorkspaceList lists workspaces.
func (c *Client) WorkspaceList(ctx context.Context, r admin.WorkspaceListRequest) (admin.WorkspaceListAnswer, error) {
	return call[admin.WorkspaceListRequest, admin.WorkspaceListAnswer](ctx, c, admin.OpWorkspaceList, r)
}

// FundsShow shows the balance.
func (c *Client) FundsShow(ctx context.Context, r admin.BalanceRequest) (admin.BalanceAnswer, error) {
	return call[admin.BalanceRequest, admin.BalanceAnswer](ctx, c, admin.OpFundsShow, r)
}

// FundsEntries lists fund entries.
func (c *Client) FundsEntries(ctx context.Context, r admin.FundEntriesRequest) (admin.FundEntriesAnswer, error) {
	return call[admin.FundEntriesRequest, admin.FundEntriesAnswer](ctx, c, admin.OpFundsEntries, r)
}

// FundsBook books a fund entry.
func (c *Client) FundsBook(ctx context.Context, r admin.FundRequest) (admin.BalanceAnswer, error) {
	return call[admin.FundRequest, admin.BalanceAnswer](ctx, c, admin.OpFundsBook, r)
}

// Usage sums up usage.
func (c *Client) Usage(ctx context.Context, r admin.UsageRequest) (admin.UsageAnswer, error) {
	return call[admin.UsageRequest, admin.UsageAnswer](ctx, c, admin.OpUsage, r)
}

// RequestList lists requests.
func (c *Client) RequestList(ctx context.Context, r admin.RequestListRequest) (admin.RequestListAnswer, error) {
	return call[admin.RequestListRequest, admin.RequestListAnswer](ctx, c, admin.OpRequestList, r)
}

// RequestShow explains a request.
func (c *Client) RequestShow(ctx context.Context, r admin.RequestShowRequest) (admin.RequestAnswer, error) {
	return call[admin.RequestShowRequest, admin.RequestAnswer](ctx, c, admin.OpRequestShow, r)
}

// Verify recomputes every counter.
func (c *Client) Verify(ctx context.Context, r admin.VerifyRequest) (admin.VerifyAnswer, error) {
	return call[admin.VerifyRequest, admin.VerifyAnswer](ctx, c, admin.OpVerify, r)
}

// Backup copies the store to a new file where the server runs.
func (c *Client) Backup(ctx context.Context, r admin.BackupRequest) (admin.BackupAnswer, error) {
	return call[admin.BackupRequest, admin.BackupAnswer](ctx, c, admin.OpBackup, r)
}

// ReplicaList lists the processes that share the store.
func (c *Client) ReplicaList(ctx context.Context, r admin.ReplicaListRequest) (admin.ReplicaListAnswer, error) {
	return call[admin.ReplicaListRequest, admin.ReplicaListAnswer](ctx, c, admin.OpReplicaList, r)
}

// ReplicaForget charges what a dead process left open, now.
func (c *Client) ReplicaForget(ctx context.Context, r admin.ReplicaForgetRequest) (admin.ReplicaForgetAnswer, error) {
	return call[admin.ReplicaForgetRequest, admin.ReplicaForgetAnswer](ctx, c, admin.OpReplicaForget, r)
}

// PriceList lists prices.
func (c *Client) PriceList(ctx context.Context, r admin.PriceListRequest) (admin.PriceListAnswer, error) {
	return call[admin.PriceListRequest, admin.PriceListAnswer](ctx, c, admin.OpPriceList, r)
}

// PriceShow shows a price.
func (c *Client) PriceShow(ctx context.Context, r admin.PriceShowRequest) (admin.PriceEntry, error) {
	return call[admin.PriceShowRequest, admin.PriceEntry](ctx, c, admin.OpPriceShow, r)
}

// PriceCost prices a usage.
func (c *Client) PriceCost(ctx context.Context, r admin.PriceCostRequest) (admin.PriceCostAnswer, error) {
	return call[admin.PriceCostRequest, admin.PriceCostAnswer](ctx, c, admin.OpPriceCost, r)
}

// PriceImport imports a price list.
func (c *Client) PriceImport(ctx context.Context, r admin.PriceImportRequest) (admin.PriceImportAnswer, error) {
	return call[admin.PriceImportRequest, admin.PriceImportAnswer](ctx, c, admin.OpPriceImport, r)
}

// ModelList lists models.
func (c *Client) ModelList(ctx context.Context, r admin.ModelListRequest) (admin.ModelListAnswer, error) {
	return call[admin.ModelListRequest, admin.ModelListAnswer](ctx, c, admin.OpModelList, r)
}

// ModelShow shows a model.
func (c *Client) ModelShow(ctx context.Context, r admin.ModelRequest) (admin.ModelAnswer, error) {
	return call[admin.ModelRequest, admin.ModelAnswer](ctx, c, admin.OpModelShow, r)
}

// ProviderList lists providers.
func (c *Client) ProviderList(ctx context.Context, r admin.ProviderListRequest) (admin.ProviderListAnswer, error) {
	return call[admin.ProviderListRequest, admin.ProviderListAnswer](ctx, c, admin.OpProviderList, r)
}

// ProviderShow shows a provider.
func (c *Client) ProviderShow(ctx context.Context, r admin.ProviderRequest) (admin.ProviderAnswer, error) {
	return call[admin.ProviderRequest, admin.ProviderAnswer](ctx, c, admin.OpProviderShow, r)
}

// AuditList lists changes.
func (c *Client) AuditList(ctx context.Context, r admin.AuditListRequest) (admin.AuditListAnswer, error) {
	return call[admin.AuditListRequest, admin.AuditListAnswer](ctx, c, admin.OpAuditList, r)
}

// Status says what answers.
func (c *Client) Status(ctx context.Context, r admin.StatusRequest) (admin.StatusAnswer, error) {
	return call[admin.StatusRequest, admin.StatusAnswer](ctx, c, admin.OpStatus, r)
}
