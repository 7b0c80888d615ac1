// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	maxName   = 200
	maxScript = 1_000
)

// ParseModel reads a model name with its settings, as the package comment has
// them. The error tells what is wrong with which setting.
func ParseModel(model string) (name string, b Behaviour, err error) {
	name, settings, scripted := strings.Cut(model, "?")
	if !validName(name) {
		return "", Behaviour{}, fmt.Errorf("%w: a model's name is 1 to %d bytes of [A-Za-z0-9._:/@+-]", errScript, maxName)
	}
	if !scripted {
		return name, Behaviour{}, nil
	}
	if len(settings) > maxScript {
		return "", Behaviour{}, fmt.Errorf("%w: settings are longer than %d bytes", errScript, maxScript)
	}
	seen := make(map[string]bool)
	for setting := range strings.SplitSeq(settings, "&") {
		key, value, valued := strings.Cut(setting, "=")
		if seen[key] {
			return "", Behaviour{}, fmt.Errorf("%w: %q is given twice", errScript, key)
		}
		seen[key] = true
		if valued {
			err = b.set(key, value)
		} else {
			err = b.raise(key)
		}
		if err != nil {
			return "", Behaviour{}, err
		}
	}
	if err := b.check(); err != nil {
		return "", Behaviour{}, err
	}
	return name, b, nil
}

// validName reports whether s can be a model's name (KEY-5).
func validName(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '-' && c <= ':', c == '_', c == '@', c == '+':
		default:
			return false
		}
	}
	return true
}

func (b *Behaviour) set(key, value string) (err error) {
	switch key {
	case "in":
		b.Input, err = parseCount(key, value)
	case "out":
		b.Output, err = parseCount(key, value)
	case "bytes":
		b.TextBytes, err = parseCount(key, value)
	case "chunk":
		b.ChunkTokens, err = parsePositive(key, value)
	case "latency":
		b.Latency, err = parseDuration(key, value)
	case "gap":
		b.Gap, err = parseDuration(key, value)
	case "status":
		var status int64
		status, err = parsePositive(key, value)
		b.Status = int(status)
	case "retry":
		b.RetryAfterSeconds, err = parsePositive(key, value)
	case "split":
		b.Split, err = parsePositive(key, value)
	case "join":
		b.Join, err = parsePositive(key, value)
	case "pad":
		b.Pad, err = parsePositive(key, value)
	default:
		for _, part := range b.counts() {
			if part.key == key {
				*part.n, err = parseWhole(key, value)
				return err
			}
		}
		return b.setWord(key, value)
	}
	return err
}

// counted is a part of the usage, by its setting.
type counted struct {
	key string
	n   *int64
}

func (b *Behaviour) counts() []counted {
	return []counted{
		{"cached", &b.Cached},
		{"reasoning", &b.Reasoning},
		{"write5m", &b.CacheWrite5m},
		{"write1h", &b.CacheWrite1h},
		{"toolin", &b.ToolInput},
		{"audioin", &b.AudioInput},
		{"audioout", &b.AudioOutput},
		{"imageout", &b.ImageOutput},
		{"searches", &b.Searches},
	}
}

func (b *Behaviour) setWord(key, value string) (err error) {
	if value == "" {
		return fmt.Errorf("%w: %q has no value", errScript, key)
	}
	switch key {
	case "usage":
		b.Usage = UsageMode(value)
	case "dialect":
		b.Dialect = Dialect(value)
	case "refuse":
		b.Refuse = Field(value)
	case "tier":
		b.ServiceTier = value
	case "as":
		b.AnswerModel = value
	case "cut", "close", "hang", "error", "end":
		if b.Break.Manner != "" {
			return fmt.Errorf("%w: %q after %q: an answer breaks off once", errScript, key, b.Break.Manner)
		}
		b.Break.Manner = Manner(key)
		b.Break.At, err = parsePoint(key, value)
	default:
		return fmt.Errorf("%w: unknown setting %q", errScript, key)
	}
	return err
}

// flags are the bare settings, as a model name has them.
var flags = []string{"crlf", "ping", "gzip", "pack", "whole", "linger", "halt", "invalid", "echo", "ignore", "unbounded", "free"}

