// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
)

// Images is the door POST /v1/images/generations.
type Images struct{ Chat }

const maxImages = 64

var imagesRules = wire.Rules{
	Decides:  []string{"model", "prompt", "n", "stream", "user"},
	Required: []string{"model", "prompt"},
	Refused:  wire.RefusedMembers(),
	Unread: []string{
		"background", "moderation", "output_compression", "output_format", "partial_images", "quality", "response_format", "size", "style",
	},
}

// Decode reads a request of this door.
func (Images) Decode(r wire.Request) (*call.Call, *fault.Fault) {
	d := chatDecoder{wire.NewDecoder(call.OpenAIImages, r.Body)}
	d.Call.Units.Images = 1
	texts := int64(0)
	return d.Decode(&imagesRules, func(name string) {
		switch name {
		case "prompt":
			texts = d.texts(name)
		case "n":
			d.Call.Units.Images = d.Integer(name, 1, maxImages)
			d.Call.Completions = d.Call.Units.Images
		case "stream":
			d.Call.Stream = d.Boolean(name)
			d.Call.WantsStreamUsage = d.Call.Stream
		default:
			d.decide(name)
		}
	}, func() { d.needs("prompt", texts) })
}

// Path is the door's at a provider.
func (Images) Path(*call.Call, string) string { return "/images/generations" }

// Rewrite is wire.Door's. The protocol has no bound of the output here.
func (Images) Rewrite(body []byte, r wire.Rewrite) ([]byte, error) {
	return wire.RewriteObject(body, wire.Rewrite{Model: r.Model}, "max_tokens")
}

// Whole is wire.Door's. What it counts as output are image tokens; where the
// answer has no usage the images themselves are counted.
func (Images) Whole(body []byte, maxTokens int64) call.Observed {
	var t tally
	images := int64(0)
	s := wire.NewScanner(body)
	readImages(&s, &t, wire.CountLimit(maxTokens), &images)
	s.End()
	if s.Err != nil {
		return call.Observed{OutputSeen: images > 0, Invalid: true}
	}
	t.finished = !t.failed
	return imagesObserved(&t, images)
}

func readImages(s *wire.Scanner, t *tally, limit int64, images *int64) (kind string) {
	s.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = string(s.StringOrSkip())
		case "data":
			s.ArrayOrSkip(func() { *images++; s.Skip() })
		case "usage":
			t.report.read(s, limit)
		case "error":
			t.failed = s.Present() || t.failed
		default:
			s.Skip()
		}
	})
	return kind
}

func imagesObserved(t *tally, images int64) call.Observed {
	t.output = t.output || images > 0
	o := t.observed()
	switch {
	case o.Reported && o.Usage.ImageOutput == 0:
		o.Usage.ImageOutput, o.Usage.Output, o.Usage.Reasoning = o.Usage.Output, 0, 0
	case !t.report.seen && images > 0:
		o.Usage, o.Reported = call.Usage{Requests: 1, Units: call.Units{Images: images}}, true
	}
	return o
}

// imageStream reads the events of images that come in parts.
type imageStream struct {
	*wire.Feeder
	limit  int64
	tally  tally
	images int64
}

// NewStream is wire.Door's.
func (Images) NewStream(o wire.StreamOptions) wire.Stream {
	s := &imageStream{limit: wire.CountLimit(o.MaxTokens)}
	s.Feeder = wire.NewFeeder(o.MaxEventBytes, func(dst []byte, e *wire.Event) []byte {
		in := wire.NewScanner(e.Data)
		before, images := s.tally, s.images
		kind := readImages(&in, &s.tally, s.limit, &s.images)
		in.End()
		switch {
		case in.Err != nil:
			s.tally, s.images = before, images
		case kind == "image_generation.completed":
			s.images++
			s.tally.finished = !s.tally.failed
		case kind == "image_generation.partial_image":
			s.tally.output = true
		case kind == "error" || string(e.Name) == "error":
			s.tally.failed = true
		}
		return append(dst, e.Raw...)
	})
	return s
}

// Observed is wire.Stream's.
func (s *imageStream) Observed() call.Observed { return imagesObserved(&s.tally, s.images) }

// Fault is f as the event that ends a stream which has started (ERR-6).
func (s *imageStream) Fault(f *fault.Fault, requestID string) []byte {
	return append(append([]byte("event: error\ndata: "), encodeFault(f, requestID)...), "\n\n"...)
}
