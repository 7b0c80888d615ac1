// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir/internal/app"
)

// stopPatience bounds what still runs after a signal; what the server allows
// its requests is its own, shorter setting of at most an hour (STO-4).
const stopPatience = 90 * time.Minute

type serveCmd struct {
	Config      string `short:"c" default:"weir.yaml" placeholder:"FILE" help:"Configuration file."`
	LogLevel    string `enum:",debug,info,warn,error" default:"" placeholder:"LEVEL" help:"Least severity that is logged: debug, info, warn or error. Without: what the file says."`
	AcceptClock bool   `help:"Start although the clock is more than an hour behind the store's last instant."`
}

func (c *serveCmd) Help() string {
	return `The configuration is applied at start, on SIGHUP and when the file changes; a
broken file never replaces a working one. SIGTERM or Ctrl-C stops admitting,
finishes what runs, settles all and exits with 0; a second one ends at once.`
}

func (c *serveCmd) Run(s *session) error {
	server, err := app.Start(s.ctx, app.Options{
		ConfigPath: c.Config, Env: s.env, Stdout: s.stdout, Stderr: s.stderr,
		LogLevel: c.LogLevel, AcceptClock: c.AcceptClock,
	})
	if err != nil && s.ctx.Err() != nil {
		return nil // told to end while it waited for its database
	}
	if err != nil {
		return s.configured(err)
	}
	tell(s.stdout, "models   %s\nadmin    %s\n", server.Addr(), server.AdminAddr())
	if token := server.AdminToken(); token != "" {
		tell(s.stdout, "admin token, shown this once: %s\n", token)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-s.ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), stopPatience)
	defer cancel()
	if err := server.Stop(ctx); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	return <-ended
}
