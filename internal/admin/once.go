// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/store"
)

// maxIdempotencyKey bounds an Idempotency-Key, in bytes.
const maxIdempotencyKey = 255

// memory is what an Idempotency-Key stands for. It is kept for good as an object
// that is born retired: no snapshot loads it, and the change that it belongs to
// is in the same transaction, so of two requests with one key one finds the
// other (SPEC ADM-5, BR-223).
type memory struct {
	Operation string `json:"operation"`
	Request   string `json:"request"` // SHA-256 of target and body
	Object    string `json:"object"`  // what it made or changed
}

// claim is an Idempotency-Key that is new.
type claim struct {
	workspace, id string
	memory        memory
}

// edit keeps what the request makes, in the change that makes it.
func (c *claim) edit(object string) (store.Edit, error) {
	c.memory.Object = object
	body, err := json.Marshal(c.memory)
	if err != nil {
		return store.Edit{}, fmt.Errorf("write an idempotency key: %w", err)
	}
	return store.Edit{Retire: true, Object: store.Object{
		Workspace: c.workspace, Kind: kindIdempotency, ID: c.id, Name: c.id, Body: body, Source: SourceAPI,
	}}, nil
}

// once looks an Idempotency-Key up: known is what it made before, else the
// claim is to be made with the change; nil when no key was sent. Another request
// under the same key is refused.
func (s *Service) once(ctx context.Context, c *scope, key, target string, n *document.Node) (made *claim, known string, err error) {
	if key == "" {
		return nil, "", nil
	}
	if !printable(key) {
		return nil, "", refuse("Idempotency-Key", "must be 1 to %d printable ASCII characters", maxIdempotencyKey)
	}
	sum := sha256.Sum256([]byte(key))
	request := sha256.Sum256(append([]byte(target+"\x00"), n.JSON()...))
	made = &claim{
		workspace: c.object.ID, id: hex.EncodeToString(sum[:16]),
		memory: memory{Operation: string(c.op), Request: hex.EncodeToString(request[:])},
	}
	object, err := s.Objects.Object(ctx, made.workspace, kindIdempotency, made.id)
	if errors.Is(err, store.ErrNotFound) {
		return made, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	var have memory
	if err := json.Unmarshal(object.Body, &have); err != nil {
		return nil, "", fmt.Errorf("read an idempotency key: %w", err)
	}
	if have.Operation != made.memory.Operation || have.Request != made.memory.Request {
		return nil, "", fault.New(fault.IdempotencyKeyReused, "this Idempotency-Key came before with another request (%s): use a new one", have.Operation)
	}
	return nil, have.Object, nil
}

// replayed answers a request that came before: the key as it is now, without
// its secret.
func (s *Service) replayed(ctx context.Context, c *scope, id string, err error) (KeyAnswer, error) {
	if err != nil {
		return KeyAnswer{}, err
	}
	object, k, err := s.findKey(ctx, c, id)
	if err != nil {
		return KeyAnswer{}, err
	}
	out := viewKey(&object, k, c.at)
	out.Replayed = true
	return out, nil
}

func printable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return text != "" && len(text) <= maxIdempotencyKey
}
