// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"fmt"

	"github.com/weirhq/weir/internal/wire"
)

// versioned writes the protocol's version into a body that has members, and leaves
// one of them out: where Vertex AI serves the protocol a message's model stands in
// the path alone.
func versioned(body []byte, version, without string) ([]byte, error) {
	s := wire.NewScanner(body)
	var cut wire.Cutter
	seen := false
	s.Object(func(key []byte) {
		at := s.KeyAt()
		cut.Enter(at)
		seen = seen || string(key) == "anthropic_version"
		remove := without != "" && string(key) == without
		s.Skip()
		cut.Leave(at, s.At(), remove)
	})
	s.End()
	if s.Err != nil {
		return nil, fmt.Errorf("rewrite the request: %w", s.Err)
	}
	var splices []wire.Splice
	if !seen {
		first := wire.NewScanner(body)
		first.Peek()
		splices = append(splices, wire.Replace(first.At()+1, first.At()+1, `"anthropic_version":`+wire.Quote(version)+","))
	}
	for _, span := range cut.Spans {
		splices = append(splices, wire.Replace(span.Start, span.End, ""))
	}
	return wire.Apply(body, splices), nil
}
