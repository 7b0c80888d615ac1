// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// Request is one completion as it arrived.
type Request struct {
	Protocol Protocol
	// Array: a Gemini stream that is one JSON array, and no server-sent events.
	Array bool
	Path  string // as it was sent
	// Figure: the answer is no text but a count, a vector, a verdict, an image or
	// sound. Counts: of tokens, which costs nothing.
	Figure, Counts bool
	Key            string // credential as it was sent
	Model          string // as it was sent, with its settings
	Name           string // without its settings
	Scripted       Behaviour
	Stream         bool
	IncludeUsage   bool  // stream_options.include_usage
	OutputBound    int64 // max_completion_tokens, else max_tokens or maxOutputTokens; -1: none
	Completions    int64 // n or candidateCount, at least 1
	Messages       int64
	TextBytes      int64 // decoded text of the messages

	// Header and Body are the request's own; they must not be kept or changed.
	Header http.Header
	Body   []byte

	textHash            uint64
	has                 [3]bool // by fieldIndex
	maxTokens, maxTotal int64   // max_tokens, max_completion_tokens
}

// readPath takes from the path what a protocol puts there.
func (q *Request) readPath(r *http.Request) {
	q.Path = r.URL.Path
	switch q.Path {
	case countPath:
		q.Counts, q.Figure = true, true
	case embeddingsPath, moderationsPath, imagesPath, speechPath, transcriptPath:
		q.Figure = true
	}
	model, verb, ok := geminiPath(q.Path)
	if !ok {
		return
	}
	q.Model = model
	q.Stream = verb == geminiStream
	q.Array = q.Stream && r.URL.Query().Get("alt") != "sse"
	q.Counts = verb == geminiCount
	q.Figure = q.Counts || verb == geminiEmbed || verb == geminiBatch
}

// media: the answer is images or sound.
func (q *Request) media() bool { return q.Path == imagesPath || q.Path == speechPath }

// writesNothing: the answer has no output that is billed.
func (q *Request) writesNothing() bool {
	switch q.Path {
	case embeddingsPath, moderationsPath:
		return true
	case speechPath:
		return !q.Stream
	}
	return q.Figure && q.Protocol == Gemini
}

// namesEvents: the events of its stream have names.
func (q *Request) namesEvents() bool {
	return q.Protocol == Anthropic || q.Path == responsesPath || q.Figure
}

// deltaName is that of an event with text.
func (q *Request) deltaName() string {
	switch q.Path {
	case responsesPath:
		return "response.output_text.delta"
	case imagesPath, speechPath, transcriptPath:
		return mediaSpeech{path: q.Path}.delta()
	}
	return "content_block_delta"
}

func fieldIndex(f Field) int {
	switch f {
	case FieldStreamOptions:
		return 0
	case FieldMaxTokens:
		return 1
	case FieldMaxCompletionTokens:
		return 2
	}
	return -1
}

// refusal is an answer to a request that was not accepted.
type refusal struct {
	status               int
	code, param, message string
}

func (r *refusal) Error() string { return r.message }

func badField(param, format string, args ...any) error {
	return &refusal{http.StatusBadRequest, "invalid_value", param, fmt.Sprintf(format, args...)}
}

// reader is what decoding a body needs, kept between requests.
type reader struct {
	body    bytes.Buffer
	decoder jsontext.Decoder
	scratch []byte
	answer  []byte // for what is sent
}

// maxKept is the largest buffer that is kept between requests.
const maxKept = 1 << 20

var readers = sync.Pool{New: func() any { return new(reader) }}

func (d *reader) release() {
	if d.body.Cap() > maxKept || cap(d.scratch) > maxKept || cap(d.answer) > maxKept {
		return
	}
	d.body.Reset()
	readers.Put(d)
}

// read takes the body in. The request's Body stays valid until release.
func (d *reader) read(w http.ResponseWriter, r *http.Request, maxBytes int64) (Request, error) {
	d.body.Reset()
	if _, err := d.body.ReadFrom(http.MaxBytesReader(w, r.Body, maxBytes)); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return Request{}, &refusal{http.StatusRequestEntityTooLarge, "request_too_large", "", "the body is too large"}
		}
		return Request{}, &refusal{http.StatusBadRequest, "invalid_request", "", "the body could not be read"}
	}
	q := Request{
		Protocol: protocolAt(r), Header: r.Header, Body: d.body.Bytes(), Completions: 1, maxTokens: -1, maxTotal: -1, textHash: hashBasis,
	}
	q.readPath(r)
	d.decoder.Reset(&d.body, jsontext.AllowDuplicateNames(true))
	read := d.request
	if q.Path == transcriptPath {
		read = readForm
	}
	if err := read(&q); err != nil {
		if refused, ok := errors.AsType[*refusal](err); ok {
			return Request{}, refused
		}
		return Request{}, &refusal{http.StatusBadRequest, "invalid_json", "", "the body is not one JSON object"}
	}
	q.OutputBound = q.maxTotal
	if q.OutputBound < 0 {
		q.OutputBound = q.maxTokens
	}
	switch {
	case q.Model == "":
		return Request{}, badField("model", "model is missing")
	case q.Messages == 0:
		return Request{}, badField("messages", "messages are missing or empty")
	case q.has[fieldIndex(FieldStreamOptions)] && !q.Stream:
		return Request{}, badField("stream_options", "stream_options without stream")
	}
	return q, nil
}

