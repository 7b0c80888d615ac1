// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"reflect"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/anthropic"
)

// TestAMessageTellsWhatItsProviderKeeps: DIS-8. The container of its code, and the
// files that were written there.
func TestAMessageTellsWhatItsProviderKeeps(t *testing.T) {
	const block = `{"type":"bash_code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"bash_code_execution_result","stdout":"","content":[{"type":"bash_code_execution_output","file_id":"file_1"}]}}`
	const container = `"container":{"id":"container_1","expires_at":"2026-01-01T00:00:00Z"}`
	file, box := call.Kept{Kind: call.KeptFile, ID: "file_1"}, call.Kept{Kind: call.KeptContainer, ID: "container_1"}
	whole := `{"type":"message","model":"m","content":[` + block + `],` + container + `,"usage":{"input_tokens":1,"output_tokens":1}}`
	if got := (anthropic.Messages{}).Whole([]byte(whole), 0).Kept; !reflect.DeepEqual(got, []call.Kept{file, box}) {
		t.Errorf("whole: %+v", got)
	}
	s := anthropic.Messages{}.NewStream(wire.StreamOptions{})
	stream := "data: " + `{"type":"content_block_start","index":0,"content_block":` + block + "}\n\n" +
		"data: " + `{"type":"message_delta","delta":{"stop_reason":"end_turn",` + container + `},"usage":{"output_tokens":1}}` + "\n\n"
	if _, err := s.Feed(nil, []byte(stream)); err != nil {
		t.Fatal(err)
	}
	if got := s.Observed().Kept; !reflect.DeepEqual(got, []call.Kept{file, box}) {
		t.Errorf("streamed: %+v", got)
	}
	plain := `{"type":"message","content":[{"type":"text","text":"hi"}],"container":null}`
	if got := (anthropic.Messages{}).Whole([]byte(plain), 0).Kept; got != nil {
		t.Errorf("nothing is kept: %+v", got)
	}
}
