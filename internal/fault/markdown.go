// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"strings"
)

const preface = `<!-- Generated from internal/fault: go test ./internal/fault -update. -->
# Errors

Every error of Weir's own has one HTTP status and one code, and comes in the shape of the protocol that was called:

| protocol | body | the code is |
|---|---|---|
| OpenAI, and the admin API | ` + "`" + `{"error":{"message","type","code","param","details"}}` + "`" + ` | ` + "`error.code`" + ` |
| Anthropic | ` + "`" + `{"type":"error","error":{"type","message","code","details"},"request_id"}` + "`" + ` | ` + "`error.code`" + ` |
| Gemini | ` + "`" + `{"error":{"code","message","status","details"}}` + "`" + ` | ` + "`error.details[0].reason`" + ` |

- ` + "`details`" + ` holds the figures of a limit's refusal: ` + "`limit_id`, `scope`, `subject`, `metric`, `window`, `amount`, `used`, `held`, `wanted`, `resets_at` (RFC 3339), `reason` and `retryable`" + `.
  Amounts are text: decimal US dollars, or whole tokens or requests. A workspace can hide them from callers.
- ` + "`X-Weir-Error-Source`" + ` is ` + "`gateway`" + ` on these errors and ` + "`provider`" + ` on those that a provider answered.
- ` + "`Retry-After`" + ` is sent where waiting helps. Money and tokens that are spent carry ` + "`X-Weir-Reset`" + ` (seconds) instead, because some clients sleep a ` + "`Retry-After`" + ` out, for hours.
- ` + "`x-should-retry: false`" + ` is sent where a minute of waiting does not help; the official clients then make one attempt.

The column *retry* says whether the same request may pass within a minute without anybody changing anything; ` + "`details.retryable`" + ` knows the very case: a budget that only running requests
stand in the way of is worth a retry (` + "`reason`: `held`" + `), a request larger than a whole limit never is (` + "`reason`: `larger_than_limit`" + `).
`

// Markdown is the registry as a page: docs/errors.md.
func Markdown() string {
	var page strings.Builder
	page.WriteString(preface)
	for _, s := range sections {
		fmt.Fprintf(&page, "\n## %s\n%s\n\n| code | status | type | retry | meaning |\n|---|---|---|---|---|\n", s.title, s.intro)
		for _, info := range s.infos {
			page.WriteString(info.row())
		}
	}
	return page.String()
}

func (info Info) row() string {
	retry, help := "no", info.Help
	if info.Retryable {
		retry = "yes"
	}
	if info.Retired {
		help = "*Retired: no longer sent.* " + help
	}
	return fmt.Sprintf("| `%s` | %d | `%s` | %s | %s |\n", info.Code, info.Status, TypeFor(info.Status), retry, help)
}
