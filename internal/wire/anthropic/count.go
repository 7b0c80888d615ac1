// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
)

// CountTokens is the door POST /v1/messages/count_tokens: a request of price
// zero (SPEC section 9).
type CountTokens struct{ Messages }

// Decode reads a request of this door.
func (CountTokens) Decode(r wire.Request) (*call.Call, *fault.Fault) {
	return decode(call.AnthropicCountTokens, r.Body)
}

// Path is the door's at a provider.
func (CountTokens) Path(*call.Call, string) string { return "/messages/count_tokens" }

// Rewrite is wire.Door's. A count has no output, and no bound of it.
func (CountTokens) Rewrite(body []byte, r wire.Rewrite) ([]byte, error) {
	body, err := rewrite(body, wire.Rewrite{Model: r.Model})
	if err != nil || r.Version == "" {
		return body, err
	}
	return versioned(body, r.Version, "")
}

// Whole is wire.Door's: the answer is what was asked for, and no usage.
func (CountTokens) Whole(body []byte, _ int64) call.Observed { return wire.Counted(body) }
