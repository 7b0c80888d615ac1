// SPDX-License-Identifier: Apache-2.0

// Package wiretest holds adapters to answers whose usage was worked out by hand:
// an adapter's own, kept beside its tests, and recorded traffic of real
// providers.
//
// It is for tests alone.
package wiretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
)

// Expectation is what an answer shows, worked out by hand from its file.
type Expectation struct {
	// File is relative to the folder; Interaction counts those of a cassette.
	File        string
	Interaction int
	// Want is the usage without its Requests; the zero value: nothing reported.
	Want   call.Usage
	Failed bool
	// Counted: the answer is a count of tokens, which is reported and no usage.
	Counted bool
	Bytes   int64 // of output; -1: not worked out
	Marks   []call.Mark
	// Cost is what the answer itself says that it costs; empty: not looked at.
	Cost string
	// Options are a stream's.
	Options wire.StreamOptions
}

// Own checks the answers in the package's folder testdata.
func Own(t *testing.T, door wire.Door, list []Expectation) {
	t.Helper()
	for i := range list {
		check(t, door, "testdata", &list[i])
	}
}

// Recorded checks recorded traffic of real providers. It is no part of the
// repository; WEIR_FIXTURES names its folder.
func Recorded(t *testing.T, door wire.Door, list []Expectation) {
	t.Helper()
	folder, ok := Folder(t)
	if !ok {
		return
	}
	for i := range list {
		check(t, door, folder, &list[i])
	}
}

// Folder is where the recorded traffic is; false: it is absent, as it may be.
func Folder(t *testing.T) (folder string, ok bool) {
	t.Helper()
	folder = os.Getenv("WEIR_FIXTURES")
	if folder == "" {
		folder = filepath.Join(moduleRoot(t), "..", "shared", "fixtures")
	}
	if _, err := os.Stat(folder); err != nil {
		t.Logf("no recorded traffic at %s: the packages' own answers are what is checked", folder)
		return folder, false
	}
	return folder, true
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		if folder == filepath.Dir(folder) {
			t.Fatal("no go.mod above the package")
		}
	}
}

func check(t *testing.T, door wire.Door, folder string, e *Expectation) {
	t.Helper()
	t.Run(fmt.Sprintf("%s %d", filepath.Base(e.File), e.Interaction), func(t *testing.T) {
		text := Answer(t, filepath.Join(folder, e.File), e.Interaction)
		var got call.Observed
		if isStream(text, e) {
			got = streamed(t, door, text, e.Options)
		} else {
			got = door.Whole([]byte(text), 0)
		}
		want, reported := e.Want, e.Counted || e.Want != call.Usage{}
		if reported {
			want.Requests = 1
		}
		if got.Usage != want || got.Reported != reported || got.ErrorSeen != e.Failed {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if e.Cost != "" && got.Cost != e.Cost {
			t.Errorf("a cost of %q, want %q", got.Cost, e.Cost)
		}
		if e.Bytes >= 0 && got.OutputBytes != e.Bytes {
			t.Errorf("%d bytes of output, want %d", got.OutputBytes, e.Bytes)
		}
		if len(got.Marks) != len(e.Marks) {
			t.Fatalf("marks %v, want %v", got.Marks, e.Marks)
		}
		for i, m := range got.Marks {
			if m != e.Marks[i] {
				t.Errorf("marks %v, want %v", got.Marks, e.Marks)
			}
		}
	})
}

func isStream(text string, e *Expectation) bool {
	head := text[:min(len(text), 200)]
	return e.Options.Call != nil || strings.Contains(head, "data:") || strings.HasPrefix(head, ": ")
}

// streamed reads a stream whole and cut into pieces, and checks that it passes
// byte for byte and shows the same however it was cut.
func streamed(t *testing.T, door wire.Door, text string, o wire.StreamOptions) call.Observed {
	t.Helper()
	out, got := Run(t, door, o, text)
	if out != text {
		t.Error("the stream did not pass byte for byte")
	}
	for _, size := range []int{1, 7, 100} {
		again, observed := Run(t, door, o, pieces(text, size)...)
		if again != out || observed.Usage != got.Usage || observed.OutputBytes != got.OutputBytes || observed.Finished != got.Finished {
			t.Errorf("in pieces of %d: %+v, whole %+v", size, observed, got)
		}
	}
	return got
}

func pieces(text string, size int) []string {
	var list []string
	for len(text) > size {
		list, text = append(list, text[:size]), text[size:]
	}
	return append(list, text)
}

// Run feeds a stream piece by piece and returns what the client gets.
func Run(t *testing.T, door wire.Door, o wire.StreamOptions, parts ...string) (string, call.Observed) {
	t.Helper()
	s := door.NewStream(o)
	var out []byte
	var err error
	for _, p := range parts {
		if out, err = s.Feed(out, []byte(p)); err != nil {
			t.Fatalf("feed: %v", err)
		}
	}
	out = s.Close(out)
	return string(out), s.Observed()
}

// Answer is a file's text, or the body of one response of a cassette. A file
// with a JSON event a line is given as the server-sent events that it was taken
// from.
func Answer(t *testing.T, path string, interaction int) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case strings.HasSuffix(path, ".chunks.txt"):
		return events(text)
	case filepath.Ext(path) != ".yaml":
		return string(text)
	}
	var cassette struct {
		Interactions []struct {
			Response struct {
				Body   any `yaml:"body"`
				Parsed any `yaml:"parsed_body"`
			} `yaml:"response"`
		} `yaml:"interactions"`
	}
	if err := yaml.Unmarshal(text, &cassette); err != nil {
		t.Fatal(err)
	}
	response := cassette.Interactions[interaction].Response
	if response.Parsed != nil {
		parsed, err := json.Marshal(response.Parsed)
		if err != nil {
			t.Fatal(err)
		}
		return string(parsed)
	}
	if body, ok := response.Body.(map[string]any); ok {
		response.Body = body["string"]
	}
	body, ok := response.Body.(string)
	if !ok {
		t.Fatalf("a response body of %T", response.Body)
	}
	return body
}

func events(lines []byte) string {
	var out bytes.Buffer
	for line := range bytes.Lines(lines) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			out.WriteString("data: ")
			out.Write(line)
			out.WriteString("\n\n")
		}
	}
	return out.String()
}
