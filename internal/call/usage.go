// SPDX-License-Identifier: Apache-2.0

package call

import (
	"math"
	"slices"
	"strconv"
)

// Usage is what a provider says a request used, in disjoint parts: no token
// stands in two of them (USE-1), so that a price row can be laid over it part
// by part. All counts but those of Units are tokens, and all are at least 0.
type Usage struct {
	Input            int64 // text, neither cached nor written to a cache
	CachedInput      int64 // text read from the provider's prompt cache
	CacheWrite5m     int64 // written to the cache for five minutes
	CacheWrite1h     int64 // written to the cache for one hour
	ToolInput        int64 // read by the provider's own tools
	AudioInput       int64 // audio, not cached
	CachedAudioInput int64
	ImageInput       int64
	Output           int64 // text, reasoning included
	AudioOutput      int64
	ImageOutput      int64

	// Units is what was used beside tokens; no total of tokens has it.
	Units Units

	// Reasoning is the part of Output that nobody sees. It is information: it
	// is neither added to a total nor priced apart.
	Reasoning int64
	// ServiceTier is the tier that was served (USE-2); empty when the answer
	// named none.
	ServiceTier string
	// Requests is how many priced requests the usage stands for, 1 for an
	// answer.
	Requests int64
}

// InputTotal is all that the model read, each token once (USE-3).
func (u Usage) InputTotal() int64 {
	n := int64(0)
	for _, part := range [...]int64{
		u.Input, u.CachedInput, u.CacheWrite5m, u.CacheWrite1h,
		u.ToolInput, u.AudioInput, u.CachedAudioInput, u.ImageInput,
	} {
		n = add(n, part)
	}
	return n
}

// OutputTotal is all that the model wrote, each token once (USE-3).
func (u Usage) OutputTotal() int64 {
	return add(add(u.Output, u.AudioOutput), u.ImageOutput)
}

// Tokens is what a limit on tokens counts (USE-3).
func (u Usage) Tokens() int64 { return add(u.InputTotal(), u.OutputTotal()) }

// TokensUncached is what a limit with count_cached: false counts: all but the
// cache reads (USE-3).
func (u Usage) TokensUncached() int64 {
	fresh := u
	fresh.CachedInput, fresh.CachedAudioInput = 0, 0
	return fresh.Tokens()
}

// Mark says something about how a usage was come by; it goes into the usage
// event and the call log.
type Mark string

// The marks that observing an answer can set.
const (
	// MarkEstimated: nothing usable was reported, RES-4's estimate is charged.
	MarkEstimated Mark = "estimated"
	// MarkInconsistent: the reported parts disagree; they were settled upward.
	MarkInconsistent Mark = "inconsistent"
	// MarkAbsurd: a reported count was negative, not whole, no number or beyond
	// the bound, so the whole report was set aside.
	MarkAbsurd Mark = "absurd"
	// MarkOtherModel: some of the reported usage ran on another model than the one
	// that was dispatched, at whose price all of it is charged.
	MarkOtherModel Mark = "other_model"
)

// Observed is what an answer has shown so far.
type Observed struct {
	Usage Usage
	// Reported says that Usage is the provider's report and fit to be charged.
	Reported bool
	Marks    []Mark
	// OutputBytes counts the decoded UTF-8 bytes of output received from the
	// provider: text, refusals, visible reasoning, tool calls (RES-4). An
	// error's text is never output.
	OutputBytes int64
	// Finished says that the protocol's terminal event, or a whole answer, came.
	Finished bool
	// ErrorSeen says that the provider reported an error inside the answer.
	ErrorSeen bool
	// Invalid says that a whole answer is not its protocol's: broken, or cut off.
	Invalid bool
	// OutputSeen says that output arrived, even output without text.
	OutputSeen bool
	// Model is the name that the answer has. It never decides a price (PRC-2).
	Model string
	// Cost is what the answer itself says that it costs (USE-4), in US dollars: a
	// JSON number as the provider wrote it, every digit kept ("1.4e-05"); empty
	// when it says nothing. A count of a smaller unit is written with Decimal.
	// Whether it is usable and whether it counts is not the adapter's to judge.
	Cost string
	// Kept are what the provider keeps from now on, or has kept on (DIS-8).
	Kept []Kept
}

// Mark adds m unless it is there already.
func (o *Observed) Mark(m Mark) {
	if !slices.Contains(o.Marks, m) {
		o.Marks = append(o.Marks, m)
	}
}

// Decimal is units of 10^-places as a decimal text: a provider's cost in ticks of
// a ten-billionth of a dollar is Decimal(ticks, 10).
func Decimal(units int64, places int) string {
	return strconv.FormatInt(units, 10) + "e-" + strconv.Itoa(places)
}

// Remainder is what total has beyond parts, for protocols whose totals include
// them. It is never below zero: ok is false when the parts exceed the total,
// and then they stand as they are and the remainder is 0 (USE-1).
func Remainder(total int64, parts ...int64) (rest int64, ok bool) {
	sum := int64(0)
	for _, part := range parts {
		sum = add(sum, part)
	}
	if sum > total {
		return 0, false
	}
	return total - sum, true
}

// add is a + b for counts, which are at least 0; it saturates.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// times is a * n for a positive constant a and a count n; it saturates.
func times(a, n int64) int64 {
	if n > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * n
}
