// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/cli"
)

// patience bounds every wait of a script.
const patience = 20 * time.Second

var update = flag.Bool("update", false, "write what was printed into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"weir":  func() { cli.Main(os.Args) },
		"http":  func() { os.Exit(httpMain(os.Args[1:], os.Stdout, os.Stderr)) },
		"ready": func() { os.Exit(readyMain(os.Args[1:], os.Stderr)) },
	})
}

// The command line as users have it: each script is one story (ADM-6).
func TestTheCommandLineDoesWhatItsScriptsSay(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup:         setUp,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"field": field,
		},
	})
}

// setUp gives a script its addresses.
func setUp(env *testscript.Env) error {
	for _, name := range []string{"WEIR", "SIMULATOR"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		env.Setenv(name, listener.Addr().String())
		if err := listener.Close(); err != nil {
			return err
		}
	}
	return nil
}

// field VARIABLE PATH takes a value out of the JSON that was printed last.
func field(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: field VARIABLE PATH")
	}
	value := gjson.Get(ts.ReadFile("stdout"), args[1])
	if !value.Exists() {
		ts.Fatalf("%s is not in what was printed", args[1])
	}
	ts.Setenv(args[0], value.String())
}

// httpMain: http METHOD URL [KEY [BODY]] prints the status, Weir's headers and
// the body. It fails only when there is no answer.
func httpMain(args []string, stdout, stderr io.Writer) int {
	if len(args) < 2 {
		_, _ = fmt.Fprintln(stderr, "usage: http METHOD URL [KEY [BODY]]")
		return 2
	}
	args = append(args, "", "")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, args[0], args[1], strings.NewReader(args[3]))
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 2
	}
	if args[2] != "" {
		request.Header.Set("Authorization", "Bearer "+args[2])
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	// One JSON object, so that `field` reads the whole of it.
	_, _ = fmt.Fprintf(stdout, "{\"status\":%d,\"id\":%q,\"body\":%s}\n", response.StatusCode, response.Header.Get("X-Weir-Request-Id"), body)
	return 0
}

// readyMain: ready URL waits until it answers 200.
func readyMain(args []string, stderr io.Writer) int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0], http.NoBody)
		if err != nil {
			_, _ = fmt.Fprintln(stderr, err)
			return 2
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return 0
			}
		}
		select {
		case <-ctx.Done():
			_, _ = fmt.Fprintf(stderr, "%s was not ready within %s: %v\n", args[0], patience, err)
			return 1
		case <-ticker.C:
		}
	}
}
