// SPDX-License-Identifier: Apache-2.0

package price

import (
	"slices"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/money"
)

// unit is what a row prices by the piece or by the second, apart from the calls
// of tools, which have names. There is no chain among units: one that is used
// and has no price is unpriced (PRC-1).
type unit uint8

const (
	unitRequest unit = iota
	unitSecondInput
	unitSecondOutput
	unitImage
	unitCount
)

// unitKinds are the units' keys in files and in JSON, what one is called, and
// the part whose tokens stand for it where a row has no price of the unit.
var unitKinds = [unitCount]struct {
	key, one string
	seconds  bool
	tokens   part
}{
	unitRequest:      {"per_request", "a request", false, partInput},
	unitSecondInput:  {"per_second_input", "a second of audio heard", true, partAudioInput},
	unitSecondOutput: {"per_second_output", "a second of audio spoken", true, partAudioOutput},
	unitImage:        {"per_image", "an image made", false, partImageOutput},
}

// IsMediaUnit reports whether a key of a spec is the price of a unit that a service
// tier's factor multiplies.
func IsMediaUnit(key string) bool {
	n, ok := unitNamed(key)
	return ok && n != unitRequest
}

func unitNamed(key string) (unit, bool) {
	for n := range unitCount {
		if unitKinds[n].key == key {
			return n, true
		}
	}
	return 0, false
}

// unitFields are the places of r's prices of units.
func (r *Row) unitFields() [unitCount]**money.Nanos {
	return [unitCount]**money.Nanos{&r.PerRequest, &r.PerSecondInput, &r.PerSecondOutput, &r.PerImage}
}

// unitPrices are r's prices of units; nil is not set.
func (r *Row) unitPrices() (prices [unitCount]*money.Nanos) {
	for n, field := range r.unitFields() {
		if prices[n] = *field; r.Free {
			prices[n] = new(money.Nanos)
		}
	}
	return prices
}

// mediaPlaces are the counts of each unit but requests, which have none: pieces,
// or microseconds of what is priced by the second.
func mediaPlaces(u *call.Units) [unitCount]*int64 {
	return [unitCount]*int64{
		unitSecondInput: &u.AudioInputMicros, unitSecondOutput: &u.AudioOutputMicros, unitImage: &u.Images,
	}
}

// pricesMedia reports whether the row prices anything but requests by the unit.
func (r *Row) pricesMedia() bool {
	return r.PerSecondInput != nil || r.PerSecondOutput != nil || r.PerImage != nil
}

// toolPrice is the price of one call of a tool; nil is not set.
func (r *Row) toolPrice(name string) *money.Nanos {
	if r.Free {
		return new(money.Nanos)
	}
	if n, ok := r.PerToolCall[name]; ok {
		return &n
	}
	return nil
}

// Priced is u without the units that the row has no price of, and without tools
// that never ran.
func (r *Row) Priced(u call.Units) call.Units {
	prices := r.unitPrices()
	for n, count := range mediaPlaces(&u) {
		if count != nil && prices[n] == nil {
			*count = 0
		}
	}
	var tools call.ToolCalls
	for _, c := range u.Tools.List() {
		if c.Calls != 0 && r.toolPrice(c.Name) != nil {
			tools.Set(c.Name, c.Calls)
		}
	}
	u.Tools = tools
	return u
}

// tools are the names that have a price, sorted.
func (r *Row) tools() []string {
	names := make([]string, 0, len(r.PerToolCall))
	for name := range r.PerToolCall {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// dearestTools is the most that w's tools can be called, in the dearest order
// that their bounds allow (EST-4). A tool without a price keeps its calls, so
// that it is found out here and not at the end.
func (w *Want) dearestTools(r *Row) (most call.ToolCalls) {
	asked := w.Units.Tools
	list := slices.Clone(asked.List())
	left := w.MaxToolCalls
	for i := range list {
		if list[i].Calls == 0 {
			list[i].Calls = call.DefaultToolCalls
		}
		if w.MaxToolCalls > 0 && asked[i].Calls == 0 {
			list[i].Calls = w.MaxToolCalls
		}
	}
	price := func(c call.ToolCall) money.Nanos {
		if n := r.toolPrice(c.Name); n != nil {
			return *n
		}
		return money.MaxAmount
	}
	slices.SortStableFunc(list, func(a, b call.ToolCall) int { return -compare(price(a), price(b)) })
	for _, c := range list {
		if w.MaxToolCalls > 0 {
			c.Calls = min(c.Calls, left)
			left -= c.Calls
		}
		most.Set(c.Name, c.Calls)
	}
	return most
}

func compare(a, b money.Nanos) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
