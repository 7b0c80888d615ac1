// SPDX-License-Identifier: Apache-2.0

// Command compose prints a compose file as `docker compose config --format json`
// does, checked against the Compose Specification, with variables from the
// environment and the .env beside it: compose FILE.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	text, err := config(context.Background(), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "compose:", err)
		os.Exit(1)
	}
	fmt.Println(string(text))
}

func config(ctx context.Context, files []string) ([]byte, error) {
	options, err := cli.NewProjectOptions(files, cli.WithOsEnv, cli.WithEnvFiles(), cli.WithDotEnv, cli.WithInterpolation(true))
	if err != nil {
		return nil, err
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return nil, err
	}
	return project.MarshalJSON()
}
