// SPDX-License-Identifier: Apache-2.0

package simulator

import "strconv"

// mediaSpeech are the streams of images, sound and transcripts. Usage is a part
// of their last event.
type mediaSpeech struct{ path string }

// delta is the name of an event with a part of the answer, last that of its end.
func (s mediaSpeech) delta() string {
	switch s.path {
	case imagesPath:
		return "image_generation.partial_image"
	case speechPath:
		return "speech.audio.delta"
	default:
		return "transcript.text.delta"
	}
}

func (s mediaSpeech) last() string {
	switch s.path {
	case imagesPath:
		return "image_generation.completed"
	case speechPath:
		return "speech.audio.done"
	default:
		return "transcript.text.done"
	}
}

func (mediaSpeech) whole(dst []byte, p *plan) (answer []byte, firstText, usageAt int) {
	return p.appendWhole(dst)
}

func (mediaSpeech) opening(*exchange) bool { return true }

func (s mediaSpeech) content(dst []byte, x *exchange, _, event int64) []byte {
	dst = append(append(append(dst, `{"type":"`...), s.delta()...), '"')
	switch s.path {
	case imagesPath:
		dst = append(dst, `,"b64_json":"aW1hZ2U=","partial_image_index":`...)
		dst = strconv.AppendInt(dst, event, 10)
	case speechPath:
		dst = append(dst, `,"audio":"SUQz"`...)
	default:
		dst = append(dst, `,"delta":"`...)
		dst = append(appendText(dst, x.plan.offset(event), x.plan.offset(event+1)), '"')
	}
	return append(dst, '}')
}

func (mediaSpeech) finish(*exchange) bool { return true }

// usage comes with the last event.
func (mediaSpeech) usage(*exchange) bool { return true }

func (s mediaSpeech) done(x *exchange) {
	x.append(s.last(), func(dst []byte) []byte {
		dst = append(append(append(dst, `{"type":"`...), s.last()...), '"')
		switch s.path {
		case imagesPath:
			dst = append(dst, `,"b64_json":"aW1hZ2U="`...)
		case transcriptPath:
			dst = append(dst, `,"text":"`...)
			dst = append(appendText(dst, 0, x.plan.text), '"')
		}
		return append(responsesSpeech{}.appendUsage(dst, &x.plan, x.plan.choices*x.plan.output), '}')
	})
}

func (mediaSpeech) failure(dst []byte, r *refusal, p *plan, usage bool) []byte {
	return openAISpeech{}.failure(dst, r, p, usage)
}

func (mediaSpeech) breaks(x *exchange, r *refusal) {
	x.append("error", func(dst []byte) []byte { return openAISpeech{}.failure(dst, r, &x.plan, false) })
}
