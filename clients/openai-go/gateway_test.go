// SPDX-License-Identifier: Apache-2.0

package openaigo_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// The gateway under test and the recording provider, for all tests.
var (
	gatewayURL string
	recorder   = new(recording)
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
	up.Env = append(os.Environ(), "RECORDER_URL="+provider.URL+"/v1")
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
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		gatewayURL = strings.TrimSpace(line)
		status = run()
	}
	_ = end.Close() // it has ended already when this fails, and Wait says how
	if waitErr := up.Wait(); waitErr != nil {
		return status, fmt.Errorf("weir-up: %w", waitErr)
	}
	return status, err
}

// recorded is one request as the provider got it.
type recorded struct {
	path, authorization string
	body                []byte
	whole               string // headers and body, to search in
}

// recording is a provider that keeps the requests it gets and calls a tool in
// its answer.
type recording struct {
	mu  sync.Mutex
	got []recorded
}

func (s *recording) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.got = append(s.got, recorded{r.URL.Path, r.Header.Get("Authorization"), body, fmt.Sprint(r.URL, r.Header, string(body))})
	s.mu.Unlock()
	name, contentType := "tool_call.json", "application/json"
	if bytes.Contains(body, []byte(`"stream":true`)) {
		name, contentType = "tool_call.sse", "text/event-stream"
	}
	answer, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(answer) // the test sees what arrives
}

func (s *recording) last() recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got[len(s.got)-1]
}

// attempt is one HTTP request of a client and the head of its answer.
type attempt struct {
	sent, ended time.Time
	status      int
	header      http.Header
	body        []byte // of the request
}

// wire counts what a client sends.
type wire struct {
	mu       sync.Mutex
	attempts []attempt
}

func (c *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	a := attempt{sent: time.Now()}
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		if a.body, err = io.ReadAll(body); err != nil {
			return nil, err
		}
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	a.ended = time.Now()
	if err == nil {
		a.status, a.header = response.StatusCode, response.Header
	}
	c.mu.Lock()
	c.attempts = append(c.attempts, a)
	c.mu.Unlock()
	return response, err
}

func (c *wire) all() []attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attempts
}

// newClient is a client as a user has it, and what it sends.
func newClient(key string, maxRetries int) (*openai.Client, *wire) {
	w := new(wire)
	client := openai.NewClient(
		option.WithBaseURL(gatewayURL), option.WithAPIKey("the-secret-of-"+key),
		option.WithMaxRetries(maxRetries), option.WithHTTPClient(&http.Client{Transport: w}),
	)
	return &client, w
}

// requests is how often which model is called first.
type requests struct {
	Model string `json:"model"`
	Times int    `json:"times"`
}

// setting is what a row of the table needs before it is tried.
type setting struct {
	Name   string   `json:"name"`
	Key    string   `json:"key"`
	Before requests `json:"before"`
	While  string   `json:"while"`
}

// refusal is a row of the table; clients/refusals.json describes its members.
type refusal struct {
	setting
	Model     string             `json:"model"`
	TextBytes int                `json:"text_bytes"`
	Body      map[string]any     `json:"body"`
	Modes     []string           `json:"modes"`
	Retries   int                `json:"retries"`
	Attempts  int                `json:"attempts"`
	Status    int                `json:"status"`
	Type      string             `json:"type"`
	Code      string             `json:"code"`
	Param     string             `json:"param"`
	Says      []string           `json:"says"`
	SaysNot   []string           `json:"says_not"`
	Headers   map[string]*string `json:"headers"`
	Details   map[string]string  `json:"details"`
	Source    string             `json:"source"`
}

type table struct {
	Comment       []string                     `json:"comment"`
	Classes       map[string]map[string]string `json:"classes"`
	Refusals      []refusal                    `json:"refusals"`
	BrokenStreams []struct {
		Name, Model, Code string
	} `json:"broken_streams"`
	Waits []setting `json:"waits"`
}

// readTable reads the table that all suites share; a member that this suite
// does not know is an error.
func readTable(t *testing.T) (all table) {
	t.Helper()
	text, err := os.ReadFile("../refusals.json")
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		t.Fatalf("read the table: %v", err)
	}
	return all
}
