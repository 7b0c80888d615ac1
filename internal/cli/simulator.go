// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/weirhq/weir/internal/simulator"
)

type simulatorCmd struct {
	Listen string   `default:"127.0.0.1:8788" placeholder:"ADDRESS" help:"Address to listen on; port 0 takes a free one."`
	Model  []string `sep:"none" placeholder:"NAME" help:"Model that GET /v1/models lists; any is served. Repeatable."`
	Key    []string `sep:"none" placeholder:"SECRET" help:"Credential that is accepted; without, any is. Repeatable."`
}

func (c *simulatorCmd) Help() string {
	return `It speaks the protocols of OpenAI, Anthropic and Gemini, answers the same request
with the same bytes and bills what it served at GET /bill. A model name scripts it:
sim-gpt?latency=300ms&out=200, sim-gpt?status=503, sim-gpt?cut=after:3,
sim-gpt?in=100&cached=64&write1h=20&searches=2, sim-gpt?dialect=xai&reasoning=90.`
}

func (c *simulatorCmd) Run(s *session) error {
	provider := simulator.New(simulator.Options{Listen: c.Listen, Models: c.Model, Keys: c.Key})
	if err := provider.Start(); err != nil {
		return err
	}
	tell(s.stdout, "simulated provider  %s/v1\nbill                %[1]s/bill\n", provider.URL())
	<-s.ctx.Done()
	return provider.Stop(context.WithoutCancel(s.ctx))
}
