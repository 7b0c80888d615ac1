// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/simulator"
)

// discard is a client that reads nothing and costs nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Flush()                      {}

func BenchmarkHandler(b *testing.B) {
	for name, more := range map[string]string{"whole": `"n":1`, "streamed": asked} {
		b.Run(name, func(b *testing.B) {
			s := simulator.New(simulator.Options{})
			text := body("sim-gpt", more, `"max_tokens":16`)
			q := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", http.NoBody)
			q.Header.Set("Authorization", "Bearer "+apiKey)
			b.ReportAllocs()
			for b.Loop() {
				q.Body = io.NopCloser(strings.NewReader(text))
				s.ServeHTTP(&discard{header: make(http.Header)}, q)
			}
		})
	}
}

func BenchmarkLoopback(b *testing.B) {
	for name, more := range map[string]string{"whole": `"n":1`, "streamed": asked} {
		b.Run(name, func(b *testing.B) {
			s := simulator.New(simulator.Options{})
			if err := s.Start(); err != nil {
				b.Fatal(err)
			}
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
			b.Cleanup(func() {
				client.CloseIdleConnections()
				if err := s.Stop(context.Background()); err != nil {
					b.Error(err)
				}
			})
			text := body("sim-gpt", more, `"max_tokens":16`)
			b.SetParallelism(16)
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					a, err := client.Post(s.URL()+"/v1/chat/completions", "application/json", strings.NewReader(text))
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, a.Body)
					a.Body.Close()
				}
			})
		})
	}
}
