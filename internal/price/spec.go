// SPDX-License-Identifier: Apache-2.0

package price

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/money"
)

// The keys of a price beside the names of parts. Nested maps are written as
// dotted keys: above.200000.input, factor.flex.
const (
	keyFree        = "free"
	keyConfirm     = "confirm"
	keyValidFrom   = "valid_from"
	keyPerToolCall = "per_tool_call"
	keyAbove       = "above"
	keyFactor      = "factor"
	keyServiceTier = "service_tier"
)

// WordFree is the scalar that stands for an explicit price of zero.
const WordFree = "free"

const (
	maxTiers       = 16
	maxFactors     = 16
	maxTools       = 16
	maxFactorName  = 32
	maxModelName   = 200
	maxAboveTokens = 1_000_000_000
)

// FieldError is a price that was refused, with the key that it stands under,
// so that the reader of a file can name the line.
type FieldError struct {
	Field string
	Err   error
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return "price: " + e.Err.Error()
	}
	return fmt.Sprintf("price field %.80q: %s", e.Field, e.Err)
}

// Unwrap is the reason.
func (e *FieldError) Unwrap() error { return e.Err }

// Spec is a price as somebody wrote it: either Word, which can only be "free",
// or Fields, decimal strings of dollars per million tokens by key. Keys are
// input, cached_input, cache_write_5m, cache_write_1h, output, audio_input,
// cached_audio_input, audio_output, image_input, image_output; per_request,
// per_second_input, per_second_output, per_image and per_tool_call.<tool>
// (dollars for one); above.<tokens>.<part> for tiers; factor.<tier> for service
// tiers ("1/2" or "0.5"), or service_tier.<tier>.<part> and
// service_tier.<tier>.above.<tokens>.<part>; valid_from (a day or an instant);
// confirm ("true") for prices over 10,000 dollars. Who reads a null leaves its key out: it is "not
// set".
type Spec struct {
	Word   string
	Fields map[string]string
}

// ParseSpec reads the price that a file or an API declares for a model. The
// row is an override. Errors are *FieldError.
func ParseSpec(model string, s Spec) (*Row, error) {
	b := newBuilder(&Row{Model: model, Source: SourceOverride})
	switch {
	case s.Word != "" && len(s.Fields) != 0:
		return nil, &FieldError{"", errors.New("is either a word or a map of prices")}
	case s.Word == WordFree:
		b.row.Free = true
	case s.Word != "":
		return nil, &FieldError{"", fmt.Errorf("%.40q is neither %q nor a map of prices", s.Word, WordFree)}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Fields)) {
		if err := b.set(key, s.Fields[key]); err != nil {
			return nil, err
		}
	}
	return b.finish()
}

// builder makes a row out of keys and values, whoever wrote them.
type builder struct {
	row       *Row
	confirmed bool
	// dear is the first key whose price needs confirmation.
	dear string
}

func newBuilder(row *Row) *builder { return &builder{row: row} }

// set takes one price.
func (b *builder) set(key, value string) error {
	if err := b.parse(key, value); err != nil {
		return &FieldError{key, err}
	}
	return nil
}

func (b *builder) parse(key, value string) error {
	head, rest, nested := strings.Cut(key, ".")
	switch {
	case !nested && (head == keyFree || head == keyConfirm):
		return b.parseSwitch(head, value)
	case !nested && head == keyValidFrom:
		at, err := parseStart(value)
		b.row.ValidFromMicros = at
		return err
	case nested && head == keyPerToolCall:
		return b.parseTool(rest, value)
	case nested && head == keyAbove:
		return b.parseTier(&b.row.Tiers, rest, value)
	case nested && head == keyFactor:
		return b.parseFactor(rest, value)
	case nested && head == keyServiceTier:
		return b.parseService(rest, value)
	}
	return b.parseRate(b.row.fields(), key, value)
}

func (b *builder) parseSwitch(key, value string) error {
	if value != "true" && value != "false" {
		return errors.New("is neither true nor false")
	}
	if key == keyFree {
		b.row.Free = value == "true"
	} else {
		b.confirmed = value == "true"
	}
	return nil
}

// parsePiece reads dollars for one.
func (b *builder) parsePiece(key, value string) (money.Nanos, error) {
	n, err := money.ParseUSD(value)
	if err == nil && n > money.Nanos(money.MaxPrice) {
		b.needConfirm(key)
	}
	return n, err
}

func (b *builder) parseTool(name, value string) error {
	if !isTierName(name) {
		return fmt.Errorf("tool is not 1 to %d of [a-z0-9_-]", maxFactorName)
	}
	n, err := b.parsePiece(keyPerToolCall+"."+name, value)
	if err != nil {
		return err
	}
	b.row.setTool(name, n)
	if len(b.row.PerToolCall) > maxTools {
		return fmt.Errorf("more than %d tools", maxTools)
	}
	return nil
}

func (b *builder) parseRate(fields [partCount]**money.PerMillion, name, value string) error {
	p, ok := partNamed(name)
	if n, isUnit := unitNamed(name); isUnit && fields == b.row.fields() {
		price, err := b.parsePiece(name, value)
		*b.row.unitFields()[n] = &price
		return err
	}
	if !ok {
		return errors.New("is no price that is known here")
	}
	rate, err := money.ParsePerMillionConfirmed(value)
	if err != nil {
		return err
	}
	if rate > money.MaxPrice {
		b.needConfirm(name)
	}
	*fields[p] = &rate
	return nil
}

