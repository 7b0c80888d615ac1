// SPDX-License-Identifier: Apache-2.0

package call

// What a provider may keep, by kind.
const (
	KeptResponse     = "response"
	KeptItem         = "item" // of a response's output
	KeptConversation = "conversation"
	KeptContainer    = "container"
	KeptFile         = "file" // that was written in a container
	KeptAudio        = "audio"
)

const (
	// MaxStateIDs bounds the ids of what providers keep in one request.
	MaxStateIDs = 4096
	// MaxKept bounds those in one answer that are remembered.
	MaxKept = 1024
)

// Kept is an id in an answer of something that the provider keeps, so that a later
// request may name it (DIS-8).
type Kept struct{ Kind, ID string }

// Stored tells that it is kept because the request asked for storing its answer.
func (k Kept) Stored() bool { return k.Kind == KeptResponse || k.Kind == KeptItem }

// AppendKept adds an id, unless it is empty or there are too many.
func AppendKept(list []Kept, kind, id string) []Kept {
	if id == "" || len(list) >= MaxKept {
		return list
	}
	return append(list, Kept{kind, id})
}
