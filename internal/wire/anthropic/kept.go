// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
)

// maxResultDepth bounds how deep files are looked for in a tool's result.
const maxResultDepth = 4

// container notes the environment that code ran in: the provider keeps it, and a
// later request may name it (DIS-8).
func (t *tally) container(s *wire.Scanner) {
	s.ObjectOrSkip(func(key []byte) {
		if string(key) == "id" {
			t.kept = call.AppendKept(t.kept, call.KeptContainer, string(s.StringOrSkip()))
		} else {
			s.Skip()
		}
	})
}

// files notes those that code has written, in the result of a tool.
func (t *tally) files(s *wire.Scanner, depth int) {
	switch {
	case depth == 0:
		s.Skip()
	case s.Peek() == '[':
		s.Array(func() { t.files(s, depth-1) })
	default:
		s.ObjectOrSkip(func(key []byte) {
			switch string(key) {
			case "file_id":
				t.kept = call.AppendKept(t.kept, call.KeptFile, string(s.StringOrSkip()))
			case "content":
				t.files(s, depth-1)
			default:
				s.Skip()
			}
		})
	}
}
