// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"strconv"
	"strings"
)

// units are the lengths that a duration counts, in microseconds, the longest
// first. "ms" stands before "m" and "s", which it ends like.
var units = []struct {
	name   string
	micros int64
}{
	{"ms", 1000},
	{"w", 7 * 24 * 3600 * 1_000_000},
	{"d", 24 * 3600 * 1_000_000},
	{"h", 3600 * 1_000_000},
	{"m", 60 * 1_000_000},
	{"s", 1_000_000},
}

// ParseDuration reads a whole number and one of ms, s, m, h, d and w, from
// least to most microseconds.
func ParseDuration(s string, least, most int64) (int64, error) {
	for _, unit := range units {
		digits, ok := strings.CutSuffix(s, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n > uint64(most/unit.micros) || int64(n)*unit.micros < least {
			break
		}
		return int64(n) * unit.micros, nil
	}
	return 0, fmt.Errorf("must be a length of time from %s to %s, is %s", FormatDuration(least), FormatDuration(most), Quote(s))
}

// FormatDuration writes what ParseDuration reads, in the greatest unit that is
// exact. Microseconds below a millisecond are dropped.
func FormatDuration(micros int64) string {
	for _, name := range []string{"d", "h", "m", "s"} {
		for _, unit := range units {
			if unit.name == name && micros >= unit.micros && micros%unit.micros == 0 {
				return strconv.FormatInt(micros/unit.micros, 10) + name
			}
		}
	}
	return strconv.FormatInt(micros/1000, 10) + "ms"
}
