// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
)

// CountTokens is the door :countTokens, a request of price zero (SPEC section 9).
type CountTokens struct{ Generate }

var countRules = wire.Rules{
	Snake:   true,
	Decides: append([]string{"generateContentRequest"}, generateRules.Decides...),
	// One of two: the contents, or a whole request around them.
	Required: []string{"contents"},
	Refused:  generateRules.Refused,
	Unread:   generateRules.Unread,
}

// Decode reads a request of this door.
func (CountTokens) Decode(r wire.Request) (*call.Call, *fault.Fault) {
	d := decoder{wire.NewDecoder(call.GeminiCountTokens, r.Body)}
	return d.read(&countRules, r.Model)
}

func (d decoder) nestedRequest() {
	if d.Peek() != '{' {
		d.WrongType("generateContentRequest", "an object")
		return
	}
	d.Members("generateContentRequest.", &generateRules, d.decide)
}

// Path is the door's at a provider.
func (CountTokens) Path(_ *call.Call, model string) string { return modelPath(model) + ":countTokens" }

// Rewrite is wire.Door's. A count has no output, and no bound of it.
func (CountTokens) Rewrite(body []byte, r wire.Rewrite) ([]byte, error) {
	return rewrite(body, wire.Rewrite{Model: r.Model})
}

// Whole is wire.Door's: the answer is what was asked for, and no usage.
func (CountTokens) Whole(body []byte, _ int64) call.Observed { return wire.Counted(body) }
