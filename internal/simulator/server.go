// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of Options.
const (
	defaultListen    = "127.0.0.1:0"
	defaultMaxBody   = 32 << 20
	defaultKept      = 1_024
	headerTimeout    = 10 * time.Second
	idleTimeout      = 2 * time.Minute
	maxHeaderBytes   = 64 << 10
	defaultModel     = "sim-gpt"
	defaultMiniModel = "sim-mini"
)

// Options of a simulator. The zero value is complete.
type Options struct {
	Listen       string   // address for Start; default a free port of 127.0.0.1
	Models       []string // what GET /v1/models lists; any model is served
	Keys         []string // accepted credentials; none: any, or no credential
	Script       Script   // nil: what the model name says
	MaxBodyBytes int64    // default 32 MiB
	KeptRequests int      // length of the bill's log; default 1024, negative none

	// Wait waits for d or until ctx ends, and then returns ctx's error. Default: a timer.
	Wait func(ctx context.Context, d time.Duration) error
	// Now is the clock of the log, in Unix microseconds. Default: the system's.
	Now func() int64
}

// Server is a simulated provider: an http.Handler, and a server of its own
// between Start and Stop.
type Server struct {
	options Options
	keys    map[string]bool
	script  atomic.Pointer[Script]
	wait    func(context.Context, time.Duration) error
	meter   *meter
	gate    *Gate

	life context.Context // ends with Stop
	stop context.CancelFunc

	mu       sync.Mutex
	listener net.Listener
	server   *http.Server
	served   chan struct{}
}

// New gives a simulator that serves as a handler at once.
func New(o Options) *Server {
	if o.Listen == "" {
		o.Listen = defaultListen
	}
	if len(o.Models) == 0 {
		o.Models = []string{defaultModel, defaultMiniModel}
	}
	if o.MaxBodyBytes <= 0 {
		o.MaxBodyBytes = defaultMaxBody
	}
	if o.KeptRequests == 0 {
		o.KeptRequests = defaultKept
	}
	if o.Wait == nil {
		o.Wait = sleep
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMicro() } //nolint:forbidigo // the default clock; tests bring theirs
	}
	s := &Server{options: o, wait: o.Wait, meter: newMeter(o.Now, max(o.KeptRequests, 0)), gate: NewGate()}
	s.gate.Open()
	s.SetScript(o.Script)
	if len(o.Keys) > 0 {
		s.keys = make(map[string]bool, len(o.Keys))
		for _, key := range o.Keys {
			s.keys[key] = true
		}
	}
	s.life, s.stop = context.WithCancel(context.Background())
	return s
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Start listens and serves until Stop.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil || s.life.Err() != nil {
		return errors.New("start simulator: it was started before")
	}
	listener, err := (&net.ListenConfig{}).Listen(s.life, "tcp", s.options.Listen)
	if err != nil {
		return fmt.Errorf("start simulator: %w", err)
	}
	s.listener, s.served = listener, make(chan struct{})
	s.server = &http.Server{
		Handler: s, ConnState: s.ConnState,
		BaseContext:       func(net.Listener) context.Context { return s.life },
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: log.New(io.Discard, "", 0), // clients that break off are its business, and are in the bill
	}
	go func() {
		defer close(s.served)
		_ = s.server.Serve(listener) // ends with http.ErrServerClosed, or every client sees the listener's end
	}()
	return nil
}

// URL is the server's base URL, without /v1; empty before Start.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return ""
	}
	return "http://" + s.listener.Addr().String()
}

// Stop ends every exchange and connection, and waits for them until ctx ends.
// The bill can still be read. A stopped simulator does not start again.
func (s *Server) Stop(ctx context.Context) error {
	s.stop()
	s.mu.Lock()
	server, served := s.server, s.served
	s.mu.Unlock()
	if server != nil {
		if err := server.Close(); err != nil {
			return fmt.Errorf("stop simulator: %w", err)
		}
		<-served
	}
	ended := func(t Totals) bool { return t.handlers == 0 && (server == nil || t.OpenConnections == 0) }
	if err := s.meter.await(ctx, ended); err != nil {
		return fmt.Errorf("stop simulator: %w", err)
	}
	return nil
}

// SetScript replaces the script, for requests that arrive from now on; nil goes
// back to the model names.
func (s *Server) SetScript(f Script) {
	if f == nil {
		s.script.Store(nil)
		return
	}
	s.script.Store(&f)
}

// Hold makes every completion wait, from now on, between its arrival and its
// latency. Totals.Held counts those that wait.
func (s *Server) Hold() { s.gate.Shut() }

// Release lets all go, and those still to come.
func (s *Server) Release() { s.gate.Open() }

// ReleaseSome lets n completions go and holds the others.
func (s *Server) ReleaseSome(n int64) { s.gate.Let(n) }

// Bill is what has been served so far.
func (s *Server) Bill() Bill { return s.meter.snapshot() }

// Reset empties the bill and the log. Requests in flight are billed when they
// end, without being counted as requests again.
func (s *Server) Reset() { s.meter.reset() }

// Await waits until want holds for the totals, or ctx ends. It looks after each
// change; a state that passes at once may be missed.
func (s *Server) Await(ctx context.Context, want func(Totals) bool) error {
	if err := s.meter.await(ctx, want); err != nil {
		return fmt.Errorf("await the simulator: %w", err)
	}
	return nil
}

// ConnState counts connections. Whoever serves the handler in a server of his
// own may hook it in there.
func (s *Server) ConnState(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.meter.connections(1)
	case http.StateClosed, http.StateHijacked:
		s.meter.connections(-1)
	case http.StateActive, http.StateIdle:
	}
}

