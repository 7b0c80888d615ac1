// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
)

// Deployment is another door of this protocol under a path as Azure has it, with
// the model in its place: /openai/deployments/{model}/chat/completions. The name
// in the path decides, whatever the body says.
type Deployment struct{ wire.Door }

// Decode reads a request of this door.
func (d Deployment) Decode(r wire.Request) (*call.Call, *fault.Fault) {
	if body, err := wire.RewriteObject(r.Body, wire.Rewrite{Model: r.Model}, "max_tokens"); err == nil {
		r.Body = body // what is no object is refused as it is
	}
	return d.Door.Decode(r)
}
