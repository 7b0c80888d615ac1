// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/store/postgres/pgtest"
)

// freeAddress is a listening address that nobody has.
func freeAddress(t *testing.T) string {
	t.Helper()
	proxy, err := pgtest.NewProxy("postgres://127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(strings.TrimSuffix(proxy.URL("postgres://127.0.0.1:1/none"), "/none"), "postgres://")
	if err := proxy.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}

// TestAStartWaitsForADatabaseThatIsDown: RES-8, BR-157, ERR-1, ERR-4. The process lives, is not
// ready and refuses what comes, and goes on by itself when the database is there.
// What ran before is settled.
func TestAStartWaitsForADatabaseThatIsDown(t *testing.T) {
	w := newWorldOn(t, database.Reused(t), start, outageConfig, func(o *app.Options) { o.SettleWithin(100 * time.Millisecond) })
	w.must(w.chat(outageKey, "m"), 200, "")
	answers := w.held(3)
	up := w.databaseDown()
	w.provider.Release()
	if n := count(<-answers, 200); n != 3 {
		t.Fatalf("%d of 3 were answered", n)
	}
	w.spooled(3)
	w.stop()

	text, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	if err := os.WriteFile(w.config, []byte(strings.Replace(string(text), "127.0.0.1:0", address, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() {
		server, err := app.Start(context.Background(), w.options())
		w.server = server
		started <- err
	}()
	at := func(method, path string) (status int, header http.Header, body string) {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+outageKey)
		response, err := w.http.Do(request)
		if err != nil {
			return 0, nil, ""
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Error(err)
		}
		return response.StatusCode, response.Header, string(text)
	}
	w.eventually("the process to live", func() bool { status, _, _ := at("GET", "/healthz"); return status == 200 })
	if status, _, _ := at("GET", "/readyz"); status != 503 {
		t.Errorf("/readyz is %d", status)
	}
	for path, shape := range map[string]string{
		"/v1/chat/completions":             `"code":"service_unavailable"`,
		"/v1/messages":                     `{"type":"error",`,
		"/v1beta/models/m:generateContent": `"status":"UNAVAILABLE"`,
	} {
		status, header, body := at("POST", path)
		id := header.Get("X-Weir-Request-Id")
		if status != 503 || header.Get("Retry-After") != "2" || id == "" || !strings.Contains(body, shape) || !strings.Contains(body, id) {
			t.Errorf("a request to %s is answered %d %v %s", path, status, header, body)
		}
	}
	reached := w.provider.Bill().Requests
	up()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	w.attach()
	w.must(w.look("/readyz"), 200, "")
	if n := w.provider.Bill().Requests; n != reached {
		t.Errorf("%d requests reached the provider while it waited", n-reached)
	}
	w.must(w.chat(outageKey, "m"), 200, "")
	w.settled("1", "10")
	if list, err := w.admin.RequestList(context.Background(), admin.RequestListRequest{Outcome: "swept"}); err != nil || len(list.Requests) != 0 {
		t.Errorf("swept: %+v (%v)", list, err)
	}
}

// TestAStartDoesNotWaitForWhatWaitingDoesNotCure: BUD-6. A wrong user and a
// database that is not there end the start with a sentence; a wait ends when it is
// told to.
func TestAStartDoesNotWaitForWhatWaitingDoesNotCure(t *testing.T) {
	for name, change := range map[string]func(string) string{
		"no such role":     func(url string) string { return strings.Replace(url, "weir@", "nobody_at_all@", 1) },
		"no such database": func(url string) string { return strings.Replace(url, "?", "_gone?", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newSharedWorld(t, outageConfig)
			w.stop()
			text, err := os.ReadFile(w.config)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(w.config, []byte(strings.Replace(string(text), w.store, change(w.store), 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			server, err := app.Start(context.Background(), w.options())
			if err == nil {
				_ = server.Stop(context.Background())
			}
			if err == nil || !strings.Contains(err.Error(), "does not exist") {
				t.Errorf("the start said %v", err)
			}
		})
	}
	t.Run("told to end", func(t *testing.T) {
		w := newSharedWorld(t, outageConfig)
		w.stop()
		defer w.databaseDown()()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if server, err := app.Start(ctx, w.options()); err == nil {
			_ = server.Stop(context.Background())
			t.Error("it started")
		}
	})
}