// ServeHTTP answers the provider's API and GET /bill.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.meter.handlers(1)
	defer s.meter.handlers(-1)
	r = unazured(r)
	method, serve := http.MethodGet, s.serveModels
	_, _, gemini := geminiPath(r.URL.Path)
	switch path := r.URL.Path; {
	case isCompletion(path) || gemini:
		method, serve = http.MethodPost, s.serveCompletion
	case path == "/v1/models":
	case path == "/bill":
		serve = s.serveBill
	default:
		s.refuse(w, r, &refusal{http.StatusNotFound, "not_found", "", "no such path"})
		return
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		s.refuse(w, r, &refusal{http.StatusMethodNotAllowed, "method_not_allowed", "", "only " + method + " is allowed"})
		return
	}
	serve(w, r)
}

// unazured is a request to a deployment as Azure has them, at the path that it has
// elsewhere.
func unazured(r *http.Request) *http.Request {
	rest, ok := strings.CutPrefix(r.URL.Path, "/openai/deployments/")
	_, path, found := strings.Cut(rest, "/")
	if !ok || !found || r.URL.Query().Get("api-version") == "" {
		return r
	}
	moved := r.Clone(r.Context())
	moved.URL.Path = "/v1/" + path
	return moved
}

// isCompletion: something is asked of a model there.
func isCompletion(path string) bool {
	switch path {
	case chatPath, completionsPath, responsesPath, embeddingsPath, moderationsPath, imagesPath, speechPath, transcriptPath, messagesPath, countPath:
		return true
	}
	return false
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, f *refusal) {
	s.meter.refuse()
	_ = writeJSON(w, f.status, speechOf(protocolAt(r)).failure(nil, f, nil, false)) // a client that has gone reads nothing
}

// credential finds the key wherever a gateway may have put it.
func credential(r *http.Request) string {
	h := r.Header
	if scheme, key, ok := strings.Cut(h.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return key
	}
	for _, name := range []string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		if key := h.Get(name); key != "" {
			return key
		}
	}
	if r.URL.RawQuery == "" {
		return ""
	}
	return r.URL.Query().Get("key")
}

// authorized answers a request whose key is not accepted.
func (s *Server) authorized(w http.ResponseWriter, r *http.Request, key string) bool {
	if s.keys == nil || s.keys[key] {
		return true
	}
	s.refuse(w, r, &refusal{http.StatusUnauthorized, "invalid_api_key", "", "Incorrect API key provided."})
	return false
}

func (s *Server) serveModels(w http.ResponseWriter, r *http.Request) {
	if !s.authorized(w, r, credential(r)) {
		return
	}
	body := []byte(`{"object":"list","data":[`)
	for i, model := range s.options.Models {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"id":`...)
		body = appendQuoted(body, model)
		body = append(body, `,"object":"model","created":`+created+`,"owned_by":"simulator"}`...)
	}
	_ = writeJSON(w, http.StatusOK, append(body, "]}"...)) // a client that has gone reads nothing
}

func (s *Server) serveBill(w http.ResponseWriter, r *http.Request) {
	body, err := json.Marshal(s.Bill())
	if err != nil {
		s.refuse(w, r, &refusal{http.StatusInternalServerError, "internal_error", "", "the bill could not be written"})
		return
	}
	_ = writeJSON(w, http.StatusOK, body) // a client that has gone reads nothing
}

func (s *Server) serveCompletion(w http.ResponseWriter, r *http.Request) {
	key := credential(r)
	if !s.authorized(w, r, key) {
		return
	}
	d, ok := readers.Get().(*reader)
	if !ok {
		d = new(reader)
	}
	defer d.release()
	q, err := d.read(w, r, s.options.MaxBodyBytes)
	if err == nil {
		q.Key = key
		var x *exchange
		if x, err = s.accept(w, r, &q); err == nil {
			x.out.pending = d.answer[:0]
			x.run()
			d.answer = x.out.pending[:0]
			return
		}
	}
	refused, ok := errors.AsType[*refusal](err)
	if !ok {
		refused = &refusal{http.StatusBadRequest, "invalid_model_script", "model", err.Error()}
	}
	s.refuse(w, r, refused)
}

// accept finds the request's behaviour and books its arrival.
func (s *Server) accept(w http.ResponseWriter, r *http.Request, q *Request) (x *exchange, err error) {
	x = &exchange{s: s, w: w, client: r.Context(), ctx: r.Context(), q: q}
	if q.Name, q.Scripted, err = ParseModel(q.Model); err != nil {
		return nil, err
	}
	x.b = q.Scripted
	if script := s.script.Load(); script != nil {
		x.b = (*script)(*q)
		if err := x.b.check(); err != nil {
			return nil, err
		}
	}
	if x.b.Ignore {
		x.ctx = s.life
	}
	x.fail = failure(q, &x.b)
	if x.plan, err = makePlan(q, &x.b); err != nil {
		return nil, err
	}
	x.speech = speechOf(q.Protocol)
	x.b.Free = x.b.Free || q.Counts
	switch {
	case q.Path == responsesPath:
		x.speech = responsesSpeech{}
	case q.Figure && q.Stream:
		x.speech = mediaSpeech{path: q.Path}
	}
	if q.Protocol == Anthropic || q.Path == responsesPath {
		x.plan.choices = 1
	}
	if q.writesNothing() {
		x.plan.output, x.plan.reasoning, x.plan.visible = 0, 0, 0
	}
	if !x.streams() && !x.b.Halt {
		x.produced = x.plan.choices * x.plan.output
	}
	x.ticket = s.meter.arrive(q)
	return x, nil
}
