// SPDX-License-Identifier: Apache-2.0

package sdksgo_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The gateway under test, one without a database, and the recording provider.
var (
	gatewayURL, unreadyURL string
	recorder               = new(recording)
)

func TestMain(m *testing.M) {
	status, err := underGateway(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// underGateway runs the tests while clients/weir-up serves, which fails when the
// gateway does not end well or its books do not balance.
func underGateway(run func() int) (status int, err error) {
	provider := httptest.NewServer(recorder)
	defer provider.Close()
	up := exec.Command("../weir-up")
	up.Env = append(os.Environ(), "RECORDER_URL="+provider.URL+"/v1", "UNREADY=true")
	up.Stderr = os.Stderr
	end, err := up.StdinPipe()
	if err != nil {
		return 1, err
	}
	out, err := up.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := up.Start(); err != nil {
		return 1, fmt.Errorf("start weir-up: %w", err)
	}
	lines := bufio.NewReader(out)
	for _, url := range []*string{&gatewayURL, &unreadyURL} {
		if err == nil {
			*url, err = lines.ReadString('\n')
			*url = strings.TrimSpace(*url)
		}
	}
	if err == nil {
		status = run()
	}
	_ = end.Close() // it has ended already when this fails, and Wait says how
	if waitErr := up.Wait(); waitErr != nil {
		return status, fmt.Errorf("weir-up: %w", waitErr)
	}
	return status, err
}

// at is a gateway's address; clients that add the version themselves want it
// without one.
func at(row *kind, version bool) string {
	url := gatewayURL
	if row != nil && row.Unready {
		url = unreadyURL
	}
	if !version {
		url = strings.TrimSuffix(url, "/v1")
	}
	return url
}

// recording is a provider that keeps what it gets last and calls a tool in its
// answer, in the protocol of the path.
type recording struct {
	mu   sync.Mutex
	last map[string]string // by path: headers and body
}

func (s *recording) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	if s.last == nil {
		s.last = make(map[string]string)
	}
	s.last[r.URL.Path] = fmt.Sprint(r.URL, r.Header, string(body))
	s.mu.Unlock()
	stream := bytes.Contains(body, []byte(`"stream":true`)) || strings.Contains(r.URL.Path, ":stream")
	name := map[string]string{"messages": "tool_use", "responses": "response_call"}[path.Base(r.URL.Path)]
	if name == "" {
		name = "function_call"
	}
	contentType := "application/json"
	if name += ".json"; stream {
		name, contentType = strings.TrimSuffix(name, ".json")+".sse", "text/event-stream"
	}
	answer, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(answer) // the test sees what arrives
}

// passedOn checks that a provider got its own credential and the tool, and not
// the caller's key (DIS-2).
func (s *recording) passedOn(t *testing.T, path string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.last[path]
	if !strings.Contains(got, "credential-of-the-recorder") || !strings.Contains(got, "weather") || strings.Contains(got, "the-secret-of") {
		t.Errorf("at %s the provider got %q of %d paths", path, got, len(s.last))
	}
}

// wire counts what a client sends.
type wire struct {
	mu       sync.Mutex
	statuses []int
	header   http.Header // of the last answer
}

func (c *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.statuses, c.header = append(c.statuses, response.StatusCode), response.Header
	}
	return response, err
}

func (c *wire) client() *http.Client { return &http.Client{Transport: c} }

// kind is a row of clients/kinds.json, which describes its members.
type kind struct {
	Name      string             `json:"name"`
	Key       string             `json:"key"`
	Model     string             `json:"model"`
	TextBytes int                `json:"text_bytes"`
	Output    int64              `json:"output"`
	Unready   bool               `json:"unready"`
	Held      bool               `json:"held"`
	Spent     bool               `json:"spent"`
	Source    string             `json:"source"`
	Status    int                `json:"status"`
	Type      string             `json:"type"`
	Code      string             `json:"code"`
	Again     bool               `json:"again"`
	Headers   map[string]*string `json:"headers"`
}

// readKinds reads the table that the suites share; a member that this suite does
// not know is an error.
func readKinds(t *testing.T) []kind {
	t.Helper()
	text, err := os.ReadFile("../kinds.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Comment []string
		Kinds   []kind
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		t.Fatalf("read the table: %v", err)
	}
	return all.Kinds
}

// chat makes a completion by no client; the answer is open.
func chat(ctx context.Context, t *testing.T, key, model string, stream bool) *http.Response {
	t.Helper()
	body := fmt.Sprintf(`{"model":%q,"stream":%t,"messages":[{"role":"user","content":"hello there"}]}`, model, stream)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, gatewayURL+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer the-secret-of-"+key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// exhaust makes calls with a key until it is refused, at most so many.
func exhaust(t *testing.T, key string, most int) {
	t.Helper()
	for range most {
		response := chat(t.Context(), t, key, "m", false)
		_ = response.Body.Close() // its status is all that is asked for
		if response.StatusCode != http.StatusOK {
			return
		}
	}
	t.Fatalf("the key %s is not refused after %d calls", key, most)
}