func (b *builder) parseTier(tiers *[]Tier, key, value string) error {
	text, name, _ := strings.Cut(key, ".")
	above, err := strconv.ParseInt(text, 10, 64)
	if err != nil || above < 1 || above > maxAboveTokens || strconv.FormatInt(above, 10) != text {
		return fmt.Errorf("threshold is not a whole number of tokens from 1 to %d", maxAboveTokens)
	}
	i, err := tierAt(tiers, above)
	if err != nil {
		return err
	}
	return b.parseRate((*tiers)[i].fields(), name, value)
}

// tierAt is the place of a threshold, which is made where it is missing.
func tierAt(tiers *[]Tier, above int64) (int, error) {
	i, found := slices.BinarySearchFunc(*tiers, above, func(t Tier, above int64) int {
		return int(t.AboveTokens - above)
	})
	if !found {
		if len(*tiers) > maxTiers || above > 0 && len(*tiers) == maxTiers && (*tiers)[0].AboveTokens > 0 {
			return 0, fmt.Errorf("more than %d tiers", maxTiers)
		}
		*tiers = slices.Insert(*tiers, i, Tier{AboveTokens: above})
	}
	return i, nil
}

// parseService reads a price of a service tier, of any input or above a threshold.
func (b *builder) parseService(key, value string) error {
	name, rest, nested := strings.Cut(key, ".")
	switch {
	case !isTierName(name):
		return fmt.Errorf("service tier is not 1 to %d of [a-z0-9_-]", maxFactorName)
	case !nested:
		return errors.New("is an object of prices; what multiplies them stands under factor")
	case b.row.ServiceTiers == nil:
		b.row.ServiceTiers = make(map[string][]Tier)
	}
	list := b.row.ServiceTiers[name]
	defer func() { b.row.ServiceTiers[name] = list }()
	if len(list) == 0 && len(b.row.ServiceTiers) == maxFactors {
		return fmt.Errorf("more than %d service tiers", maxFactors)
	}
	if above, ok := strings.CutPrefix(rest, keyAbove+"."); ok {
		return b.parseTier(&list, above, value)
	}
	i, err := tierAt(&list, 0)
	if err != nil {
		return err
	}
	return b.parseRate(list[i].fields(), rest, value)
}

func (b *builder) parseFactor(name, value string) error {
	if !isTierName(name) {
		return fmt.Errorf("service tier is not 1 to %d of [a-z0-9_-]", maxFactorName)
	}
	f, err := ParseFraction(value)
	if err != nil {
		return err
	}
	if b.row.Factors == nil {
		b.row.Factors = make(map[string]Fraction)
	}
	b.row.Factors[name] = f
	if len(b.row.Factors) > maxFactors {
		return fmt.Errorf("more than %d service tiers", maxFactors)
	}
	return nil
}

func isTierName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= maxFactorName
}

// twice is a service tier with a factor and prices, "" when there is none.
func (b *builder) twice() string {
	for _, name := range slices.Sorted(maps.Keys(b.row.ServiceTiers)) {
		if _, has := b.row.Factors[name]; has {
			return name
		}
	}
	return ""
}

func (b *builder) needConfirm(key string) {
	if b.dear == "" {
		b.dear = key
	}
}

// finish checks the row as a whole and seals it.
func (b *builder) finish() (*Row, error) {
	r := b.row
	switch {
	case b.dear != "" && !b.confirmed:
		return nil, &FieldError{b.dear, ErrConfirm}
	case r.Free && len(r.prices()) > 1:
		return nil, &FieldError{keyFree, errors.New("stands beside prices")}
	case b.twice() != "":
		return nil, &FieldError{keyServiceTier + "." + b.twice(), errors.New("has a factor, too: give one or the other")}
	case len(r.Model) > maxModelName:
		return nil, &FieldError{"model", fmt.Errorf("is longer than %d bytes", maxModelName)}
	case r.Source != SourceOverride && r.Source != SourceImported && r.Source != SourceBuiltIn:
		return nil, &FieldError{"source", fmt.Errorf("%.40q is no source of prices", r.Source)}
	case r.ValidFromMicros < 0:
		return nil, &FieldError{"valid_from_micros", errors.New("is below zero")}
	}
	for field, day := range map[string]string{"date": r.Date, "stale_since": r.StaleSince} {
		if day == "" {
			continue
		}
		if _, err := parseDate(day); err != nil {
			return nil, &FieldError{field, err}
		}
	}
	return r.Seal(), nil
}

// parseDate is the first instant, in Unix microseconds, of a day in UTC.
func parseDate(day string) (micros int64, err error) {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no date like 2006-01-02", day)
	}
	return t.UnixMicro(), nil
}

// parseStart is the instant, in Unix microseconds, that a price holds from: a day
// in UTC from its midnight, or an instant as RFC 3339 writes it.
func parseStart(text string) (micros int64, err error) {
	if micros, err = parseDate(text); err == nil {
		return micros, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, fmt.Errorf("%.40q is neither a day like 2026-01-02 nor an instant like 2026-01-02T15:04:05Z", text)
	}
	return t.UnixMicro(), nil
}
