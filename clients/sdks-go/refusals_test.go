// SPDX-License-Identifier: Apache-2.0

// Package sdksgo_test runs the official clients of Anthropic, Google and OpenAI's
// responses for Go, unchanged, through the gateway.
package sdksgo_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestARefusalIsTheClientsOwnError: ERR-1 to ERR-5, RUN-2, RES-8: whole and
// streamed, with the number of attempts.
func TestARefusalIsTheClientsOwnError(t *testing.T) {
	t.Parallel()
	exhaust(t, "spent", 2)
	exhaust(t, "budgeted", 2)
	held := chat(t.Context(), t, "slots", "open-ended", true)
	t.Cleanup(func() { _ = held.Body.Close() }) // the stream is given up
	if held.StatusCode != http.StatusOK {
		t.Fatalf("no slot is held: %s", held.Status)
	}
	for _, row := range readKinds(t) {
		for _, c := range all {
			for _, streamed := range []bool{false, true} {
				name := c.name + "/" + row.Name
				if streamed {
					name += ", streamed"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					c.holds(t, &row, streamed)
				})
			}
		}
	}
}

func (c *client) holds(t *testing.T, row *kind, streamed bool) {
	t.Helper()
	w := new(wire)
	err := c.send(t.Context(), w, row, streamed, 1)
	got, ok := c.refusal(err)
	if !ok {
		t.Fatalf("got %T: %v", err, err)
	}
	attempts := 1
	if c.again(row) {
		attempts = 2
	}
	if len(w.statuses) != attempts || got.status != row.Status {
		t.Errorf("%d with the answers %v, want %d with %d", got.status, w.statuses, row.Status, attempts)
	}
	source := row.Source
	if source == "" {
		source = "gateway"
		id := w.header.Get("X-Weir-Request-Id")
		for _, pair := range [][2]string{{got.kind, row.Type}, {got.code, row.Code}, {got.id, id}} {
			if pair[0] != "" && pair[0] != pair[1] {
				t.Errorf("got %+v, want %s %s %s", got, row.Type, row.Code, id)
			}
		}
		if got.code == "" || id == "" || !strings.Contains(got.text, id) {
			t.Errorf("no code, or no id %q of the request in %+v", id, got)
		}
	}
	if w.header.Get("X-Weir-Error-Source") != source {
		t.Errorf("headers %v", w.header)
	}
	for name, pattern := range row.Headers {
		switch value := w.header.Get(name); {
		case pattern == nil && value != "":
			t.Errorf("%s is %q, want none", name, value)
		case pattern != nil && !regexp.MustCompile(*pattern).MatchString(value):
			t.Errorf("%s is %q, want %s", name, value, *pattern)
		}
	}
}

// TestAClientThatWaitsAsItIsToldIsAdmitted: ERR-2, BR-137. Two attempts are enough
// only for who waits so long; Google's client does not.
func TestAClientThatWaitsAsItIsToldIsAdmitted(t *testing.T) {
	t.Parallel()
	for key, c := range map[string]*client{"wait-messages": &all[0], "wait-responses": &all[1]} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			exhaust(t, key, 20)
			w := new(wire)
			err := c.send(t.Context(), w, &kind{Key: key}, false, 2)
			if err != nil || !slices.Equal(w.statuses, []int{429, 200}) {
				t.Errorf("got the answers %v, then %v", w.statuses, err)
			}
		})
	}
}
