// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/fault"
)

// demoTries bounds how often a request is sent whose gateway was killed.
const demoTries = 5

// demoAnswer is what became of one request.
type demoAnswer struct {
	number, try              int
	key                      string
	gateway                  *demoGateway
	status                   int
	code, message, requestID string
	// late: it was sent after its key's first refusal had arrived.
	late bool
}

// volley sends the requests, several at once, every fourth of them by the key
// that has no cap, half of each key's as streams, and shows how spend fills the
// cap meanwhile. It ends early when a request fails in a way that no limit explains.
func (d *demo) volley(ctx context.Context) error {
	phase := time.Now()
	d.view.volley(d.Requests, d.Parallel)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	numbers := make(chan int)
	var senders sync.WaitGroup
	for range d.Parallel {
		senders.Go(func() {
			for number := range numbers {
				if err := d.send(ctx, number); err != nil {
					cancel(err)
				}
			}
		})
	}
	var watchers sync.WaitGroup
	watching, unwatch := context.WithCancel(ctx)
	watchers.Go(func() { d.watch(watching) })
	watchers.Go(func() {
		if err := d.kill(watching); err != nil {
			cancel(err)
		}
	})
	for number := 1; number <= d.Requests && ctx.Err() == nil; number++ {
		select {
		case numbers <- number:
		case <-ctx.Done():
		}
	}
	close(numbers)
	senders.Wait()
	unwatch()
	watchers.Wait()
	if err := context.Cause(ctx); err != nil {
		d.view.release()
		return err
	}
	if err := d.quiet(ctx); err != nil {
		d.view.release()
		return err
	}
	state, err := d.state(ctx)
	if err != nil {
		d.view.release()
		return err
	}
	d.view.settled(state, d.late, time.Since(phase))
	return nil
}

// send sends one request, as any client would, and reads its answer to the end. One
// that a killed gateway cut is sent again, to another.
func (d *demo) send(ctx context.Context, number int) error {
	a := demoAnswer{number: number, key: demoCapped}
	if number%4 == 0 {
		a.key = demoFree
	}
	body, err := demoBody(number)
	if err != nil {
		return err
	}
	for a.try = 1; ; a.try++ {
		base := d.begin(&a)
		err = d.exchange(ctx, base, body, &a)
		if again, err := d.end(ctx, &a, err); !again {
			return err
		}
	}
}

// begin chooses a gateway for a request, each one in turn.
func (d *demo) begin(a *demoAnswer) (base string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	up := slices.DeleteFunc(slices.Clone(d.gateways), func(g *demoGateway) bool { return g.down })
	a.gateway = up[(a.number+a.try)%len(up)]
	a.gateway.running++
	if a.try == 1 {
		d.sent++
	}
	a.late = d.fleet == nil && a.key == demoCapped && d.first != nil
	return a.gateway.base
}

// end takes what became of a request; again says to send it once more.
func (d *demo) end(ctx context.Context, a *demoAnswer, err error) (again bool, _ error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := a.gateway
	g.running--
	if err != nil {
		if g.down && ctx.Err() == nil && a.try < demoTries {
			g.cut++
			return true, nil
		}
		return false, err
	}
	d.answers = append(d.answers, *a)
	switch {
	case a.status == http.StatusOK:
		g.ok++
		if a.late {
			d.late++
		}
	case a.key == demoCapped && (a.code == string(fault.DayLimitReached) || a.code == string(fault.BudgetExceeded)):
		g.refused++
		d.refusals++
		if d.first == nil {
			d.first = a
		}
	default:
		return false, fmt.Errorf("request %d of %s was answered %d %s: %s", a.number, a.key, a.status, a.code, a.message)
	}
	return false, nil
}

// label names one try of a request, for the gateway's call log and the provider's.
func (a *demoAnswer) label() string { return fmt.Sprintf("weir-demo-%d-%d", a.number, a.try) }

func demoBody(number int) ([]byte, error) {
	text := "Tell me something about the number " + strconv.Itoa(number) + strings.Repeat(", and more", number%7) + "."
	body := map[string]any{
		"model": demoModel, "max_tokens": 400, "messages": []map[string]string{{"role": "user", "content": text}},
	}
	if number%8 < 4 {
		body["stream"] = true
	}
	return json.Marshal(body)
}

// exchange is one HTTP exchange; a names who asks and takes the answer.
func (d *demo) exchange(ctx context.Context, base string, body []byte, a *demoAnswer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request %d: %w", a.number, err)
	}
	request.Header.Set("Authorization", "Bearer "+d.keys[a.key])
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Request-Id", a.label())
	request.Header.Set("User-Agent", a.label())
	response, err := d.client.Do(request)
	if err != nil {
		return fmt.Errorf("send request %d: %w", a.number, err)
	}
	defer func() { _ = response.Body.Close() }() // it was read, or nobody wants it
	answer, err := io.ReadAll(io.LimitReader(response.Body, demoMaxAnswer))
	if err != nil {
		return fmt.Errorf("read the answer to request %d: %w", a.number, err)
	}
	a.status, a.requestID = response.StatusCode, response.Header.Get("X-Weir-Request-Id")
	if a.status == http.StatusOK {
		return nil
	}
	var refused struct {
		Error struct{ Code, Message string } `json:"error"`
	}
	if err := json.Unmarshal(answer, &refused); err != nil {
		return fmt.Errorf("request %d was answered %d without an error object: %w", a.number, a.status, err)
	}
	a.code, a.message = refused.Error.Code, refused.Error.Message
	return nil
}

// watch draws the state until ctx ends.
func (d *demo) watch(ctx context.Context) {
	ticker := time.NewTicker(demoFrame)
	defer ticker.Stop()
	for {
		if state, err := d.state(ctx); err == nil {
			d.view.frame(state)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// state asks for both keys' use as their holders can: `GET /v1/key` (KEY-8).
func (d *demo) state(ctx context.Context) (s demoState, err error) {
	if s.capped, err = d.keyState(ctx, demoCapped); err != nil {
		return s, err
	}
	if s.free, err = d.keyState(ctx, demoFree); err != nil {
		return s, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.refused = d.refusals
	for _, g := range d.gateways {
		s.running += g.running
		s.gateways = append(s.gateways, *g)
	}
	for _, a := range d.answers {
		switch {
		case a.status != http.StatusOK:
		case a.key == demoFree:
			s.freeAnswered++
		default:
			s.answered++
		}
	}
	return s, nil
}

func (d *demo) keyState(ctx context.Context, name string) (view admit.KeyView, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.base()+"/v1/key", http.NoBody)
	if err != nil {
		return view, fmt.Errorf("ask for the key's state: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+d.keys[name])
	response, err := d.client.Do(request)
	if err != nil {
		return view, fmt.Errorf("ask for the key's state: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was read, or nobody wants it
	if response.StatusCode != http.StatusOK {
		return view, fmt.Errorf("ask for the key's state: status %d", response.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, demoMaxAnswer)).Decode(&view); err != nil {
		return view, fmt.Errorf("read the key's state: %w", err)
	}
	return view, nil
}
