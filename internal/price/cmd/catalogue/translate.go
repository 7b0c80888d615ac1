// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// keys are the source's prices that a row holds, in the order in which they
// are written, with the power of ten that they are divided by.
var keys = []struct {
	source, name string
	shift        int
}{
	{"input_mtok", "input", 0},
	{"cache_read_mtok", "cached_input", 0},
	{"cache_write_mtok", "cache_write_5m", 0},
	{"cache_write_1h_mtok", "cache_write_1h", 0},
	{"output_mtok", "output", 0},
	{"input_audio_mtok", "audio_input", 0},
	{"cache_audio_read_mtok", "cached_audio_input", 0},
	{"output_audio_mtok", "audio_output", 0},
	{"input_image_mtok", "image_input", 0},
	{"output_image_mtok", "image_output", 0},
	{"requests_kcount", "per_request", 3},
	{"web_searches_kcount", "per_tool_call.web_search", 3},
	{"storage_searches_kcount", "per_tool_call.file_search", 3},
}

// translator writes the source's providers in the catalogue's own lines and
// counts what it could not carry over whole.
type translator struct {
	out      strings.Builder
	models   int
	unpriced int
	rounded  []string
}

func (t *translator) provider(v value) error {
	fmt.Fprintf(&t.out, "provider\t%s", v.textOf("id"))
	for _, f := range []struct{ source, name string }{{"provider_match", "names"}, {"model_match", "models"}} {
		if rule, ok := v.get(f.source); ok {
			words, err := match(rule)
			if err != nil {
				return fmt.Errorf("%s of %s: %w", f.source, v.textOf("id"), err)
			}
			fmt.Fprintf(&t.out, "\t%s=%s", f.name, words)
		}
	}
	fmt.Fprintf(&t.out, "\taddress=%s", v.textOf("api_pattern"))
	if list, ok := v.get("fallback_model_providers"); ok {
		var ids []string
		for _, id := range list.list {
			ids = append(ids, id.text)
		}
		fmt.Fprintf(&t.out, "\tresells=%s", strings.Join(ids, ","))
	}
	t.out.WriteByte('\n')
	models, _ := v.get("models")
	for _, model := range models.list {
		if err := t.model(model); err != nil {
			return fmt.Errorf("%s %s: %w", v.textOf("id"), model.textOf("id"), err)
		}
	}
	return nil
}

func (t *translator) model(v value) error {
	rule, _ := v.get("match")
	words, err := match(rule)
	if err != nil {
		return err
	}
	context := "0"
	if text := v.textOf("context_window"); text != "" {
		if context, _, err = decimal(text, 0); err != nil {
			return err
		}
	}
	id := v.textOf("id")
	fmt.Fprintf(&t.out, "%s\t%s\t%s", id, words, context)
	prices, ok := v.get("prices")
	if !ok {
		return fmt.Errorf("has no prices field")
	}
	sets := []value{{kind: kindObject, fields: []field{{"prices", prices}}}}
	if prices.kind == kindList {
		sets = prices.list
	}
	priced := false
	for _, set := range sets {
		line, some, err := t.set(id, set)
		if err != nil {
			return err
		}
		priced = priced || some
		t.out.WriteString("\t" + line)
	}
	t.out.WriteByte('\n')
	t.models++
	if !priced {
		t.unpriced++
	}
	return nil
}

// set writes one conditional price.
func (t *translator) set(id string, v value) (line string, priced bool, err error) {
	var words []string
	if constraint, ok := v.get("constraint"); ok {
		word, err := condition(constraint)
		if err != nil {
			return "", false, err
		}
		words = append(words, word)
	}
	prices, _ := v.get("prices")
	thresholds, err := thresholds(prices)
	if err != nil {
		return "", false, err
	}
	for _, above := range append([]string{""}, thresholds...) {
		for _, key := range keys {
			price, ok := prices.get(key.source)
			// A price per request has no tiers here; none has in the source.
			if !ok || key.shift != 0 && above != "" {
				continue
			}
			text, err := priceAbove(price, above)
			if err != nil {
				return "", false, fmt.Errorf("%s: %w", key.source, err)
			}
			plain, exact, err := decimal(text, key.shift)
			if err != nil {
				return "", false, err
			}
			if !exact {
				t.rounded = append(t.rounded, fmt.Sprintf("%s %s %s -> %s", id, key.source, text, plain))
			}
			prefix := ""
			if above != "" {
				prefix = "above." + above + "."
			}
			words = append(words, prefix+key.name+"="+plain)
			priced = true
		}
	}
	for _, f := range prices.fields {
		if !carried(f.name) {
			words = append(words, "!"+f.name)
		}
	}
	if len(words) == 0 {
		words = []string{"-"}
	}
	return strings.Join(words, " "), priced, nil
}

