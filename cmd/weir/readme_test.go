// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/simulator"
)

// What the documentation says is done, word for word: its commands run, its
// links lead somewhere, its targets and commands exist.

const (
	root             = "../.."
	documentedListen = "127.0.0.1:8787"
	readmeCredential = "credential-of-the-readme"
)

// reader is somebody who follows the documentation in an empty folder, with a
// simulated provider instead of a paid one.
type reader struct {
	t   *testing.T
	dir string
	env []string
	// address replaces the documented one in what is typed.
	address string
}

func TestWhatTheReadmeTellsToTypeWorks(t *testing.T) {
	provider := simulator.New(simulator.Options{Keys: []string{readmeCredential}})
	if err := provider.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := provider.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	r := &reader{t: t, dir: t.TempDir()}
	r.env = append(os.Environ(), "OPENAI_API_KEY="+readmeCredential, "WEIR_LISTEN=127.0.0.1:0")
	r.install()
	_, use, found := strings.Cut(readDoc(t, "README.md"), "\n## Use it\n")
	if !found {
		t.Fatal("the README has no section Use it")
	}
	use, _, _ = strings.Cut(use, "\n## ")
	yaml := fenced(use, "yaml")
	if len(yaml) != 1 || !strings.Contains(yaml[0], "https://api.openai.com") {
		t.Fatalf("the README has another file than expected: %q", yaml)
	}
	r.write("weir.yaml", strings.ReplaceAll(yaml[0], "https://api.openai.com", provider.URL()))
	ran := map[string]bool{}
	for _, block := range fenced(use, "sh") {
		for _, command := range commands(block) {
			ran[r.follow(command)] = true
		}
	}
	for _, verb := range []string{"check", "serve", "key", "curl", "explain", "limits", "usage", "verify"} {
		if !ran[verb] {
			t.Errorf("the README shows no %s", verb)
		}
	}
	if n := provider.Bill().Requests; n != 1 {
		t.Errorf("the provider saw %d requests, want 1", n)
	}
	// docs/clients.md begins where the README ends.
	for _, command := range commands(strings.Join(fenced(readDoc(t, "docs/clients.md"), "sh"), "\n")) {
		r.follow(command)
	}
}

// install puts the built program where the README has it.
func (r *reader) install() {
	r.t.Helper()
	if err := os.Mkdir(filepath.Join(r.dir, "bin"), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(buildWeir(r.t), filepath.Join(r.dir, "bin", "weir")); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reader) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

var secret = regexp.MustCompile(`\bweir_[0-9A-Za-z]{36}\b`)

// follow does what a command says, and checks what the text around it promises.
// It returns the command's verb.
func (r *reader) follow(command string) (verb string) {
	r.t.Helper()
	words := strings.Fields(command)
	switch {
	case words[0] == "make":
		return words[0] // TestEveryTargetThatIsNamedExists
	case words[0] == "export":
		name, value, _ := strings.Cut(words[1], "=")
		if value == "…" {
			value = r.variable("WEIR_KEY")
		}
		r.env = append(r.env, name+"="+strings.ReplaceAll(value, documentedListen, r.address))
		return words[0]
	case words[0] == "curl":
		r.curl(command)
		return words[0]
	case words[0] != "bin/weir" || len(words) < 2:
		r.t.Fatalf("say how to follow %q", command)
	case words[1] == "serve":
		r.serve(command)
		return words[1]
	}
	out := r.shell(command)
	switch words[1] {
	case "key":
		if made := secret.FindString(out); made != "" {
			r.env = append(r.env, "WEIR_KEY="+made)
		} else {
			r.t.Errorf("%s shows no secret:\n%s", command, out)
		}
	case "explain":
		for _, promised := range []string{"estimate", "price", "charged", "rpm", "day cap", "pass"} {
			if !strings.Contains(out, promised) {
				r.t.Errorf("%s says nothing of %q:\n%s", command, promised, out)
			}
		}
	case "limits":
		if !strings.Contains(out, "$5.00") || !strings.Contains(out, "60") {
			r.t.Errorf("%s shows other limits than were set:\n%s", command, out)
		}
	case "usage":
		if !regexp.MustCompile(`(?m)^ci +gpt-4o-mini +20`).MatchString(out) {
			r.t.Errorf("%s does not show the request:\n%s", command, out)
		}
	}
	return words[1]
}

func (r *reader) variable(name string) string {
	for _, pair := range slices.Backward(r.env) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// shell runs a command as it is typed; it must succeed.
func (r *reader) shell(command string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-euc", command)
	c.Dir, c.Env = r.dir, r.env
	var failed bytes.Buffer
	c.Stderr = &failed
	out, err := c.Output()
	if err != nil {
		r.t.Fatalf("%s: %v\n%s%s", command, err, out, failed.String())
	}
	return string(out)
}

// serve leaves the server running, as another terminal does.
func (r *reader) serve(command string) {
	r.t.Helper()
	c := exec.Command("bash", "-euc", "exec "+command)
	c.Dir, c.Env, c.Stderr = r.dir, r.env, os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := c.Process.Signal(os.Interrupt); err != nil {
			r.t.Error(err)
		}
		if err := c.Wait(); err != nil {
			r.t.Errorf("%s ended with %v", command, err)
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "models"); ok {
			r.address = strings.TrimPrefix(strings.TrimSpace(address), "http://")
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the program
			return
		}
	}
	r.t.Fatalf("%s ended before it said where it listens", command)
}

// curl sends the request that a command shows, with curl where there is one.
// The answer must be a success; its id is what the README calls REQUEST_ID.
func (r *reader) curl(command string) {
	r.t.Helper()
	command = strings.ReplaceAll(command, documentedListen, r.address)
	var status, id string
	if _, err := exec.LookPath("curl"); err == nil {
		head := r.shell(strings.Replace(command, "curl ", "curl --silent --show-error --output body --dump-header - ", 1))
		status = head[:strings.IndexByte(head+"\n", '\n')]
		if m := regexp.MustCompile(`(?im)^x-weir-request-id: (\S+)`).FindStringSubmatch(head); m != nil {
			id = m[1]
		}
	} else {
		status, id = r.send(command)
	}
	if !strings.Contains(status, " 200") || id == "" {
		r.t.Fatalf("%s: answered %q with id %q", command, status, id)
	}
	r.env = append(r.env, "REQUEST_ID="+id)
}

var (
	curlAddress = regexp.MustCompile(`^curl "?([^" ]+)"?`)
	curlHeader  = regexp.MustCompile(`-H "([^":]+): ([^"]*)"`)
	curlBody    = regexp.MustCompile(`-d '([^']*)'`)
)

// send reads a curl command, and does what it says.
func (r *reader) send(command string) (status, id string) {
	r.t.Helper()
	method, body := http.MethodGet, ""
	if m := curlBody.FindStringSubmatch(command); m != nil {
		method, body = http.MethodPost, m[1]
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	address := os.Expand(curlAddress.FindStringSubmatch(command)[1], r.variable)
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, m := range curlHeader.FindAllStringSubmatch(command, -1) {
		request.Header.Set(m[1], os.Expand(m[2], r.variable))
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		r.t.Fatal(err)
	}
	return response.Proto + " " + response.Status, response.Header.Get("X-Weir-Request-Id")
}

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docs lists the pages that people read, by their path from the root.
func docs(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			path, _ = filepath.Rel(root, path)
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// fenced lists the fenced blocks of a language.
func fenced(text, language string) (blocks []string) {
	for _, part := range strings.Split(text, "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		blocks = append(blocks, block+"\n")
	}
	return blocks
}

// commands are a block's, each in one piece, without comments.
func commands(block string) (list []string) {
	for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			list = append(list, line)
		}
	}
	return list
}

func TestEveryLinkOfTheDocumentationLeadsSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	found := 0
	for _, page := range docs(t) {
		for _, m := range link.FindAllStringSubmatch(readDoc(t, page), -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || target == "" {
				continue
			}
			found++
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(page), target)); err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d links were found", found)
	}
}

