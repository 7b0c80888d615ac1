// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strings"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
)

// Transcriptions is the door POST /v1/audio/transcriptions, whose requests are
// forms.
type Transcriptions struct{ Chat }

const (
	maxFormParts  = 64
	maxFieldBytes = 1 << 16
	// microsAByteOfAudio is how long a byte of a recording lasts at most: speech
	// is coded with 6,000 bits a second and more.
	microsAByteOfAudio = 1_000_000 * 8 / 6_000
	// tokensASecond is what a model reads of a second of audio at most.
	tokensASecond = 25
)

// Decode reads a request of this door. How long a recording is cannot be seen:
// it is held at what its bytes could hold of coded speech (EST-1).
func (Transcriptions) Decode(r wire.Request) (*call.Call, *fault.Fault) {
	c := &call.Call{Door: call.OpenAITranscriptions, OutputBound: call.NoBound, Completions: 1}
	seen := map[string]bool{}
	files := int64(0)
	err := eachPart(r.Body, r.ContentType, func(name string, file bool, value []byte, _, _ int) error {
		if file {
			files++
			c.Units.AudioInputMicros += int64(len(value)) * microsAByteOfAudio
			return nil
		}
		return formField(c, seen, name, string(value))
	})
	switch {
	case err != nil:
		return nil, formFault(err)
	case c.Model == "":
		return nil, formFault(&formError{"model", "model is required"})
	case files != 1:
		return nil, formFault(&formError{"file", "file is required, once"})
	}
	c.Prompt.TextBytes += c.Units.AudioInputMicros * tokensASecond / 1_000_000 * call.DefaultBytesPerToken
	return c, nil
}

func formField(c *call.Call, seen map[string]bool, name, value string) error {
	for _, decided := range [...]string{"model", "stream", "prompt", "user"} {
		if !strings.EqualFold(name, decided) {
			continue
		}
		switch {
		case name != decided:
			return &formError{decided, fmt.Sprintf("%q is written %q", name, decided)}
		case seen[name]:
			return &formError{name, name + " stands twice"}
		}
		seen[name] = true
	}
	for _, refused := range wire.RefusedMembers() {
		if strings.EqualFold(name, refused) {
			return &formError{name, name + " is not taken from a request"}
		}
	}
	switch name {
	case "model":
		if !wire.ValidName(value) {
			return &formError{name, "model is no name of a model"}
		}
		c.Model = value
	case "stream":
		if value != "true" && value != "false" {
			return &formError{name, "stream is true or false"}
		}
		c.Stream = value == "true"
		c.WantsStreamUsage = c.Stream
	case "prompt":
		c.Prompt.TextBytes += int64(len(value))
	case "user":
		c.User = value
	}
	return nil
}

type formError struct{ param, what string }

func (e *formError) Error() string { return e.what }

func formFault(err error) *fault.Fault {
	var field *formError
	if errors.As(err, &field) {
		f := fault.New(fault.InvalidRequest, "%s", field.what)
		f.Param = field.param
		return f
	}
	return fault.New(fault.InvalidRequest, "the body is not a form: %s", err)
}

// eachPart calls do for each part of a form, with where its value begins and ends
// in the body.
func eachPart(body []byte, contentType string, do func(name string, file bool, value []byte, start, end int) error) error {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return &formError{"", "the body is not multipart/form-data"}
	}
	form := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	from := 0
	for n := 0; ; n++ {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			return formEnd(body[from:], params["boundary"])
		}
		if err != nil {
			return err
		}
		if n == maxFormParts {
			return &formError{"", "the form has too many parts"}
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		file := part.FileName() != "" || part.FormName() == "file"
		if err := plainPart(part, file, len(value)); err != nil {
			return err
		}
		start, end := valueAt(body, from, params["boundary"], value)
		if start < 0 {
			return &formError{"", "the form cannot be read"}
		}
		from = end
		if err := do(part.FormName(), file, value, start, end); err != nil {
			return err
		}
	}
}

// plainPart refuses a part that another reader could take for another one than
// was checked (ERR-5): without a name, with two, or with its value encoded.
func plainPart(part *multipart.Part, file bool, size int) error {
	name := part.FormName()
	switch {
	case name == "" || len(part.Header.Values("Content-Disposition")) != 1:
		return &formError{"", "each part of the form has one name"}
	case !file && size > maxFieldBytes:
		return &formError{name, name + " is too long"}
	case !file && part.Header.Get("Content-Transfer-Encoding") != "":
		return &formError{name, name + " has a transfer encoding, which is not read"}
	}
	return nil
}