// readForm reads a recording to be transcribed.
func readForm(q *Request) error {
	_, params, err := mime.ParseMediaType(q.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	form, err := multipart.NewReader(bytes.NewReader(q.Body), params["boundary"]).ReadForm(maxKept)
	if err != nil {
		return err
	}
	if len(form.Value["model"]) == 1 {
		q.Model = form.Value["model"][0]
	}
	q.Stream = slices.Equal(form.Value["stream"], []string{"true"})
	q.Messages = int64(len(form.File["file"]))
	return nil
}

func (d *reader) request(q *Request) error {
	err := d.object(func(name string) error { return d.field(q, name) })
	if err != nil {
		return err
	}
	if _, err := d.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}

func (d *reader) field(q *Request, name string) (err error) {
	switch name {
	case "model":
		var model []byte
		model, err = d.text(name)
		q.Model = string(model)
	case "stream":
		q.Stream, err = d.boolean(name)
	case "stream_format":
		var format []byte
		format, err = d.text(name)
		q.Stream = string(format) == "sse"
	case "stream_options":
		q.IncludeUsage = false
		if q.has[fieldIndex(FieldStreamOptions)], err = d.present(); err != nil || !q.has[fieldIndex(FieldStreamOptions)] {
			return err
		}
		return d.object(func(option string) error {
			if option != "include_usage" {
				return d.decoder.SkipValue()
			}
			q.IncludeUsage, err = d.boolean("stream_options.include_usage")
			return err
		})
	case "max_tokens":
		q.maxTokens, q.has[fieldIndex(FieldMaxTokens)], err = d.positive(name)
	case "max_completion_tokens":
		q.maxTotal, q.has[fieldIndex(FieldMaxCompletionTokens)], err = d.positive(name)
	case "maxOutputTokens", "max_output_tokens":
		q.maxTokens, _, err = d.positive(name)
	case "input", "prompt":
		return d.input(q, name)
	case "n", "candidateCount":
		var given bool
		q.Completions, given, err = d.positive(name)
		if !given {
			q.Completions = 1
		}
		if err == nil && q.Completions > maxChoices {
			return badField(name, "n is above %d", maxChoices)
		}
	case "requests":
		return d.array(name, func() error {
			return d.object(func(name string) error { return d.field(q, name) })
		})
	case "messages", "contents":
		return d.messages(q, name)
	case "content":
		return d.content(q)
	case "system", "systemInstruction", "instructions":
		return d.system(q, name)
	case "generationConfig", "generateContentRequest":
		return d.object(func(name string) error { return d.field(q, name) })
	default:
		return d.decoder.SkipValue()
	}
	return err
}

// FNV-1a of 64 bits.
const (
	hashBasis = 14695981039346656037
	hashPrime = 1099511628211
)

func (d *reader) messages(q *Request, name string) error {
	return d.array(name, func() error { return d.content(q) })
}

// input reads a text, or a list of texts or of items with a content.
func (d *reader) input(q *Request, name string) error {
	q.Messages++
	switch d.decoder.PeekKind() {
	case jsontext.KindString:
		return d.measure(q)
	case jsontext.KindBeginArray:
		return d.array(name, func() error {
			switch d.decoder.PeekKind() {
			case jsontext.KindString:
				return d.measure(q)
			case jsontext.KindBeginObject:
				return d.turn(q)
			default:
				return d.decoder.SkipValue()
			}
		})
	default:
		return d.decoder.SkipValue()
	}
}

// content reads a message, or what Gemini calls a content.
func (d *reader) content(q *Request) error {
	q.Messages++
	return d.turn(q)
}

// turn reads the text of an object with a content or parts.
func (d *reader) turn(q *Request) error {
	return d.object(func(name string) error {
		if name != "content" && name != "parts" {
			return d.decoder.SkipValue()
		}
		return d.parts(q, name)
	})
}

func (d *reader) parts(q *Request, name string) error {
	switch d.decoder.PeekKind() {
	case jsontext.KindString:
		return d.measure(q)
	case jsontext.KindBeginArray:
		return d.array(name, func() error { return d.part(q) })
	default:
		return d.decoder.SkipValue()
	}
}

// system reads an instruction, which is no message.
func (d *reader) system(q *Request, name string) error {
	if d.decoder.PeekKind() == jsontext.KindBeginObject {
		return d.turn(q)
	}
	return d.parts(q, name)
}

func (d *reader) part(q *Request) error {
	return d.object(func(name string) error {
		if name == "text" && d.decoder.PeekKind() == jsontext.KindString {
			return d.measure(q)
		}
		return d.decoder.SkipValue()
	})
}

// measure counts and hashes one text of the prompt.
func (d *reader) measure(q *Request) error {
	text, err := d.text("messages")
	if err != nil {
		return err
	}
	h := q.textHash
	for _, c := range text {
		h = (h ^ uint64(c)) * hashPrime
	}
	q.textHash = h
	q.TextBytes += int64(len(text))
	return nil
}

func (d *reader) object(member func(name string) error) error {
	if d.decoder.PeekKind() != jsontext.KindBeginObject {
		return d.unexpected("", "an object was expected")
	}
	if _, err := d.decoder.ReadToken(); err != nil {
		return err
	}
	for d.decoder.PeekKind() != jsontext.KindEndObject {
		name, err := d.name()
		if err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
	}
	_, err := d.decoder.ReadToken()
	return err
}

func (d *reader) array(param string, element func() error) error {
	if d.decoder.PeekKind() != jsontext.KindBeginArray {
		return d.unexpected(param, "%s must be an array", param)
	}
	if _, err := d.decoder.ReadToken(); err != nil {
		return err
	}
	for d.decoder.PeekKind() != jsontext.KindEndArray {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := d.decoder.ReadToken()
	return err
}

// unexpected tells broken JSON from a value of the wrong kind.
func (d *reader) unexpected(param, format string, args ...any) error {
	if err := d.decoder.SkipValue(); err != nil {
		return err
	}
	return badField(param, format, args...)
}

// name gives the known names without an allocation, and others as "".
func (d *reader) name() (string, error) {
	raw, err := d.decoder.ReadValue()
	if err != nil {
		return "", err
	}
	d.scratch, err = jsontext.AppendUnquote(d.scratch[:0], raw)
	if err != nil {
		return "", err
	}
	switch string(d.scratch) {
	case "model":
		return "model", nil
	case "messages":
		return "messages", nil
	case "content":
		return "content", nil
	case "text":
		return "text", nil
	case "stream":
		return "stream", nil
	case "stream_options":
		return "stream_options", nil
	case "include_usage":
		return "include_usage", nil
	case "max_tokens":
		return "max_tokens", nil
	case "max_completion_tokens":
		return "max_completion_tokens", nil
	case "n":
		return "n", nil
	case "contents", "stream_format", "system", "input", "prompt", "max_output_tokens", "instructions", "systemInstruction", "parts", "generationConfig", "generateContentRequest", "requests", "maxOutputTokens", "candidateCount":
		return string(d.scratch), nil
	}
	return "", nil
}

// text gives a string's bytes, valid until the next call of d.
func (d *reader) text(param string) ([]byte, error) {
	if d.decoder.PeekKind() != jsontext.KindString {
		return nil, d.unexpected(param, "%s must be a string", param)
	}
	raw, err := d.decoder.ReadValue()
	if err != nil {
		return nil, err
	}
	d.scratch, err = jsontext.AppendUnquote(d.scratch[:0], raw)
	return d.scratch, err
}

// present consumes a null and reports false for it.
func (d *reader) present() (bool, error) {
	if d.decoder.PeekKind() != jsontext.KindNull {
		return true, nil
	}
	return false, d.decoder.SkipValue()
}

func (d *reader) boolean(param string) (bool, error) {
	switch d.decoder.PeekKind() {
	case jsontext.KindTrue:
		return true, d.decoder.SkipValue()
	case jsontext.KindFalse, jsontext.KindNull:
		return false, d.decoder.SkipValue()
	default:
		return false, d.unexpected(param, "%s must be true or false", param)
	}
}

// positive reads a whole number of at least 1; given is false for null.
func (d *reader) positive(param string) (n int64, given bool, err error) {
	given, err = d.present()
	if err != nil || !given {
		return -1, false, err
	}
	raw, err := d.decoder.ReadValue()
	if err != nil {
		return -1, false, err
	}
	n, err = strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 1 {
		return -1, true, badField(param, "%s must be a whole number of at least 1", param)
	}
	return n, true, nil
}
