// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

const referenceHead = `<!-- Generated from internal/cli: go test ./internal/cli -update. -->
# Command line

` + "`weir`" + ` runs the gateway and administers it. A command that administers is one
operation of the admin API, and goes to:

1. the server at ` + "`--server URL`" + `, with the admin token in ` + "`WEIR_ADMIN_TOKEN`" + `; else
2. the server that runs on the configuration's store, through the socket beside
   it (` + "`weir.db.sock`" + `, on PostgreSQL ` + "`weir.sock`" + ` in ` + "`state_dir`" + `; for its owner only,
   without a token); else
3. the store itself, opened for the time of the command. The same operation runs,
   in the command's own process.

Tables are for people; ` + "`--json`" + ` prints the server's answer as it is. Money is in US
dollars and exact.

## Exit codes
| code | meaning |
|---|---|
| 0 | done |
| 1 | failed, refused, or differences were found |
| 2 | the command line or the configuration is wrong |

Errors go to standard error, one line each. A fault of the configuration names its file and line.
`

// Reference is docs/cli.md: the command line described from its own grammar.
func Reference() (string, error) {
	s := &session{ctx: context.Background(), stdout: io.Discard, stderr: io.Discard}
	parser, err := newParser(s, func(int) {})
	if err != nil {
		return "", fmt.Errorf("build the command line: %w", err)
	}
	var out strings.Builder
	out.WriteString(referenceHead)
	commands := parser.Model.Leaves(true)
	for _, command := range commands {
		if flags := inGroup(command.Flags, reachGroup, true); len(flags) > 0 {
			out.WriteString("\n## Which server\nCommands marked *administers* have these flags too.\n\n")
			writeFlags(&out, flags)
			break
		}
	}
	for _, command := range commands {
		writeCommand(&out, command)
	}
	return out.String(), nil
}

func writeCommand(out *strings.Builder, command *kong.Node) {
	fmt.Fprintf(out, "\n## %s\n", pathOf(command))
	fmt.Fprintf(out, "`%s`\n\n%s", usageLine(command), command.Help)
	if len(inGroup(command.Flags, reachGroup, true)) > 0 {
		out.WriteString(" *Administers.*")
	}
	out.WriteString("\n")
	if command.Detail != "" {
		fmt.Fprintf(out, "\n%s\n", command.Detail)
	}
	if len(command.Positional) > 0 {
		out.WriteString("\n| argument | meaning |\n|---|---|\n")
		for _, argument := range command.Positional {
			fmt.Fprintf(out, "| `%s` | %s |\n", argument.Summary(), cell(argument.Help))
		}
	}
	if flags := inGroup(command.Flags, reachGroup, false); len(flags) > 0 {
		out.WriteString("\n")
		writeFlags(out, flags)
	}
}

// pathOf is what is typed for a command, without the other names of its group.
func pathOf(command *kong.Node) string {
	return regexp.MustCompile(` \([a-z, -]+\)`).ReplaceAllString(command.FullPath(), "")
}

// usageLine names the arguments and the required flags.
func usageLine(command *kong.Node) string {
	words := []string{pathOf(command)}
	for _, argument := range command.Positional {
		words = append(words, argument.Summary())
	}
	for _, flag := range command.Flags {
		if flag.Required {
			words = append(words, flag.Summary())
		}
	}
	return strings.Join(append(words, "[flags]"), " ")
}

func inGroup(flags []*kong.Flag, group string, within bool) []*kong.Flag {
	var list []*kong.Flag
	for _, flag := range flags {
		if flag.Hidden || flag.Name == "help" {
			continue
		}
		if (flag.Group != nil && flag.Group.Key == group) == within {
			list = append(list, flag)
		}
	}
	return list
}

func writeFlags(out *strings.Builder, flags []*kong.Flag) {
	out.WriteString("| flag | default | meaning |\n|---|---|---|\n")
	for _, flag := range flags {
		name := "--" + flag.Name
		if flag.Tag != nil && flag.Tag.Negatable != "" {
			name = "--[no-]" + flag.Name
		}
		if flag.Short != 0 {
			name = fmt.Sprintf("-%c, %s", flag.Short, name)
		}
		if !flag.IsBool() && !flag.IsCounter() {
			name += "=" + flag.FormatPlaceHolder()
		}
		value := ""
		if flag.HasDefault && flag.Default != "" {
			value = "`" + flag.Default + "`"
		}
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", name, value, cell(flag.Help))
	}
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
