// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"

	"github.com/weirhq/weir/internal/app"
)

type demoCmd struct {
	Requests int  `default:"72" placeholder:"N" help:"Requests in the volley, 8 to 1000."`
	Parallel int  `default:"8" placeholder:"N" help:"Requests at once, 1 to 64."`
	Once     bool `help:"End after the volley: with 0 only if the cap held and the books balance."`
}

func (c *demoCmd) Help() string {
	return `It needs nothing and leaves nothing behind: gateway and simulated provider take free
ports and a temporary folder. After the volley it stays up, with a curl line and a
base URL and key for any OpenAI client, until Ctrl-C.`
}

func (c *demoCmd) Run(s *session) error {
	live := terminal(s.stdout)
	_, plain := s.env("NO_COLOR")
	run, err := app.Demo(s.ctx, app.DemoOptions{
		Requests: c.Requests, Parallel: c.Parallel, Once: c.Once, Stdout: s.stdout, Live: live, Color: live && !plain,
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
