// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/call"
	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/openai"
)

// TestAResponseTellsWhatItsProviderKeeps: DIS-8. Whole and at the end of a stream.
func TestAResponseTellsWhatItsProviderKeeps(t *testing.T) {
	const response = `"id":"resp_1","object":"response","model":"m","conversation":{"id":"conv_1"},"output":[
{"id":"rs_1","type":"reasoning","summary":[]},
{"id":"ci_1","type":"code_interpreter_call","code":"1","container_id":"cntr_1","status":"completed"},
{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"hi","annotations":[
{"type":"file_citation","file_id":"file_of_others"},{"type":"container_file_citation","file_id":"cfile_1","container_id":"cntr_1"}]}]}],
"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}`
	all := []call.Kept{
		{Kind: call.KeptResponse, ID: "resp_1"},
		{Kind: call.KeptConversation, ID: "conv_1"},
		{Kind: call.KeptItem, ID: "rs_1"},
		{Kind: call.KeptItem, ID: "ci_1"},
		{Kind: call.KeptContainer, ID: "cntr_1"},
		{Kind: call.KeptItem, ID: "msg_1"},
		{Kind: call.KeptContainer, ID: "cntr_1"},
		{Kind: call.KeptFile, ID: "cfile_1"},
	}
	unstored := []call.Kept{all[1], all[4], all[6], all[7]}
	for _, c := range []struct {
		name, event, members string
		want                 []call.Kept
	}{
		{"completed", "response.completed", `"status":"completed","store":true`, all},
		{"it does not say whether it is stored", "response.completed", `"status":"completed"`, all},
		{"at its bound", "response.incomplete", `"status":"incomplete","store":null`, all},
		{"not stored", "response.completed", `"store":false,"status":"completed"`, unstored},
		{"not ended", "response.in_progress", `"status":"in_progress"`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.ReplaceAll("{"+response+","+c.members+"}", "\n", "")
			if got := (openai.Responses{}).Whole([]byte(text), 0).Kept; !reflect.DeepEqual(got, c.want) {
				t.Errorf("whole: got %+v, want %+v", got, c.want)
			}
			s := openai.Responses{}.NewStream(wire.StreamOptions{})
			stream := `data: {"type":"response.created","response":{"id":"resp_1","status":"in_progress","output":[]}}` + "\n\n" +
				`data: {"type":"` + c.event + `","response":` + text + "}\n\n"
			if _, err := s.Feed(nil, []byte(stream)); err != nil {
				t.Fatal(err)
			}
			if got := s.Observed().Kept; !reflect.DeepEqual(got, c.want) {
				t.Errorf("streamed: got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestASpokenAnswerTellsItsID: DIS-8.
func TestASpokenAnswerTellsItsID(t *testing.T) {
	want := []call.Kept{{Kind: call.KeptAudio, ID: "audio_1"}}
	whole := `{"choices":[{"message":{"audio":{"id":"audio_1","data":"UklG","transcript":"hi"}},"finish_reason":"stop"}]}`
	if got := (openai.Chat{}).Whole([]byte(whole), 0).Kept; !reflect.DeepEqual(got, want) {
		t.Errorf("whole: %+v", got)
	}
	s := openai.Chat{}.NewStream(wire.StreamOptions{})
	stream := `data: {"choices":[{"delta":{"audio":{"id":"audio_1","transcript":"h"}}}]}` + "\n\n" + `data: {"choices":[{"delta":{"audio":{"transcript":"i"}}}]}` + "\n\n"
	if _, err := s.Feed(nil, []byte(stream)); err != nil {
		t.Fatal(err)
	}
	if got := s.Observed().Kept; !reflect.DeepEqual(got, want) {
		t.Errorf("streamed: %+v", got)
	}
}