// flag is the field that a bare setting raises, nil when there is none.
func (b *Behaviour) flag(key string) *bool {
	switch key {
	case "crlf":
		return &b.CRLF
	case "ping":
		return &b.Ping
	case "gzip":
		return &b.Gzip
	case "pack":
		return &b.Pack
	case "whole":
		return &b.Whole
	case "linger":
		return &b.Linger
	case "halt":
		return &b.Halt
	case "invalid":
		return &b.Invalid
	case "echo":
		return &b.Echo
	case "ignore":
		return &b.Ignore
	case "unbounded":
		return &b.Unbounded
	case "free":
		return &b.Free
	}
	return nil
}

func (b *Behaviour) raise(key string) error {
	flag := b.flag(key)
	if flag == nil {
		return fmt.Errorf("%w: unknown flag %q", errScript, key)
	}
	*flag = true
	return nil
}

func parseCount(key, value string) (Count, error) {
	n, err := parseWhole(key, value)
	return Exactly(n), err
}

func parsePositive(key, value string) (int64, error) {
	n, err := parseWhole(key, value)
	if err == nil && n == 0 {
		return 0, fmt.Errorf("%w: %s=0 says nothing", errScript, key)
	}
	return n, err
}

// parseWhole takes one spelling of each number, so that a script has one too.
func parseWhole(key, value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != value {
		return 0, fmt.Errorf("%w: %s=%q is not a whole number", errScript, key, value)
	}
	return n, nil
}

func parseDuration(key, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || value[0] == '+' || value[0] == '-' {
		return 0, fmt.Errorf("%w: %s=%q is not a duration", errScript, key, value)
	}
	return d, nil
}

func parsePoint(key, value string) (Point, error) {
	place, events, counted := strings.Cut(value, ":")
	p := Point{Place: Place(place)}
	if counted != (p.Place == PlaceAfter) {
		return Point{}, fmt.Errorf("%w: %s=%q is not headers, after:N, usage or done", errScript, key, value)
	}
	if !counted {
		return p, nil
	}
	n, err := parseWhole(key, events)
	p.Events = n
	return p, err
}

// String is the point as a model name has it.
func (p Point) String() string {
	if p.Place == PlaceAfter {
		return "after:" + strconv.FormatInt(p.Events, 10)
	}
	return string(p.Place)
}

// Model is the model name that makes ParseModel give name and b, as far as b
// can be said in a name.
func (b Behaviour) Model(name string) string {
	var w settings
	w.count("in", b.Input)
	w.count("out", b.Output)
	w.count("bytes", b.TextBytes)
	for _, part := range b.counts() {
		w.number(part.key, *part.n)
	}
	w.number("chunk", b.ChunkTokens)
	w.duration("latency", b.Latency)
	w.duration("gap", b.Gap)
	w.word("usage", string(b.Usage))
	w.word("dialect", string(b.Dialect))
	w.number("status", int64(b.Status))
	w.number("retry", b.RetryAfterSeconds)
	w.word("refuse", string(b.Refuse))
	w.word(string(b.Break.Manner), b.Break.At.String())
	w.number("split", b.Split)
	w.number("join", b.Join)
	w.number("pad", b.Pad)
	w.word("tier", b.ServiceTier)
	w.word("as", b.AnswerModel)
	for _, key := range flags {
		if *b.flag(key) {
			w.list = append(w.list, key)
		}
	}
	if len(w.list) == 0 {
		return name
	}
	return name + "?" + strings.Join(w.list, "&")
}

type settings struct{ list []string }

func (w *settings) word(key, value string) {
	if value != "" {
		w.list = append(w.list, key+"="+value)
	}
}

func (w *settings) number(key string, n int64) {
	if n != 0 {
		w.word(key, strconv.FormatInt(n, 10))
	}
}

// duration keeps to ASCII, which gateways and shells hand on unchanged.
func (w *settings) duration(key string, d time.Duration) {
	if d > 0 {
		w.word(key, strings.Replace(d.String(), "µ", "u", 1))
	}
}

func (w *settings) count(key string, c Count) {
	if c.set {
		w.word(key, strconv.FormatInt(c.n, 10))
	}
}
