// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"
)

const (
	tortureClients = 24
	// clientPatience bounds a request of a client that waits; the provider's
	// time-outs end every request long before.
	clientPatience = 40 * time.Second
)

// sent is one request as its client saw it.
type sent struct {
	tag, key, user string
	stream         bool
	choices        int64
	aborted        bool // its client meant to leave early
	status         int  // 0: no answer
	code           string
	message        string
	source         string // X-Weir-Error-Source
	cost           string // X-Weir-Cost-Usd
	textBytes      int64  // of the answer's text
	whole          bool   // the answer was read to its end
	late           bool   // refused for a slot that an answer read to its end still had
	err            error
}

// refused tells whether the gateway itself refused, and so sent nothing.
func (s *sent) refused() bool {
	return s.status >= 400 && s.source != "provider" && !strings.HasPrefix(s.code, "upstream_") &&
		!strings.Contains(s.message, "what its provider has done is charged")
}

// crowd is the clients of a round.
type crowd struct {
	w    *tortured
	http *http.Client
	wg   sync.WaitGroup
	stop chan struct{}

	mu   sync.Mutex
	sent map[string]*sent
	odd  int // requests that no handler could be meant to serve
}

func (w *tortured) gather() *crowd {
	c := &crowd{
		w: w, stop: make(chan struct{}), sent: map[string]*sent{},
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * tortureClients}, Timeout: clientPatience},
	}
	for i := range tortureClients {
		r := rand.New(rand.NewPCG(w.seed, uint64(i)+1))
		c.wg.Go(func() { c.work(i, r) })
	}
	if w.pick == nil { // of several, the next one may know of it a moment later
		r := rand.New(rand.NewPCG(w.seed, tortureClients+1))
		c.wg.Go(func() { c.queue(r) })
	}
	return c
}

// queue sends one request after the other with a key of one slot: whoever has
// read an answer to its end finds the slot free (RES-11), through kills too.
func (c *crowd) queue(r *rand.Rand) {
	free := true // what was admitted last has been read to its end
	for n := 0; c.goesOn(r.IntN(10)); n++ {
		s := &sent{tag: fmt.Sprintf("q-%d", n), key: "single"}
		c.chat(s, secretOf(s.key), r)
		s.late = free && s.code == "api_key_concurrency_exceeded"
		if !s.refused() || s.status >= 500 { // what was admitted and never sent is given back a little later
			free = s.whole && s.status < 500
		}
	}
}

// goesOn waits for so many milliseconds; false: the load ends.
func (c *crowd) goesOn(milliseconds int) bool {
	timer := time.NewTimer(time.Duration(milliseconds) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-c.stop:
		return false
	case <-timer.C:
		return true
	}
}

// leave ends the load and waits for what is in flight.
func (c *crowd) leave() {
	close(c.stop)
	c.wg.Wait()
	c.http.CloseIdleConnections()
}

func (c *crowd) work(client int, r *rand.Rand) {
	for n := 0; c.goesOn(r.IntN(30)); n++ {
		tag := fmt.Sprintf("t%d-%d", client, n)
		switch k := r.IntN(100); {
		case k < 4:
			c.garbage(tag, r)
		case k < 8:
			c.chat(&sent{tag: tag, key: "nobody"}, wrongSecret, r)
		default:
			key := tortureKeys[r.IntN(len(tortureKeys))].name
			c.chat(&sent{tag: tag, key: key}, secretOf(key), r)
		}
	}
}

func (c *crowd) note(s *sent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[s.tag] = s
}

// chat sends one completion, whole or streamed, and reads its answer; one in
// eight leaves early.
func (c *crowd) chat(s *sent, secret string, r *rand.Rand) {
	defer c.note(s)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if r.IntN(8) == 0 {
		s.aborted = true
		timer := time.AfterFunc(time.Duration(r.IntN(80))*time.Millisecond, cancel)
		defer timer.Stop()
	}
	body := c.body(s, r)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.w.address()+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		s.err = err
		return
	}
	h := request.Header
	h.Set("Authorization", "Bearer "+secret)
	h.Set("Content-Type", "application/json")
	h.Set("X-Request-Id", s.tag)
	h.Set("User-Agent", s.tag)
	if s.key == "people" {
		s.user = tortureUsers[r.IntN(len(tortureUsers))]
		h.Set("X-Weir-User", s.user)
	}
	response, err := c.http.Do(request)
	if err != nil {
		s.err = err
		return
	}
	defer response.Body.Close()
	s.status, s.source = response.StatusCode, response.Header.Get("X-Weir-Error-Source")
	answer, err := io.ReadAll(response.Body)
	s.err, s.whole = err, err == nil
	s.cost = response.Header.Get("X-Weir-Cost-Usd") + response.Trailer.Get("X-Weir-Cost-Usd")
	s.read(answer)
}

