// SPDX-License-Identifier: Apache-2.0

package openai

import "github.com/weirhq/weir/internal/wire"

// Rewrite is wire.Door's.
func (Chat) Rewrite(body []byte, r wire.Rewrite) ([]byte, error) {
	return wire.RewriteObject(body, r, "max_tokens", "max_completion_tokens")
}
