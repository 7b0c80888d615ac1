// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Bounds of a behaviour.
const (
	maxTokens   = 1_000_000
	maxText     = 16 << 20
	maxEvents   = maxTokens
	maxPieces   = 1_000
	maxLatency  = 10 * time.Minute
	maxRetry    = 86_400
	maxChoices  = 128
	maxAnswer   = 64 << 20
	bytesAToken = 4
	chunkTokens = 4
)

// Behaviour says what a request meets. Its zero value is a prompt, complete and
// truthful answer. The package comment describes each field under its setting.
type Behaviour struct {
	Input     Count // in
	Output    Count // out, of each choice
	TextBytes Count // bytes, of each choice
	Cached    int64 // cached
	// Further parts of the input and output, and searches beside them.
	CacheWrite5m int64 // write5m
	CacheWrite1h int64 // write1h
	ToolInput    int64 // toolin
	AudioInput   int64 // audioin
	AudioOutput  int64 // audioout, of each choice
	ImageOutput  int64 // imageout, of each choice
	Searches     int64 // searches
	Reasoning    int64 // reasoning, of each choice
	ChunkTokens  int64 // chunk; 0 is 4

	Latency time.Duration
	Gap     time.Duration

	Usage       UsageMode
	Dialect     Dialect // dialect
	ServiceTier string  // tier
	AnswerModel string  // as

	Status            int // 0 answers
	RetryAfterSeconds int64
	Refuse            Field
	Break             Break

	Split, Join int64 // 0 is 1
	Pad         int64 // pad
	CRLF        bool
	Ping        bool
	Gzip        bool
	Pack        bool
	Whole       bool
	Linger      bool
	Halt        bool
	Invalid     bool
	Echo        bool
	Ignore      bool
	Unbounded   bool
	Free        bool

	// What follows cannot be said in a model name.

	Message string      // text of an error
	Header  http.Header // further headers of the answer
	Gates   []GateAt    // where the answer waits
}

// Count is a number that may be left to the simulator.
type Count struct {
	n   int64
	set bool
}

// Exactly is n, and not the simulator's own choice.
func Exactly(n int64) Count { return Count{n: n, set: true} }

func (c Count) or(n int64) int64 {
	if c.set {
		return c.n
	}
	return n
}

// UsageMode says how usage is reported. The lies leave the bill alone.
type UsageMode string

// Usage modes. In a stream usage is one chunk before [DONE], sent only when
// stream_options.include_usage asks for it, unless the mode says otherwise.
const (
	UsageAsked        UsageMode = ""             // as the protocol has it
	UsageAlways       UsageMode = "always"       // asked for or not, and with errors too
	UsageNone         UsageMode = "none"         // never, though asked
	UsageNull         UsageMode = "null"         // null where usage belongs
	UsageEach         UsageMode = "each"         // cumulative on every content chunk, asked for or not
	UsageFinish       UsageMode = "finish"       // on the chunk of the last finish reason
	UsagePartial      UsageMode = "partial"      // completion_tokens only
	UsageInconsistent UsageMode = "inconsistent" // the total is 7 above its parts
	UsageZero         UsageMode = "zero"
	UsageNegative     UsageMode = "negative"
	UsageHuge         UsageMode = "huge"     // 10^12 tokens each
	UsageOverflow     UsageMode = "overflow" // above an int64
	UsageString       UsageMode = "string"   // right, but quoted
	UsageFraction     UsageMode = "fraction" // half a token too much
	UsageShrink       UsageMode = "shrink"   // a thousand too many, until the last report is right
	UsageTwice        UsageMode = "twice"    // the last report is sent twice
	UsageSpread       UsageMode = "spread"   // each event of a stream has some of the figures
)

// Field is a field of the request that a provider may not know.
type Field string

// Fields that can be refused.
const (
	FieldStreamOptions       Field = "stream_options"
	FieldMaxTokens           Field = "max_tokens"
	FieldMaxCompletionTokens Field = "max_completion_tokens"
)

// Place is a kind of point in an answer.
type Place string

// Places, in the order in which an answer reaches them.
const (
	PlaceHeaders Place = "headers"
	PlaceAfter   Place = "after"
	PlaceUsage   Place = "usage"
	PlaceDone    Place = "done"
)

// Point is a point in an answer. Events counts content events and belongs to
// PlaceAfter alone.
type Point struct {
	Place  Place
	Events int64
}

// BeforeHeaders is the point before the answer's headers.
func BeforeHeaders() Point { return Point{Place: PlaceHeaders} }

// AfterEvents is the point after n content events.
func AfterEvents(n int64) Point { return Point{Place: PlaceAfter, Events: n} }

// BeforeUsage is the point after the content and before the usage.
func BeforeUsage() Point { return Point{Place: PlaceUsage} }

