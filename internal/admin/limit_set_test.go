// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"fmt"
	"testing"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/fault"
)

// TestOneLimitTooManyForARequestIsRefusedWhereItIsMade: an admission takes so
// many checks; a workspace whose limits pass that could admit nothing. BR-016.
func TestOneLimitTooManyForARequestIsRefusedWhereItIsMade(t *testing.T) {
	overEvery(t, func(t *testing.T, w *world) {
		for i := range 200 {
			_, err := w.RateLimitCreate(t.Context(), system, admin.RateLimitCreateRequest{Body: asJSON[admin.RateLimitFields](t,
				fmt.Sprintf(`{"name":"r%d","subject_kind":"org","metric":"requests","window_seconds":60,"limit":9}`, i))})
			if err != nil {
				t.Fatal(err)
			}
		}
		made, body := 0, `{"name":"b%d","scope":"org","metric":"tokens","limit":1000000,"period":"day","enforcement":"guard"}`
		var err error
		for ; err == nil && made < 100; made++ {
			_, err = w.BudgetCreate(t.Context(), system, admin.BudgetCreateRequest{Body: asJSON[admin.BudgetFields](t, fmt.Sprintf(body, made))})
		}
		if refused(t, err, fault.InvalidRequest); made != 41 {
			t.Fatalf("budget %d is refused: %v", made, err)
		}
		k := w.key("ci", func(*admin.KeyFields) {})
		w.request(k.Secret, "m1", "") // what was made is enforced and in nobody's way
	})
}
