// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strconv"
	"strings"
	"time"
)

// usd shows a decimal string of US dollars, exactly, with two places at least:
// "0.0105" is $0.0105, "-2" is -$2.00. Other text is shown as it is.
func usd(decimal string) string {
	if decimal == "" {
		return ""
	}
	sign := ""
	if rest, negative := strings.CutPrefix(decimal, "-"); negative {
		sign, decimal = "-", rest
	}
	if decimal == "" || strings.Trim(decimal, "0123456789.") != "" {
		return sign + decimal
	}
	whole, fraction, _ := strings.Cut(decimal, ".")
	for len(fraction) < 2 {
		fraction += "0"
	}
	return sign + "$" + thousands(whole) + "." + fraction
}

// count shows a whole number in groups of three digits.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		return "-" + thousands(rest)
	}
	return thousands(text)
}

// figure shows a limit's amount: money when the metric is spend, else a number.
func figure(metric, value string) string {
	if metric == "spend" || metric == "funds" {
		return usd(value)
	}
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		return count(n)
	}
	return value
}

func thousands(digits string) string {
	head := len(digits) % 3
	groups := []string{}
	if head > 0 {
		groups = append(groups, digits[:head])
	}
	for i := head; i < len(digits); i += 3 {
		groups = append(groups, digits[i:i+3])
	}
	return strings.Join(groups, ",")
}

// instant shows an RFC 3339 instant to the second, in the zone it carries.
func instant(rfc3339 string) string {
	at, err := time.Parse(time.RFC3339Nano, rfc3339)
	if err != nil {
		return rfc3339
	}
	if _, offset := at.Zone(); offset == 0 {
		return at.Format("2006-01-02 15:04:05Z")
	}
	return at.Format("2006-01-02 15:04:05-07:00")
}

// plural is "1 request", "2 requests".
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}