// BeforeDone is the point before the end of a complete answer.
func BeforeDone() Point { return Point{Place: PlaceDone} }

// Manner is how an answer breaks off.
type Manner string

// Manners of breaking off.
const (
	BreakCut   Manner = "cut"   // TCP reset
	BreakClose Manner = "close" // TCP close in mid-answer
	BreakHang  Manner = "hang"  // silence until the client goes
	BreakError Manner = "error" // error event
	BreakEnd   Manner = "end"   // orderly end of the body
)

// Break is where and how an answer breaks off. Its zero value is nowhere.
type Break struct {
	Manner Manner
	At     Point
}

// GateAt makes an answer wait at a point until the gate lets it pass.
type GateAt struct {
	At   Point
	Gate *Gate
}

// Script decides what a request meets, in place of its model name. It is called
// by many goroutines at once. r.Scripted is what the model name says.
type Script func(r Request) Behaviour

// errScript is wrapped by every complaint about a behaviour.
var errScript = errors.New("model script")

// check refuses what no answer can be made of.
func (b *Behaviour) check() error {
	for _, c := range []struct {
		key        string
		value, max int64
	}{
		{"in", b.Input.n, maxTokens},
		{"out", b.Output.n, maxTokens},
		{"bytes", b.TextBytes.n, maxText},
		{"cached", b.Cached, maxTokens},
		{"reasoning", b.Reasoning, maxTokens},
		{"write5m", b.CacheWrite5m, maxTokens},
		{"write1h", b.CacheWrite1h, maxTokens},
		{"toolin", b.ToolInput, maxTokens},
		{"audioin", b.AudioInput, maxTokens},
		{"audioout", b.AudioOutput, maxTokens},
		{"imageout", b.ImageOutput, maxTokens},
		{"searches", b.Searches, maxPieces},
		{"chunk", b.ChunkTokens, maxTokens},
		{"latency", int64(b.Latency), int64(maxLatency)},
		{"gap", int64(b.Gap), int64(maxLatency)},
		{"retry", b.RetryAfterSeconds, maxRetry},
		{"split", b.Split, maxPieces},
		{"join", b.Join, maxPieces},
		{"pad", b.Pad, maxText},
	} {
		if c.value < 0 || c.value > c.max {
			return fmt.Errorf("%w: %s is outside 0 to %d", errScript, c.key, c.max)
		}
	}
	if b.Status != 0 && (b.Status < 400 || b.Status > 599) {
		return fmt.Errorf("%w: status is outside 400 to 599", errScript)
	}
	if b.RetryAfterSeconds > 0 && b.Status == 0 {
		return fmt.Errorf("%w: retry without status", errScript)
	}
	return b.checkWords()
}

func (b *Behaviour) checkWords() error {
	switch b.Usage {
	case UsageAsked, UsageAlways, UsageNone, UsageNull, UsageEach, UsageFinish, UsagePartial, UsageInconsistent,
		UsageZero, UsageNegative, UsageHuge, UsageOverflow, UsageString, UsageFraction, UsageShrink, UsageTwice, UsageSpread:
	default:
		return fmt.Errorf("%w: unknown usage mode", errScript)
	}
	switch b.Refuse {
	case "", FieldStreamOptions, FieldMaxTokens, FieldMaxCompletionTokens:
	default:
		return fmt.Errorf("%w: refuse names no field that can be refused", errScript)
	}
	if !b.Dialect.valid() {
		return fmt.Errorf("%w: unknown dialect", errScript)
	}
	if b.ServiceTier != "" && !validName(b.ServiceTier) || b.AnswerModel != "" && !validName(b.AnswerModel) {
		return fmt.Errorf("%w: tier or as is not a name", errScript)
	}
	return b.Break.check()
}

func (b Break) check() error {
	switch b.Manner {
	case "":
		if b.At != (Point{}) {
			return fmt.Errorf("%w: a point without a manner", errScript)
		}
		return nil
	case BreakCut, BreakClose, BreakHang, BreakEnd:
	case BreakError:
		if b.At.Place == PlaceHeaders {
			return fmt.Errorf("%w: an error before the headers is a status", errScript)
		}
	default:
		return fmt.Errorf("%w: unknown manner of breaking off", errScript)
	}
	switch b.At.Place {
	case PlaceHeaders, PlaceUsage, PlaceDone:
		if b.At.Events != 0 {
			return fmt.Errorf("%w: only after counts events", errScript)
		}
	case PlaceAfter:
		if b.At.Events < 0 || b.At.Events > maxEvents {
			return fmt.Errorf("%w: events are outside 0 to %d", errScript, maxEvents)
		}
	default:
		return fmt.Errorf("%w: unknown point", errScript)
	}
	return nil
}
