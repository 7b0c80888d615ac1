// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/weirhq/weir/internal/admin/client"
	"github.com/weirhq/weir/internal/app"
)

// reachGroup titles the flags that every administering command has.
const reachGroup = "reach"

// reach says which server a command asks, and how it shows the answer.
type reach struct {
	Config    string `short:"c" group:"reach" default:"weir.yaml" placeholder:"FILE" help:"Configuration file: its store, and the socket beside it, are used."`
	Server    string `group:"reach" placeholder:"URL" help:"Ask the server at this address instead, with the token in WEIR_ADMIN_TOKEN."`
	Workspace string `short:"w" group:"reach" default:"default" placeholder:"NAME" help:"Workspace."`
	JSON      bool   `name:"json" group:"reach" help:"Print the server's answer as it is."`
}

// dial gives the way to the operations: the server at an address, the one that
// runs beside the store, or the same handler in this process.
func (c *reach) dial(s *session) (o client.Options, closeFn func() error, err error) {
	o.Workspace = c.Workspace
	if c.Server == "" {
		o.Transport, closeFn, err = app.Connect(s.ctx, app.Options{ConfigPath: c.Config, Env: s.env, Stdout: s.stdout, Stderr: s.stderr})
		return o, closeFn, s.configured(err)
	}
	base, err := url.Parse(c.Server)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return o, nil, misused("--server %q is no http or https address", c.Server)
	}
	token, ok := s.env("WEIR_ADMIN_TOKEN")
	if !ok || token == "" {
		return o, nil, misused("--server needs the admin token in WEIR_ADMIN_TOKEN")
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	o.Base, o.Token, o.Transport = strings.TrimSuffix(c.Server, "/"), token, transport
	return o, func() error { transport.CloseIdleConnections(); return nil }, nil
}
