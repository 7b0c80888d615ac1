// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/sqlite"
)

// VerifyFile verifies a store's file that no process has open, such as a backup,
// and changes nothing (RES-7).
func VerifyFile(ctx context.Context, path string) (answer admin.VerifyAnswer, err error) {
	now := clock.System()
	err = sqlite.Inspect(ctx, path, now, func(b *sqlite.Book) (err error) {
		s := admin.New(admin.Options{Verifiable: b, Clock: now})
		answer, err = s.Verify(ctx, admin.Actor{Name: "verify", Role: admin.System}, admin.VerifyRequest{})
		return err
	})
	if errors.Is(err, store.ErrLocked) {
		err = errors.Join(err, errors.New("a store that is in use is verified without --file"))
	}
	return answer, err
}
