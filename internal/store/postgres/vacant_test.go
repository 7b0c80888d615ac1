// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirhq/weir/internal/store/postgres"
)

// What a demonstration is given must be nobody's, and is left as it was.
func TestADatabaseThatHoldsABookIsNotVacantUntilItIsCleared(t *testing.T) {
	ctx, address := context.Background(), server.Empty(t)
	for range 2 {
		if err := postgres.CheckVacant(ctx, address); err != nil {
			t.Fatalf("an empty database: %v", err)
		}
		b, err := postgres.Open(ctx, postgres.Options{URL: address})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if err := postgres.CheckVacant(ctx, address); !errors.Is(err, postgres.ErrNotVacant) {
			t.Fatalf("a database with a book: %v", err)
		}
		if err := postgres.Clear(ctx, address); err != nil {
			t.Fatal(err)
		}
	}
}
