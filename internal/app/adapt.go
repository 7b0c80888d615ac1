// SPDX-License-Identifier: Apache-2.0

package app

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/openai"
)

// spoken fits an adapter to the gateway: adapters do not import each other, so
// their joints are here.
type spoken struct{ wire.Door }

func (p spoken) Decode(r gateway.Request) (*call.Call, *fault.Fault) {
	return p.Door.Decode(wire.Request(r))
}

func (p spoken) Rewrite(body []byte, r gateway.Rewrite) ([]byte, error) {
	return p.Door.Rewrite(body, wire.Rewrite(r))
}

func (p spoken) NewStream(o gateway.StreamOptions) gateway.Stream {
	return p.Door.NewStream(wire.StreamOptions(o))
}

// doors are the governed endpoints (SPEC section 9).
func doors() []gateway.Door {
	return []gateway.Door{
		{Name: call.OpenAIChat, Path: "/v1/chat/completions", Protocol: spoken{openai.Chat{}}},
	}
}
