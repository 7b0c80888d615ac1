// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"testing"

	"github.com/weirhq/weir/internal/admit"
)

// parseLimits reads the limits of GET /v1/key (EFF-1).
func parseLimits(t *testing.T, body string) []admit.LimitView {
	t.Helper()
	var view admit.KeyView
	if err := json.Unmarshal([]byte(body), &view); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return view.Limits
}