func carried(source string) bool {
	for _, key := range keys {
		if key.source == source {
			return true
		}
	}
	return false
}

// condition is the word for when a price holds. Only whole seconds in UTC stand
// in the source; anything else is an error rather than a wrong hour.
func condition(v value) (string, error) {
	switch v.textOf("type") {
	case "start_date":
		return "from=" + v.textOf("start_date"), nil
	case "time_of_date":
		from, okFrom := strings.CutSuffix(v.textOf("start_time"), "Z")
		to, okTo := strings.CutSuffix(v.textOf("end_time"), "Z")
		if okFrom && okTo && len(from) == len("15:04:05") && len(to) == len("15:04:05") {
			return "hours=" + from + "-" + to, nil
		}
	}
	return "", fmt.Errorf("constraint %v can't be written", v)
}

// thresholds lists where any of the prices changes, ascending.
func thresholds(prices value) ([]string, error) {
	var list []string
	for _, f := range prices.fields {
		tiers, _ := f.get("tiers")
		for _, tier := range tiers.list {
			start, exact, err := decimal(tier.textOf("start"), 0)
			if err != nil || !exact || strings.Contains(start, ".") {
				return nil, fmt.Errorf("threshold %q of %s is no whole number", tier.textOf("start"), f.name)
			}
			if !slices.Contains(list, start) {
				list = append(list, start)
			}
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return list, nil
}

// priceAbove is a price in the tier above a threshold, "" for below all. A
// price without tiers is the same in each.
func priceAbove(price value, above string) (string, error) {
	if price.kind == kindNumber {
		return price.text, nil
	}
	text := price.textOf("base")
	tiers, ok := price.get("tiers")
	if !ok || text == "" {
		return "", fmt.Errorf("is neither a number nor tiered")
	}
	last := ""
	for _, tier := range tiers.list {
		start, _, err := decimal(tier.textOf("start"), 0)
		if err != nil {
			return "", err
		}
		if len(start) < len(last) || len(start) == len(last) && start <= last {
			return "", fmt.Errorf("tiers don't ascend")
		}
		last = start
		if len(start) < len(above) || len(start) == len(above) && start <= above {
			text = tier.textOf("price")
		}
	}
	return text, nil
}

// operators are the source's simple matches.
var operators = map[string]string{"equals": "=", "starts_with": "^", "ends_with": "$", "contains": "~"}

// match translates a match rule into words.
func match(v value) (string, error) {
	if len(v.fields) != 1 {
		return "", fmt.Errorf("match has %d fields", len(v.fields))
	}
	f := v.fields[0]
	if op, ok := operators[f.name]; ok {
		if f.text == "" || strings.ContainsAny(f.text, " \t\n") {
			return "", fmt.Errorf("match %q can't be a word", f.text)
		}
		return op + strings.ToLower(f.text), nil
	}
	if f.name == "regex" {
		return pattern(f.text)
	}
	var words []string
	for _, term := range f.list {
		word, err := match(term)
		if err != nil {
			return "", err
		}
		// A term of an or that is itself several words would fall apart.
		if strings.Contains(word, " ") && !strings.HasSuffix(word, ")") {
			return "", fmt.Errorf("match %q is no single term", word)
		}
		words = append(words, word)
	}
	switch f.name {
	case "or":
		if len(words) == 1 {
			return words[0], nil
		}
		return strings.Join(words, " "), nil
	case "and":
		return "all( " + strings.Join(words, " ") + " )", nil
	}
	return "", fmt.Errorf("match %q is unknown", f.name)
}

// pattern writes a regular expression. Go's have no look-ahead; the source uses
// it only at the start, "^(?!a)b", which is "not ^a, and ^b".
func pattern(text string) (string, error) {
	if strings.ContainsAny(text, " \t\n") {
		return "", fmt.Errorf("pattern %q can't be a word", text)
	}
	inner, ok := strings.CutPrefix(text, "^(?!")
	if !ok {
		return "/" + text, nil
	}
	depth := 1
	for i, c := range inner {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			words := "none( /^(?:" + inner[:i] + ") )"
			if rest := inner[i+1:]; rest != "" {
				return "all( " + words + " /^(?:" + rest + ") )", nil
			}
			return words, nil
		}
	}
	return "", fmt.Errorf("pattern %q is not closed", text)
}
