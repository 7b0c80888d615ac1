// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/openai"
)

func TestAFaultHasTheProtocolsShape(t *testing.T) { // ERR-1
	f := fault.New(fault.BudgetExceeded, "budget %q of org is spent", "month")
	f.Details = &fault.Details{LimitID: "lim_1", Scope: "org", Window: "month", Amount: "5", Used: "5.01", Held: "0", ResetsAt: "2026-04-01T00:00:00Z"}
	status, contentType, body := openai.Chat{}.Fault(f, "req_1")
	want := `{"error":{"message":"budget \"month\" of org is spent (request req_1)","type":"rate_limit_error","param":null,"code":"budget_exceeded",` +
		`"details":{"limit_id":"lim_1","scope":"org","window":"month","amount":"5","used":"5.01","held":"0","resets_at":"2026-04-01T00:00:00Z","retryable":false}}}`
	if status != http.StatusTooManyRequests || contentType != "application/json" || string(body) != want {
		t.Errorf("%d %s\n%s\nwant\n%s", status, contentType, body, want)
	}
}

func TestTheTypeOfAFaultFollowsItsStatus(t *testing.T) { // ERR-1
	for _, info := range fault.All() {
		status, _, body := openai.Chat{}.Fault(fault.New(info.Code, "x"), "")
		var got struct {
			Error struct{ Message, Type, Code string }
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if status != info.Status || got.Error.Type != fault.TypeFor(info.Status) || got.Error.Code != string(info.Code) || got.Error.Message != "x" {
			t.Errorf("%s: %d %s", info.Code, status, body)
		}
	}
}

func TestARefusedMemberIsNamed(t *testing.T) { // ERR-5
	_, f := openai.Chat{}.Decode(wire.Request{Body: []byte(body(`,"n":0`))})
	_, _, text := openai.Chat{}.Fault(f, "")
	if !strings.Contains(string(text), `"param":"n"`) || !strings.Contains(string(text), `"type":"invalid_request_error"`) {
		t.Errorf("got %s", text)
	}
}

// ERR-6: a failure in a started stream is an event of its own, with no clean end.
func TestAFaultInAStreamIsAnEvent(t *testing.T) {
	event := string(openai.Chat{}.NewStream(wire.StreamOptions{}).Fault(fault.New(fault.UpstreamTimeout, "a\nb"), "req_1"))
	if !strings.HasPrefix(event, `data: {"error":{"message":"a\nb (request req_1)","type":"api_error"`) || !strings.HasSuffix(event, "}\n\n") ||
		strings.Count(event, "\n") != 2 {
		t.Errorf("got %q", event)
	}
	out, got := run(t, wire.StreamOptions{}, event)
	if out != event || !got.ErrorSeen || got.Finished {
		t.Errorf("our own event reads as %+v", got)
	}
}
