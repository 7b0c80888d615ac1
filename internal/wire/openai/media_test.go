// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/openai"
	"github.com/weirhq/weir/internal/wire/wiretest"
)

func units(u call.Units) call.Usage { return call.Usage{Requests: 1, Units: u} }

func TestAnAnswerOfImagesIsCounted(t *testing.T) { // USE-1
	for _, c := range []struct {
		name, text string
		want       call.Usage
	}{
		{"images alone", `{"data":[{"url":"x"},{"b64_json":"AAAA"}]}`, units(call.Units{Images: 2})},
		{"tokens", `{"data":[{"b64_json":"AAAA"}],"usage":{"input_tokens":10,"input_tokens_details":{"text_tokens":8,"image_tokens":2},"output_tokens":1056,"total_tokens":1066}}`, call.Usage{Input: 8, ImageInput: 2, ImageOutput: 1056, Requests: 1}},
		{"tokens by their kind", `{"data":[{"b64_json":"AAAA"}],"usage":{"input_tokens":10,"output_tokens":1066,"output_tokens_details":{"text_tokens":10,"image_tokens":1056},"total_tokens":1076}}`, call.Usage{Input: 10, Output: 10, ImageOutput: 1056, Requests: 1}},
	} {
		if got := (openai.Images{}).Whole([]byte(c.text), 0); got.Usage != c.want || !got.Reported || !got.Finished || !got.OutputSeen {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	for _, text := range []string{`{"error":{"message":"x"}}`, `{"error":true}`} {
		if got := (openai.Images{}).Whole([]byte(text), 0); !got.ErrorSeen || got.Finished || got.Reported {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if got := (openai.Images{}).Whole([]byte(`{"data":[{"url":"x"}`), 0); !got.Invalid || got.Reported {
		t.Errorf("cut: %+v", got)
	}
}

func TestAStreamOfImagesEndsWithItsUsage(t *testing.T) { // USE-1, ERR-6
	const (
		part = "event: image_generation.partial_image\ndata: {\"type\":\"image_generation.partial_image\",\"b64_json\":\"AAAA\"}\n\n"
		done = "event: image_generation.completed\ndata: {\"type\":\"image_generation.completed\",\"b64_json\":\"AAAA\",\"usage\":{\"input_tokens\":10,\"output_tokens\":1056,\"total_tokens\":1066}}\n\n"
	)
	if got := wiretest.Lines(t, openai.Images{}, part+done); got.Usage != (call.Usage{Input: 10, ImageOutput: 1056, Requests: 1}) || !got.Finished {
		t.Errorf("%+v", got)
	}
	if got := wiretest.Lines(t, openai.Images{}, part); got.Finished || got.Reported || !got.OutputSeen {
		t.Errorf("cut: %+v", got)
	}
	s := openai.Images{}.NewStream(wire.StreamOptions{})
	event := string(s.Fault(fault.New(fault.UpstreamTimeout, "x"), "req_1"))
	if got := wiretest.Lines(t, openai.Images{}, part+event+done); !got.ErrorSeen || got.Finished {
		t.Errorf("with our error in it: %+v", got)
	}
	wiretest.TooLarge(t, openai.Images{}, wire.StreamOptions{}, "data: {}\n\n", part)
}

func TestAnAnswerOfSpeechIsAudio(t *testing.T) { // RES-3
	for _, text := range []string{"ID3\x00\x01", "{\x00\x01\x02", "{audio", ""} {
		got := openai.Speech{}.Whole([]byte(text), 0)
		if !got.Finished || got.Invalid || got.Reported || got.OutputSeen != (text != "") || got.OutputBytes != 0 {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got := (openai.Speech{}).Whole([]byte(`{"error":{"message":"x"}}`), 0); !got.ErrorSeen || got.Finished {
		t.Errorf("%+v", got)
	}
	const (
		part = "data: {\"type\":\"speech.audio.delta\",\"audio\":\"AAAA\"}\n\n"
		done = "data: {\"type\":\"speech.audio.done\",\"usage\":{\"input_tokens\":14,\"output_tokens\":101,\"total_tokens\":115}}\n\n"
	)
	got := wiretest.Lines(t, openai.Speech{}, part+done)
	if got.Usage.Input != 14 || got.Usage.OutputTotal() != 101 || !got.Finished || got.OutputBytes != 0 {
		t.Errorf("%+v", got)
	}
	for _, e := range []string{"event: error\ndata: {\"error\":{}}\n\n", "data: {\"type\":\"error\"}\n\n", "data: {\"error\":7}\n\n"} {
		if got := wiretest.Lines(t, openai.Speech{}, part+e); !got.ErrorSeen || got.Finished || !got.OutputSeen {
			t.Errorf("%q: %+v", e, got)
		}
	}
	if got := wiretest.Lines(t, openai.Speech{}, part); got.Finished || !got.OutputSeen {
		t.Errorf("cut: %+v", got)
	}
	wiretest.TooLarge(t, openai.Speech{}, wire.StreamOptions{}, part, strings.Replace(part, "AAAA", strings.Repeat("A", 200), 1))
}

func TestATranscriptIsCountedByTokensOrByItsLength(t *testing.T) { // USE-1, PRC-1
	second := func(micros int64) call.Usage { return units(call.Units{AudioInputMicros: micros}) }
	for _, c := range []struct {
		name, text string
		want       call.Usage
		bytes      int64
	}{
		{"tokens", `{"text":"Hello","usage":{"type":"tokens","input_tokens":14,"input_token_details":{"text_tokens":4,"audio_tokens":10},"output_tokens":45,"total_tokens":59}}`, call.Usage{Input: 4, AudioInput: 10, Output: 45, Requests: 1}, 5},
		{"seconds", `{"text":"Hello","usage":{"type":"duration","seconds":7}}`, second(7_000_000), 5},
		{"parts of a second", `{"usage":{"seconds":7.0000001,"type":"duration"},"text":"Hello"}`, second(7_000_001), 5},
		{"a duration", `{"text":"Hello","duration":8.47}`, second(8_470_000), 5},
		{"a duration as text", `{"task":"transcribe","duration":"8.470000","text":"Hello","segments":[{"text":"Hello"}]}`, second(8_470_000), 5},
		{"tokens before a duration", `{"text":"","duration":3,"usage":{"input_tokens":14,"output_tokens":0,"total_tokens":14}}`, call.Usage{Input: 14, Requests: 1}, 0},
		{"white space before it", "\n {\"text\":\"Hello\",\"duration\":1}", second(1_000_000), 5},
		{"plain text", "Hello", call.Usage{}, 5},
		{"plain text in braces", "{laughs} Hello", call.Usage{}, 14},
		{"an absurd length", `{"text":"Hello","duration":-3}`, call.Usage{}, 5},
		{"no usage", `{"text":"Hello"}`, call.Usage{}, 5},
	} {
		got := openai.Transcriptions{}.Whole([]byte(c.text), 0)
		if got.Usage != c.want || got.Reported != (c.want != call.Usage{}) || got.OutputBytes != c.bytes || !got.Finished || got.Invalid {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	if got := (openai.Transcriptions{}).Whole([]byte(`{"text":"Hel`), 0); !got.Invalid || got.Finished || got.OutputBytes != 3 {
		t.Errorf("cut: %+v", got)
	}
	const (
		part = "data: {\"type\":\"transcript.text.delta\",\"delta\":\"Hello\"}\n\n"
		done = "data: {\"type\":\"transcript.text.done\",\"text\":\"Hello\",\"usage\":{\"type\":\"tokens\",\"input_tokens\":14,\"input_token_details\":{\"audio_tokens\":14},\"output_tokens\":4,\"total_tokens\":18}}\n\n"
	)
	if got := wiretest.Lines(t, openai.Transcriptions{}, part+done); got.Usage != (call.Usage{AudioInput: 14, Output: 4, Requests: 1}) || !got.Finished || got.OutputBytes != 5 {
		t.Errorf("%+v", got)
	}
}

// field is a part of a form.
func field(disposition, value string, more ...string) string {
	return "--x\r\nContent-Disposition: form-data; " + disposition + "\r\n" + strings.Join(append(more, ""), "\r\n") + "\r\n" + value + "\r\n"
}

const formEnd = "--x--\r\n"

var (
	formModel = field(`name="model"`, "whisper")
	formFile  = field(`name="file"; filename="a.mp3"`, strings.Repeat("A", 6000), "Content-Type: audio/mpeg")
)

func form(body string) wire.Request {
	return wire.Request{Body: []byte(body), ContentType: "multipart/form-data; boundary=x"}
}

func TestAFormBecomesACall(t *testing.T) { // EST-1
	for name, body := range map[string]string{
		"in order":       formModel + formFile + field(`name="prompt"`, "abc") + field(`name="user"`, "ada") + field(`name="stream"`, "true") + field(`name="language"`, "en"),
		"the file first": formFile + field(`name=user`, "ada") + field(`name="stream"`, "true") + field(`name="prompt"`, "abc") + formModel,
		"lines of LF":    strings.ReplaceAll(formModel+formFile+field(`name="prompt"`, "abc")+field(`name="user"`, "ada")+field(`name="stream"`, "true"), "\r\n", "\n"),
	} {
		end := formEnd
		if !strings.Contains(body, "\r") {
			end = "--x--\n"
		}
		c, f := openai.Transcriptions{}.Decode(form(body + end))
		if f != nil {
			t.Errorf("%s: %s", name, f.Message)
			continue
		}
		// Eight seconds of coded speech, of which a model reads 25 tokens each.
		if c.Model != "whisper" || c.User != "ada" || !c.Stream || c.Units.AudioInputMicros != 6000*1333 || c.Prompt.TextBytes != 3+199*3 || c.Door != call.OpenAITranscriptions {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// ERR-5: what is checked is what is sent, whoever reads the form.
func TestABadFormIsRefusedAndNamesTheField(t *testing.T) {
	both := formModel + formFile
	for _, c := range []struct{ name, body, param string }{
		{"nothing", ``, ""},
		{"no form", `{"model":"whisper"}`, ""},
		{"no end", both, ""},
		{"half an end", both + "--x", ""},
		{"something behind the end", both + formEnd + formModel, ""},
		{"something before the beginning", "--x y\r\n\r\nwhisper\r\n" + both + formEnd, ""},
		{"a preamble", "hello\r\n" + both + formEnd, ""},
		{"no model", formFile + formEnd, "model"},
		{"an empty model", field(`name="model"`, "") + formFile + formEnd, "model"},
		{"two models", formModel + both + formEnd, "model"},
		{"a model in capitals", field(`name="Model"`, "whisper") + both + formEnd, "model"},
		{"no name of a model", field(`name="model"`, "a b") + formFile + formEnd, "model"},
		{"a file named model, and a model", field(`name="model"; filename="m"`, "whisper") + both + formEnd, "file"},
		{"a file as the model", field(`name="model"; filename="m"`, "whisper") + formFile + formEnd, "model"},
		{"no file", formModel + formEnd, "file"},
		{"two files", both + formFile + formEnd, "file"},
		{"a stream", both + field(`name="stream"`, "yes") + formEnd, "stream"},
		{"two streams", both + field(`name="stream"`, "true") + field(`name="stream"`, "false") + formEnd, "stream"},
		{"a long field", both + field(`name="prompt"`, strings.Repeat("a", 65_537)) + formEnd, "prompt"},
		{"an address", both + field(`name="base_url"`, "x") + formEnd, "base_url"},
		{"no name", both + "--x\r\nContent-Type: text/plain\r\n\r\nx\r\n" + formEnd, ""},
		{"two names", both + "--x\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nx\r\n" + formEnd, ""},
		{"a name that stands twice", both + field(`name="a"; name="model"`, "x") + formEnd, ""},
		{"an encoded value", field(`name="model"`, "d2hpc3Blcg==", "Content-Transfer-Encoding: base64") + formFile + formEnd, "model"},
		{"many parts", both + strings.Repeat(field(`name="timestamp_granularities[]"`, "word"), 64) + formEnd, ""},
	} {
		call, f := openai.Transcriptions{}.Decode(form(c.body))
		if f == nil || call != nil || f.Code != fault.InvalidRequest || f.Param != c.param {
			t.Errorf("%s: got %+v, %v", c.name, call, f)
		}
	}
	for _, kind := range []string{"", "application/json", "multipart/form-data", "multipart/mixed; boundary=x", "multipart/form-data; boundary=", "multipart/form-data; boundary=y"} {
		if c, f := (openai.Transcriptions{}).Decode(wire.Request{Body: []byte(both + formEnd), ContentType: kind}); f == nil || c != nil {
			t.Errorf("taken as %q", kind)
		}
	}
}

func TestARewriteOfAFormChangesItsModelAlone(t *testing.T) { // DIS-6
	tricky := field(`name="prompt"`, "model\r\n\r\nwhisper\r\n --x\r\n\r\nwhisper") + formFile
	for _, body := range []string{formModel + tricky + formEnd, tricky + formModel + formEnd, strings.ReplaceAll(formModel+formFile+formEnd, "\r\n", "\n")} {
		r := wire.Rewrite{Model: "up/stream-1", OutputBound: 5, ContentType: form("").ContentType}
		out, err := openai.Transcriptions{}.Rewrite([]byte(body), r)
		at := strings.Index(body, `"model"`)
		want := body[:at] + strings.Replace(body[at:], "whisper", "up/stream-1", 1)
		if err != nil || string(out) != want {
			t.Errorf("got %q, %v", out, err)
		}
		if c, f := (openai.Transcriptions{}).Decode(form(string(out))); f != nil || c.Model != "up/stream-1" {
			t.Errorf("reads as %+v, %v", c, f)
		}
		r.Model = ""
		if out, err := (openai.Transcriptions{}).Rewrite([]byte(body), r); err != nil || string(out) != body {
			t.Errorf("without a model: %q, %v", out, err)
		}
	}
}

func FuzzDoors(f *testing.F) {
	seeds := []string{
		responses.Body("", `"input":[{"role":"user","content":[{"type":"input_file","file_data":"AAAA"}]},{"id":"x"}]`, `"max_output_tokens":5`, `"tools":[{"type":"mcp"}]`), completions.Body("", `"n":2`, `"max_tokens":5`), embeddings.Body(""), formModel + formFile[:120] + "\r\n" + formEnd,
		response("completed", `{"content":[{"text":"a"}]}`), responseStart + responseDelta, `{"text":"Hello","usage":{"type":"duration","seconds":7.5}}`,
		`{"data":[{"url":"x"}],"usage":{"input_tokens":1,"output_tokens":2}}`, "data: {\"type\":\"speech.audio.done\",\"usage\":{}}\n\n",
	}
	wiretest.Fuzz(f, []wire.Door{
		openai.Responses{},
		openai.Completions{},
		openai.Embeddings{},
		openai.Moderations{},
		openai.Images{},
		openai.Speech{},
		openai.Transcriptions{},
		openai.Deployment{Door: openai.Chat{}},
	}, seeds)
}
