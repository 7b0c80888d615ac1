// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"

	"github.com/weirhq/weir/internal/ledger"
)

// raisedBy is what the window of a reading was raised by (SPEC BUD-9).
func raisedBy(r *ledger.Reading) int64 { return max(0, r.Amount-r.Check.Amount) }

func (s *Service) seed(context.Context, made) error { return nil }
