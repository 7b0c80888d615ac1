// SPDX-License-Identifier: Apache-2.0

package price

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// serviceRates are the prices of a request with so many tokens of input that was
// served in a service tier with prices of its own; ok is false when the row has
// none for it.
//
// A part that the service tier leaves out costs what the standard tier says for
// it, and where that says nothing either, what the broader part costs here. Above
// a context tier for which the service tier has no price, the dearer of its price
// below and the standard one holds: a long request is never discounted by silence.
func (r *Row) serviceRates(inputTokens int64, name string) (s rates, ok bool) {
	list := r.ServiceTiers[name]
	if len(list) == 0 || r.Free {
		return s, false
	}
	var short, long rates
	if list[0].AboveTokens == 0 {
		short = read(list[0].fields())
	}
	if t := tierFor(list, inputTokens); t != base && list[t].AboveTokens > 0 {
		long = read(list[t].fields())
	}
	context := r.tierFor(inputTokens)
	own, standard := read(r.fields()), r.rates(context)
	if context != base {
		for p, rate := range read(r.Tiers[context].fields()) {
			own[p] = dearer(own[p], rate)
		}
	}
	for p := range partCount {
		switch broader := parts[p].broader; {
		case long[p] != nil:
			s[p] = long[p]
		case short[p] != nil && context != base:
			s[p] = dearer(short[p], standard[p])
		case short[p] != nil:
			s[p] = short[p]
		case own[p] != nil || p == broader:
			s[p] = standard[p]
		default:
			s[p] = s[broader]
		}
	}
	return s, true
}

// ratesFor are the prices of a request with so many tokens of input in a service
// tier, the standard ones where that has none of its own.
func (r *Row) ratesFor(inputTokens int64, service string) rates {
	if s, ok := r.serviceRates(inputTokens, service); ok {
		return s
	}
	return r.rates(r.tierFor(inputTokens))
}

// PricesTier reports whether the row has a factor or prices for a served service
// tier. Where it has none, the tier costs what the standard one costs, and callers
// that were served one mark the event.
func (r *Row) PricesTier(name string) bool {
	_, factor := r.Factors[name]
	return factor || r.Free || r.PricesTierByPart(name)
}

// PricesTierByPart reports whether the service tier has prices of its own and not
// a factor of the standard ones.
func (r *Row) PricesTierByPart(name string) bool { return len(r.ServiceTiers[name]) > 0 }

// allRates calls each with the prices of every context and service tier.
func (r *Row) allRates(each func(rates)) {
	for t := base; t < len(r.Tiers); t++ {
		each(r.rates(t))
	}
	for name, list := range r.ServiceTiers {
		for i := base; i < len(r.Tiers); i++ {
			s, _ := r.serviceRates(beginsAt(r.Tiers, i), name)
			each(s)
		}
		for i := range list {
			s, _ := r.serviceRates(beginsAt(list, i), name)
			each(s)
		}
	}
}

// beginsAt is the least input of a context tier.
func beginsAt(tiers []Tier, t int) int64 {
	if t == base {
		return 0
	}
	return tiers[t].AboveTokens + 1
}

// overService gives merged, which is r over under, the service tiers of under that
// r has not: those that r says nothing of, and that price no part of a side, input
// or output, which is r's own. A service tier with half of its prices would charge
// what nobody wrote.
func (r *Row) overService(merged, under *Row, own [partCount]bool) {
	if len(merged.Factors) == 0 {
		merged.Factors = maps.Clone(under.Factors)
		for name := range r.ServiceTiers {
			delete(merged.Factors, name)
		}
	}
	merged.ServiceTiers = maps.Clone(r.ServiceTiers)
	for name, list := range under.ServiceTiers {
		_, has := r.ServiceTiers[name]
		_, factor := merged.Factors[name]
		if has || factor || slices.ContainsFunc(list, func(t Tier) bool { return t.touches(own) }) {
			continue
		}
		if merged.ServiceTiers == nil {
			merged.ServiceTiers = make(map[string][]Tier)
		}
		merged.ServiceTiers[name] = list
	}
}

// touches reports whether a tier prices a part of a side that is taken.
func (t *Tier) touches(own [partCount]bool) bool {
	for p, rate := range read(t.fields()) {
		if rate != nil && own[part(p).root()] {
			return true
		}
	}
	return false
}

// appendServices lists the prices of service tiers, by name and threshold.
func (r *Row) appendServices(list []pair) []pair {
	for _, name := range slices.Sorted(maps.Keys(r.ServiceTiers)) {
		for i := range r.ServiceTiers[name] {
			t := &r.ServiceTiers[name][i]
			var prefix strings.Builder
			prefix.WriteString(keyServiceTier + "." + name + ".")
			if t.AboveTokens > 0 {
				prefix.WriteString(keyAbove + "." + strconv.FormatInt(t.AboveTokens, 10) + ".")
			}
			list = appendRates(list, prefix.String(), read(t.fields()))
		}
	}
	return list
}
