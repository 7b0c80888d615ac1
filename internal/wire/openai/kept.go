// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"slices"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
)

// kept collects the ids in a response of what the provider keeps (DIS-8).
type kept struct {
	list     []call.Kept
	unstored bool // the response says that it is not kept itself
}

func (k *kept) add(kind, id string) { k.list = call.AppendKept(k.list, kind, id) }

func (k *kept) stored(s *wire.Scanner) {
	switch s.Peek() {
	case 't', 'f':
		k.unstored = s.Literal() == "false"
	default:
		s.Skip()
	}
}

// settle leaves out what is not kept after all.
func (k *kept) settle() {
	if k.unstored {
		k.list = slices.DeleteFunc(k.list, call.Kept.Stored)
	}
}

func (k *kept) conversation(s *wire.Scanner) {
	if s.Peek() == '"' {
		k.add(call.KeptConversation, string(s.StringOrSkip()))
		return
	}
	s.ObjectOrSkip(func(key []byte) {
		if string(key) == "id" {
			k.add(call.KeptConversation, string(s.StringOrSkip()))
		} else {
			s.Skip()
		}
	})
}

// annotation reads one that names a file which was written in a container. Others
// name files that were there before.
func (k *kept) annotation(s *wire.Scanner) {
	var container, file string
	s.ObjectOrSkip(func(key []byte) {
		switch string(key) {
		case "container_id":
			container = string(s.StringOrSkip())
		case "file_id":
			file = string(s.StringOrSkip())
		default:
			s.Skip()
		}
	})
	if container != "" {
		k.add(call.KeptContainer, container)
		k.add(call.KeptFile, file)
	}
}
