// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/weirhq/weir/internal/admin/client"
)

// maxAnswer bounds one answer of the admin API.
const maxAnswer = 64 << 20

// recorder keeps the body of the last answer, for --json.
type recorder struct {
	next http.RoundTripper
	body []byte
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	r.body = body
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// asked is an open way to the operations.
type asked struct {
	*client.Client
	s        *session
	json     bool
	recorder *recorder
}

// with opens the way, lets do use it, and closes it.
func (c *reach) with(s *session, do func(a *asked) error) (err error) {
	options, closeFn, err := c.dial(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFn()) }()
	r := &recorder{next: options.Transport}
	options.Transport = r
	return do(&asked{client.New(options), s, c.JSON, r})
}

// show prints an answer: as it came for scripts, by people for people.
func show[A any](a *asked, answer A, err error, people func(w io.Writer, answer *A) error) error {
	if err != nil {
		return err
	}
	if !a.json {
		return people(a.s.stdout, &answer)
	}
	return line(a.s.stdout, string(bytes.TrimSpace(a.recorder.body)))
}

// page is the flags of a list that may be long.
type page struct {
	Limit  int    `short:"n" default:"50" placeholder:"N" help:"How many, 1 to 1000."`
	Cursor string `placeholder:"TEXT" help:"Go on where a list ended that gave this cursor."`
}

// writeThen renders one page of a list and says how to go on.
func (t *table) writeThen(w io.Writer, cursor string) error {
	if err := t.write(w); err != nil || cursor == "" {
		return err
	}
	return line(w, "\nmore: --cursor "+printable(cursor))
}