func (c *crowd) body(s *sent, r *rand.Rand) string {
	var b strings.Builder
	b.WriteByte('{')
	if s.stream = r.IntN(2) == 0; s.stream {
		b.WriteString(`"stream":true,`)
		if r.IntN(3) == 0 {
			b.WriteString(`"stream_options":{"include_usage":true},`)
		}
	}
	switch r.IntN(4) {
	case 0:
		fmt.Fprintf(&b, `"max_tokens":%d,`, 1+r.IntN(outputBound))
	case 1:
		fmt.Fprintf(&b, `"max_completion_tokens":%d,`, 1+r.IntN(2*outputBound))
	}
	if s.choices = 1; r.IntN(10) == 0 {
		s.choices = 2
		b.WriteString(`"n":2,`)
	}
	model := "m"
	if r.IntN(4) == 0 {
		model = "dear"
	}
	text := strings.Repeat("All that was said. ", 1+r.IntN(40))
	fmt.Fprintf(&b, `"model":%q,"messages":[{"role":"user","content":%q}]}`, model, text)
	return b.String()
}

// read takes what the audit wants out of an answer or a part of one.
func (s *sent) read(answer []byte) {
	if s.status >= 400 {
		e := gjson.GetBytes(answer, "error")
		s.code, s.message = e.Get("code").String(), e.Get("message").String()
		return
	}
	if !s.stream {
		for _, text := range gjson.GetBytes(answer, "choices.#.message.content").Array() {
			s.textBytes += int64(len(text.Str))
		}
		return
	}
	lines := bufio.NewScanner(bytes.NewReader(answer))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: {"))
		if !ok {
			continue
		}
		for _, text := range gjson.GetBytes(append([]byte("{"), data...), "choices.#.delta.content").Array() {
			s.textBytes += int64(len(text.Str))
		}
	}
}

// garbage sends what no client should: it must be refused or cut, reach no
// provider, and cost nothing.
func (c *crowd) garbage(tag string, r *rand.Rand) {
	head := "POST /v1/chat/completions HTTP/1.1\r\nHost: weir\r\nUser-Agent: " + tag + "\r\nX-Request-Id: " + tag +
		"\r\nAuthorization: Bearer " + secretOf("free") + "\r\nContent-Type: application/json\r\n"
	full := `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	bodies := []string{
		`{`, `[]`, `null`, "\xff\xfe\x00", `{"model":"m"}`, `{"model":7,"messages":[]}`, `{"messages":[{"role":"user","content":"x"}]}`,
		`{"model":"no-such-model","messages":[{"role":"user","content":"x"}]}`, `{"model":"m","model":"dear","messages":[{"role":"user","content":"x"}]}`,
		`{"model":"m","max_tokens":-1,"messages":[{"role":"user","content":"x"}]}`, `{"model":"m","n":0,"messages":[{"role":"user","content":"x"}]}`,
		`{"model":"m","max_tokens":1e400,"messages":[{"role":"user","content":"x"}]}`, strings.Repeat("[", 5000),
		full[:len(full)-1], full + full,
	}
	body := bodies[r.IntN(len(bodies))]
	message := head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
	switch r.IntN(6) {
	case 0: // goes in mid-body
		message = head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(full)+10, full)
	case 1:
		message = strings.Repeat("\x16\x03\x01 no HTTP at all ", 20)
	case 2:
		message = head + "X-Padding: " + strings.Repeat("p", 100_000) + "\r\n\r\n"
	case 3:
		message = head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + full
	}
	c.raw(message)
	c.mu.Lock()
	c.odd++
	c.mu.Unlock()
}

// raw writes bytes, reads a little of what comes, and goes.
func (c *crowd) raw(message string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.w.address())
	if err != nil {
		return // it is down
	}
	defer func() { _ = conn.Close() }()                          // it was only to bother
	_ = conn.SetDeadline(time.Now().Add(200 * time.Millisecond)) // a connection without deadlines is a closed one
	_, _ = io.WriteString(conn, message)                         // cut off early, perhaps
	_, _ = io.ReadFull(conn, make([]byte, 64))                   // likewise
}
