// SPDX-License-Identifier: Apache-2.0

package price

import (
	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/money"
)

// part is a kind of unit that a row can price.
type part uint8

const (
	partInput part = iota
	partCachedInput
	partCacheWrite5m
	partCacheWrite1h
	partOutput
	partAudioInput
	partCachedAudioInput
	partAudioOutput
	partImageInput
	partImageOutput
	partCount
)

// parts is the chain of PRC-1 as a table: the name of each part in files and
// in JSON, and the part whose price stands in where its own is not set. A part
// that is its own broader one has none. Broader parts come before their
// narrower ones.
var parts = [partCount]struct {
	name    string
	broader part
}{
	partInput:            {"input", partInput},
	partCachedInput:      {"cached_input", partInput},
	partCacheWrite5m:     {"cache_write_5m", partInput},
	partCacheWrite1h:     {"cache_write_1h", partCacheWrite5m},
	partOutput:           {"output", partOutput},
	partAudioInput:       {"audio_input", partInput},
	partCachedAudioInput: {"cached_audio_input", partCachedInput},
	partAudioOutput:      {"audio_output", partOutput},
	partImageInput:       {"image_input", partInput},
	partImageOutput:      {"image_output", partOutput},
}

// root is the last part of p's chain: input or output.
func (p part) root() part {
	for parts[p].broader != p {
		p = parts[p].broader
	}
	return p
}

// IsTokenPart reports whether a key of a spec is the price of a part of the tokens.
func IsTokenPart(key string) bool {
	_, ok := partNamed(key)
	return ok
}

func partNamed(name string) (part, bool) {
	for p := range partCount {
		if parts[p].name == name {
			return p, true
		}
	}
	return 0, false
}

// units is how much of each part u used. What the provider's own tools read is
// input like any other.
func units(u *call.Usage) [partCount]int64 {
	return [partCount]int64{
		partInput:            add(u.Input, u.ToolInput),
		partCachedInput:      u.CachedInput,
		partCacheWrite5m:     u.CacheWrite5m,
		partCacheWrite1h:     u.CacheWrite1h,
		partOutput:           u.Output,
		partAudioInput:       u.AudioInput,
		partCachedAudioInput: u.CachedAudioInput,
		partAudioOutput:      u.AudioOutput,
		partImageInput:       u.ImageInput,
		partImageOutput:      u.ImageOutput,
	}
}

// rates holds the price of each part; nil is not set.
type rates [partCount]*money.PerMillion

// spread fills what is not set from the broader parts. What has no broader
// part that is set stays nil: it has no price.
func (s rates) spread() rates {
	for p := range partCount {
		if s[p] == nil {
			s[p] = s[parts[p].broader]
		}
	}
	return s
}

// over is s, a tier's own prices, laid over base, a row's own. A part that the
// tier leaves out costs the dearer of what its broader part costs in the tier
// and what the row itself says for it: a tier that only names input and output
// would else read a long prompt from the cache, or hear audio, at too little.
func (s rates) over(base rates) rates {
	outside := base.spread()
	var touched [partCount]bool
	for p := range partCount {
		broader := parts[p].broader
		switch {
		case s[p] != nil:
			touched[p] = true
		case p != broader && touched[broader]:
			touched[p] = true
			s[p] = dearer(s[broader], base[p])
		default:
			s[p] = outside[p]
		}
	}
	return s
}

// dearer is the higher of two prices; one that is not set loses.
func dearer(a, b *money.PerMillion) *money.PerMillion {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}
