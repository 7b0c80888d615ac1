// SPDX-License-Identifier: Apache-2.0

package app

import (
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/wire/openai"
)

// openAIChat fits the OpenAI adapter to the gateway: adapters do not import
// each other, so their joints are here.
type openAIChat struct{ openai.Chat }

func (c openAIChat) Rewrite(body []byte, r gateway.Rewrite) ([]byte, error) {
	return c.Chat.Rewrite(body, openai.Rewrite(r))
}

func (c openAIChat) NewStream(o gateway.StreamOptions) gateway.Stream {
	return c.Chat.NewStream(openai.StreamOptions(o))
}
