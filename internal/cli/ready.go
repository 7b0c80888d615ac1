// SPDX-License-Identifier: Apache-2.0

package cli

import "github.com/weirhq/weir/internal/app"

type readyCmd struct {
	Config string `short:"c" default:"weir.yaml" placeholder:"FILE" help:"Configuration file: the server at its listen address is asked."`
	Server string `placeholder:"URL" help:"Ask the server at this address instead."`
}

func (c *readyCmd) Help() string {
	return `It exits with 0 when the server answers that admissions can be decided (GET /readyz),
else with 1. For the health checks of containers, which have no curl.`
}

func (c *readyCmd) Run(s *session) error {
	err := app.Ready(s.ctx, app.Options{ConfigPath: c.Config, Env: s.env}, c.Server)
	if err != nil {
		return s.configured(err)
	}
	return line(s.stdout, "ready")
}
