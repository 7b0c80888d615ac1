// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-isatty"

	"github.com/weirhq/weir/internal/app"
)

type demoCmd struct {
	Requests int    `default:"72" placeholder:"N" help:"Requests in the volley, 8 to 1000."`
	Parallel int    `placeholder:"N" help:"Requests at once, 1 to 64. Without: 8, or 4 for each replica."`
	Replicas int    `default:"1" placeholder:"N" help:"Gateways, 1 to 8. Several share one PostgreSQL and one budget, and one is killed in the middle."`
	Store    string `placeholder:"URL" help:"With replicas: an empty database, postgres://…, which is emptied again. Without: a server of an installed PostgreSQL is brought up."`
	Once     bool   `help:"End after the volley: with 0 only if the limit held and the books balance."`
}

func (c *demoCmd) Help() string {
	return `It needs nothing and leaves nothing behind: gateway and simulated provider take free
ports and a temporary folder. After the volley it stays up, with a curl line and a
base URL and key for any OpenAI client, until Ctrl-C.

With --replicas 3 the gateways are processes on one PostgreSQL. One of them is killed
with kill -9 while its requests run; the others go on, and it is started again.`
}

func (c *demoCmd) Run(s *session) error {
	live := terminal(s.stdout)
	_, plain := s.env("NO_COLOR")
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	run, err := app.Demo(s.ctx, app.DemoOptions{
		Requests: c.Requests, Parallel: c.Parallel, Replicas: c.Replicas, Store: c.Store, Program: program,
		Once: c.Once, Stdout: s.stdout, Live: live, Color: live && !plain,
	})
	if err != nil {
		return err
	}
	if !run.Balanced {
		return &exit{code: exitFailed}
	}
	return nil
}

// terminal reports whether w is one, on which lines can be redrawn.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
