// SPDX-License-Identifier: Apache-2.0

// Package client calls the operations of package admin where they are served:
// over TCP with a token, over the socket beside a store, or in the same process.
// The command line has no other way to them.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/fault"
)

// maxAnswerBytes bounds an answer that is read.
const maxAnswerBytes = 64 << 20

// Options say where the operations are served.
type Options struct {
	// Base is scheme and host, "http://127.0.0.1:8787"; empty where the
	// transport knows the way.
	Base string
	// Transport is the way: nil is http.DefaultTransport, Direct a handler in
	// this process, and a transport that dials a socket.
	Transport http.RoundTripper
	// Token is the admin token; empty sends none.
	Token string
	// Workspace is the name of the workspace; empty is the default one.
	Workspace string
}

// Client calls the operations. Its errors are *fault.Fault where the server
// answered, and anything else where it could not be asked.
type Client struct {
	options Options
	http    *http.Client
}

// New makes a client.
func New(o Options) *Client {
	if o.Base == "" {
		o.Base = "http://weir"
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	return &Client{options: o, http: &http.Client{
		Transport: o.Transport,
		// A redirect could carry the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// call sends one operation's request and reads its answer.
func call[Request, Answer any](ctx context.Context, c *Client, op admin.Op, in Request) (out Answer, err error) {
	line, ok := admin.Lookup(op)
	if !ok {
		return out, fmt.Errorf("call %s: there is no such operation", op)
	}
	request, err := encode(ctx, c.options.Base+admin.Base, line, in)
	if err != nil {
		return out, fmt.Errorf("call %s: %w", op, err)
	}
	if c.options.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.options.Token)
	}
	if c.options.Workspace != "" {
		request.Header.Set(admin.WorkspaceHeader, c.options.Workspace)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return out, fmt.Errorf("call %s: %w", op, err)
	}
	defer func() { _ = response.Body.Close() }() // it was read, or nobody wants it
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return out, fmt.Errorf("read the answer of %s: %w", op, err)
	}
	if response.StatusCode != http.StatusOK {
		return out, refused(response, text)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("read the answer of %s: %w", op, err)
	}
	return out, nil
}

// refused is an answer that is no success as the fault that it tells.
func refused(response *http.Response, text []byte) error {
	var body admin.ErrorAnswer
	if err := json.Unmarshal(text, &body); err != nil || body.Detail.Code == "" {
		return fmt.Errorf("the server answered %s and not as weir does: is the address right?", response.Status)
	}
	f := fault.New(fault.Code(body.Detail.Code), "%s", body.Detail.Message)
	f.Status, f.Param, f.Details = response.StatusCode, body.Detail.Param, body.Detail.Details
	return f
}

// encode writes a request where its tags say: path, query, header, and Body.
func encode(ctx context.Context, base string, line admin.Operation, in any) (*http.Request, error) {
	path, query, header := line.Path, url.Values{}, http.Header{}
	var body io.Reader
	v := reflect.ValueOf(in)
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		text := fmt.Sprint(value.Interface())
		switch {
		case field.Tag.Get("path") != "":
			if text == "" || text == "." || text == ".." {
				return nil, errors.New(field.Tag.Get("path") + " is empty, or no name that a path can hold")
			}
			path = strings.ReplaceAll(path, "{"+field.Tag.Get("path")+"}", url.PathEscape(text))
		case field.Tag.Get("query") != "" && !value.IsZero():
			query.Set(field.Tag.Get("query"), text)
		case field.Tag.Get("header") != "" && !value.IsZero():
			header.Set(field.Tag.Get("header"), text)
		case field.Name == "Body":
			written, err := json.Marshal(value.Interface())
			if err != nil {
				return nil, fmt.Errorf("write the request: %w", err)
			}
			body = bytes.NewReader(written)
			header.Set("Content-Type", "application/json")
		}
	}
	address := base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, line.Method, address, body)
	if err != nil {
		return nil, err
	}
	request.Header = header
	return request, nil
}