// typed are the commands that a page shows in blocks and in its text.
func typed(text string) []string {
	list := commands(strings.Join(fenced(text, "sh"), "\n"))
	for _, m := range regexp.MustCompile("`((?:bin/)?(?:weir|make) [^`]+)`").FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

func TestEveryTargetThatIsNamedExists(t *testing.T) {
	makefile := readDoc(t, "Makefile")
	found := 0
	for _, page := range docs(t) {
		for _, command := range typed(readDoc(t, page)) {
			words := strings.Fields(command)
			if words[0] != "make" {
				continue
			}
			found++
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(words[1]) + `:`).MatchString(makefile) {
				t.Errorf("%s: the Makefile has no target %s", page, words[1])
			}
		}
	}
	if found == 0 {
		t.Error("no target was found")
	}
}

// docs/cli.md is generated from the program's own grammar.
func TestEveryCommandThatIsNamedExists(t *testing.T) {
	reference := readDoc(t, "docs/cli.md")
	verb := regexp.MustCompile(`^[a-z][a-z-]*$`)
	found := 0
	for _, page := range docs(t) {
		if strings.HasPrefix(page, "docs/decisions/") { // they speak of what comes, too
			continue
		}
		for _, command := range typed(readDoc(t, page)) {
			words := strings.Fields(strings.TrimPrefix(command, "bin/"))
			if words[0] != "weir" || !verb.MatchString(words[1]) {
				continue
			}
			found++
			name := "## weir " + words[1]
			if strings.Contains(reference, name+" ") && len(words) > 2 && verb.MatchString(words[2]) { // a group
				name += " " + words[2]
			}
			if !strings.Contains(reference, name+"\n") && (!strings.Contains(reference, name+" ") || len(words) > 2) {
				t.Errorf("%s: there is no command %q", page, command)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d commands were found", found)
	}
}

func TestTheSampleFileIsValid(t *testing.T) { // STO-2
	weir := buildWeir(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	check := exec.CommandContext(ctx, weir, "check", filepath.Join(root, "docs/weir.example.yaml"))
	check.Env = []string{"OPENAI_API_KEY=" + readmeCredential, "WEIR_ADMIN_TOKEN=an-admin-token-of-some-length", "CI_KEY=the-secret-of-the-ci-key"}
	if out, err := check.CombinedOutput(); err != nil || !strings.Contains(string(out), "1 workspace, 2 providers, 2 models, 1 key") {
		t.Errorf("%v: %s", err, out)
	}
}
