// SPDX-License-Identifier: Apache-2.0

package route

import (
	"crypto/sha256"
	"slices"
)

// KeptHash stands for the id of something that a provider keeps: the first half
// of its SHA-256. An id may be of any length, and nobody who reads a store can use
// what is in it.
type KeptHash [16]byte

// HashKept is the hash of an id.
func HashKept(id string) KeptHash {
	sum := sha256.Sum256([]byte(id))
	return KeptHash(sum[:16])
}

// Kept says that a workspace has made something through this gateway which a
// provider keeps (SPEC DIS-8).
type Kept struct {
	Workspace string
	Provider  string // its id, not its name
	Kind      string // one of package call's
	Hash      KeptHash
	// ExpiresAt is when this is forgotten, in Unix microseconds.
	ExpiresAt int64
}

// Holdings are the providers, by id, that keep something for a workspace.
type Holdings map[KeptHash][]string

// Hold adds that a provider keeps what a hash stands for.
func (h Holdings) Hold(hash KeptHash, provider string) {
	if !slices.Contains(h[hash], provider) {
		h[hash] = append(h[hash], provider)
	}
}

// Has tells whether a provider keeps what an id names.
func (h Holdings) Has(provider, id string) bool {
	return slices.Contains(h[HashKept(id)], provider)
}
