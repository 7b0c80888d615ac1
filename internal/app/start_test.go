// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/config"
)

// TestReplicasMayStartOnAnEmptyStoreAtOnce: STO-1, STO-2. Each of them applies the
// same file, as those of one deployment do.
func TestReplicasMayStartOnAnEmptyStoreAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir.yaml")
	var models strings.Builder
	for i := range 20 {
		fmt.Fprintf(&models, "  - {name: m%d, provider: sim, context_tokens: 1000, max_output_tokens: 50, aliases: [a%[1]d], price: free}\n", i)
	}
	for round := range 2 {
		text := "listen: 127.0.0.1:0\nstore: " + database.Reused(t) + "\n" +
			"providers:\n  - {name: sim, protocol: openai, base_url: \"http://127.0.0.1:9/v1\", auth: none}\nmodels:\n" + models.String() +
			"keys:\n  - {name: k, secret: " + replicaKey + ", budgets: [{name: b, metric: spend, limit: \"1\", period: day}]}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var starting sync.WaitGroup
		servers, failed := make([]*app.Server, 4), make([]error, 4)
		for i := range servers {
			state := t.TempDir()
			starting.Go(func() {
				servers[i], failed[i] = app.Start(context.Background(), app.Options{
					ConfigPath: file, Stdout: testLog{t}, Stderr: testLog{t}, LogLevel: "warn", Clock: clock.NewManual(start),
					Env: func(name string) (string, bool) { return state, name == config.EnvStateDir },
				})
			})
		}
		starting.Wait()
		for i, server := range servers {
			if failed[i] != nil {
				t.Errorf("round %d: %v", round, failed[i])
				continue
			}
			if list := modelsOf(t, server); strings.Count(list, `"id":"m`) != 20 {
				t.Errorf("round %d: process %d serves %s", round, i, list)
			}
			if err := server.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
}

func modelsOf(t *testing.T, server *app.Server) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+server.Addr()+"/v1/models", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+replicaKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