// formEnd checks that the closing boundary follows the last part, and nothing
// after it.
func formEnd(rest []byte, boundary string) error {
	rest = bytes.TrimLeft(rest, "\r\n")
	rest, closed := bytes.CutPrefix(rest, []byte("--"+boundary+"--"))
	if !closed || len(bytes.TrimSpace(rest)) > 0 {
		return &formError{"", "the form has no end, or something behind it"}
	}
	return nil
}

// valueAt finds a part's value: after the empty line of its header, before the
// boundary that follows. A part begins where the one before it ended.
func valueAt(body []byte, from int, boundary string, value []byte) (start, end int) {
	rest := bytes.TrimLeft(body[from:], "\r\n")
	if !bytes.HasPrefix(rest, []byte("--"+boundary)) {
		return -1, -1
	}
	from = len(body) - len(rest)
	for _, blank := range [...]string{"\r\n\r\n", "\n\n"} {
		if i := bytes.Index(body[from:], []byte(blank)); i >= 0 {
			start = from + i + len(blank)
			if end = start + len(value); end <= len(body) && bytes.Equal(body[start:end], value) {
				return start, end
			}
		}
	}
	return -1, -1
}

// Path is the door's at a provider.
func (Transcriptions) Path(*call.Call, string) string { return "/audio/transcriptions" }

// Rewrite is wire.Door's: the model's name in the form is the provider's.
func (Transcriptions) Rewrite(body []byte, r wire.Rewrite) ([]byte, error) {
	if r.Model == "" {
		return body, nil
	}
	var splices []wire.Splice
	err := eachPart(body, r.ContentType, func(name string, file bool, _ []byte, start, end int) error {
		if name == "model" && !file {
			splices = append(splices, wire.Replace(start, end, r.Model))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("rewrite the request: %w", err)
	}
	return wire.Apply(body, splices), nil
}

// Whole is wire.Door's. A transcript may be plain text, which says nothing of its
// usage.
func (Transcriptions) Whole(body []byte, maxTokens int64) call.Observed {
	if !isObject(body) {
		return call.Observed{Finished: true, OutputSeen: len(body) > 0, OutputBytes: int64(len(body))}
	}
	var t tally
	seconds := ""
	limit := wire.CountLimit(maxTokens)
	s := wire.NewScanner(body)
	s.Object(func(key []byte) {
		switch string(key) {
		case "text":
			t.wrote(s.Text())
		case "duration":
			seconds = number(&s)
		case "usage":
			t.usageOrSeconds(&s, limit, &seconds)
		case "error":
			t.failed = s.Present() || t.failed
		default:
			s.Skip()
		}
	})
	s.End()
	if s.Err != nil {
		return call.Observed{OutputBytes: t.outputBytes, OutputSeen: t.output, Invalid: true}
	}
	t.finished = !t.failed
	o := t.observed()
	if micros, ok := microsOf(seconds); ok && !o.Reported {
		o = call.Observed{OutputBytes: o.OutputBytes, OutputSeen: o.OutputSeen, ErrorSeen: o.ErrorSeen, Finished: o.Finished}
		o.Usage, o.Reported = call.Usage{Requests: 1, Units: call.Units{AudioInputMicros: micros}}, true
	}
	return o
}

// usageOrSeconds reads a usage in tokens, or one that is a length of time.
func (t *tally) usageOrSeconds(s *wire.Scanner, limit int64, seconds *string) {
	if s.Peek() != '{' {
		s.Skip()
		return
	}
	from := s.At()
	probe := *s
	duration := false
	probe.Object(func(key []byte) {
		switch string(key) {
		case "type":
			duration = string(probe.StringOrSkip()) == "duration" || duration
		case "seconds":
			*seconds = number(&probe)
		default:
			probe.Skip()
		}
	})
	if duration || probe.At() == from {
		*s = probe
		return
	}
	t.report.read(s, limit)
}

func number(s *wire.Scanner) string {
	if c := s.Peek(); c == '-' || c >= '0' && c <= '9' {
		return string(s.Number())
	}
	return string(s.StringOrSkip())
}

// microsOf is a decimal number of seconds in microseconds, rounded up.
func microsOf(seconds string) (micros int64, ok bool) {
	whole, rest, _ := strings.Cut(seconds, ".")
	n, ok := wire.Whole([]byte(whole))
	if !ok || n < 0 || n > wire.MaxCount {
		return 0, false
	}
	const places = 6
	up := int64(0)
	if len(rest) > places {
		if strings.Trim(rest[places:], "0") != "" {
			up = 1
		}
		rest = rest[:places]
	}
	fraction, ok := wire.Whole([]byte("0" + rest + strings.Repeat("0", places-len(rest))))
	return n*1_000_000 + fraction + up, ok && fraction >= 0
}

// NewStream is wire.Door's.
func (Transcriptions) NewStream(o wire.StreamOptions) wire.Stream {
	return newAudioStream(o, "transcript.text.done")
}
