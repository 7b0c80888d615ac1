// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line (ADM-6): a file for each command. Commands
// that administer are one operation of internal/admin each, asked for over
// HTTP: of the server that runs, or of the same handler in this process when
// none does. Nothing here decides anything.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // the operation failed, or found differences
	exitUsage  = 2 // the command line or the configuration is wrong
)

// grammar is the whole command line.
type grammar struct {
	Serve     serveCmd     `cmd:"" group:"Run" help:"Run the gateway."`
	Demo      demoCmd      `cmd:"" group:"Run" help:"Show a cap that holds: gateway, simulated provider, a volley of requests."`
	Simulator simulatorCmd `cmd:"" group:"Run" help:"Run the simulated provider alone."`
	Check     checkCmd     `cmd:"" group:"Run" help:"Check a configuration file and say what is in it."`
	Key       keyCmd       `cmd:"" group:"Administer" help:"Make, show and change API keys."`
	Fund      fundCmd      `cmd:"" group:"Administer" help:"Show a workspace's funds, or change them."`
	Budget    budgetCmd    `cmd:"" group:"Administer" help:"List, make and change budgets; raise or reset one."`
	RateLimit rateLimitCmd `cmd:"" aliases:"rule" group:"Administer" help:"List, make and change rate limits; reset one."`
	Plan      planCmd      `cmd:"" group:"Administer" help:"List, make and change plans, the limits that keys share."`
	Adjust    adjustCmd    `cmd:"" group:"Administer" help:"Say what a request cost instead of what it was charged."`
	Limits    limitsCmd    `cmd:"" group:"Administer" help:"Show every limit of a key: used, held, left, and when it resets."`
	Prices    pricesCmd    `cmd:"" group:"Administer" help:"Show prices, or price a usage."`
	Replicas  replicasCmd  `cmd:"" group:"Administer" help:"List the processes that share a PostgreSQL store; forget a dead one."`
	Migrate   migrateCmd   `cmd:"" group:"Administer" help:"Bring the store's schema up to date, or show what is pending."`
	Move      moveCmd      `cmd:"" group:"Administer" help:"Move an embedded store to PostgreSQL, and verify it."`
	Backup    backupCmd    `cmd:"" group:"Administer" help:"Copy the store to a file, of a running server too."`
	Usage     usageCmd     `cmd:"" group:"Look" help:"Report spend, tokens and requests."`
	Requests  requestsCmd  `cmd:"" group:"Look" help:"List requests, the newest first."`
	Explain   explainCmd   `cmd:"" group:"Look" help:"Show every check of one request, its estimate, price and charge."`
	Ready     readyCmd     `cmd:"" group:"Look" help:"Ask a server whether it is ready."`
	Verify    verifyCmd    `cmd:"" group:"Look" help:"Recompute every counter from the events and compare."`
	Version   versionCmd   `cmd:"" group:"Look" help:"Show the version."`
}

// session is what a command works with.
type session struct {
	ctx            context.Context
	stdout, stderr io.Writer
	env            func(string) (string, bool)
}

// exit is an error with its exit code. A nil err has been told already.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

func misused(format string, args ...any) error {
	return &exit{exitUsage, fmt.Errorf(format, args...)}
}

// Main runs the command line of args, whose first is the program, and exits.
func Main(args []string) {
	// The first signal ends the command in order; a second one ends the process.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	code := Run(ctx, args[1:], os.LookupEnv, os.Stdout, os.Stderr)
	os.Exit(code)
}

// Run runs one command line and returns its exit code. ctx ends it in order.
func Run(ctx context.Context, args []string, env func(string) (string, bool), stdout, stderr io.Writer) int {
	s := &session{ctx: ctx, stdout: stdout, stderr: stderr, env: env}
	helped := false
	parser, err := newParser(s, func(int) { helped = true })
	if err != nil {
		return s.report(err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if helped {
		return exitOK
	}
	if err != nil {
		var wrong *kong.ParseError
		where := "weir"
		if errors.As(err, &wrong) && wrong.Context != nil && wrong.Context.Selected() != nil {
			where = wrong.Context.Selected().FullPath()
		}
		return s.report(misused("%w; see %s --help", err, where))
	}
	return s.report(parsed.Run(s))
}

func newParser(s *session, exited func(int)) (*kong.Kong, error) {
	return kong.New(&grammar{},
		kong.Name("weir"),
		kong.Description("An LLM gateway whose budgets and limits hold."),
		kong.Writers(s.stdout, s.stderr),
		kong.Exit(exited),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "Run", Title: "Run:"},
			{Key: "Administer", Title: "Administer:"},
			{Key: "Look", Title: "Look:"},
			{Key: reachGroup, Title: "Which server:"},
		}),
	)
}

// tell writes what nobody can be told has failed.
func tell(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

// report tells an error once and gives the exit code.
func (s *session) report(err error) int {
	if err == nil {
		return exitOK
	}
	code := exitFailed
	var e *exit
	if errors.As(err, &e) {
		code = e.code
		if e.err == nil {
			return code
		}
	}
	if errors.Is(err, context.Canceled) && s.ctx.Err() != nil {
		tell(s.stderr, "weir: interrupted\n")
		return exitFailed
	}
	tell(s.stderr, "weir: %s\n", err)
	return code
}
