// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir/internal/simulator"
)

// providerAt is a configuration with one model at a provider row.
func providerAt(row string) string {
	return `
providers:
  - {name: p, protocol: openai, api_key: ` + providerCredential + `, ` + row + `}
models:
  - {name: m, provider: p, upstream: "sim?in=20&out=30", price: {input: "1", output: "10"}}
keys:
  - {name: k, secret: ` + endingsKey + `}
`
}

// TestAProvidersOwnRootsAreTrustedWhereItsRowNamesThem: ca_file. Without it the
// connection is refused before anything is sent, and nothing is charged.
func TestAProvidersOwnRootsAreTrustedWhereItsRowNamesThem(t *testing.T) {
	secure := httptest.NewTLSServer(simulator.New(simulator.Options{Keys: []string{providerCredential}}))
	t.Cleanup(secure.Close)
	roots := filepath.Join(t.TempDir(), "roots.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(roots, block, 0o600); err != nil {
		t.Fatal(err)
	}
	base := `base_url: "` + secure.URL + `/v1"`
	w := newWorld(t, providerAt(base))
	w.must(w.chat(endingsKey, "m"), 502, "upstream_unreachable")
	if got := w.spend(""); got != 0 {
		t.Errorf("charged %s USD", got)
	}
	w = newWorld(t, providerAt(base+`, ca_file: "`+roots+`"`))
	w.must(w.chat(endingsKey, "m"), 200, "")
	if a := w.stream(endingsKey, "m", ""); a.status != 200 {
		t.Errorf("streamed: %v", a)
	}
	w.balanced()
}

// TestAProviderIsReachedByTheProxyOfItsRow: proxy_url. The proxy sees the
// provider's address; the client's key is nowhere in what it forwards.
func TestAProviderIsReachedByTheProxyOfItsRow(t *testing.T) {
	provider := httptest.NewServer(simulator.New(simulator.Options{Keys: []string{providerCredential}}))
	t.Cleanup(provider.Close)
	var forwarded atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host != "provider.invalid" {
			t.Errorf("the proxy was asked for %s", r.URL)
		}
		forwarded.Add(1)
		onward, err := http.NewRequestWithContext(r.Context(), r.Method, provider.URL+r.URL.Path, r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		onward.Header = r.Header.Clone()
		answer, err := http.DefaultTransport.RoundTrip(onward)
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		w.WriteHeader(answer.StatusCode)
		if _, err := io.Copy(w, answer.Body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(proxy.Close)
	w := newWorld(t, providerAt(`base_url: "http://provider.invalid/v1", proxy_url: "`+proxy.URL+`"`))
	w.must(w.chat(endingsKey, "m"), 200, "")
	if n := forwarded.Load(); n != 1 {
		t.Errorf("the proxy forwarded %d requests", n)
	}
	w.balanced()
}
