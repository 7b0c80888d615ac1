// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"testing"

	"github.com/weirhq/weir/internal/wire"
	"github.com/weirhq/weir/internal/wire/anthropic"
)

// TestAVersionTakesTheModelsPlace: SPEC section 9 (Vertex), DIS-6. Every other byte stays.
func TestAVersionTakesTheModelsPlace(t *testing.T) {
	const version = `"anthropic_version":"v"`
	r := wire.Rewrite{Model: "b", OutputBound: 9, Version: "v"}
	for in, want := range map[string]string{
		`{"model":"a","max_tokens":5}`:                            `{` + version + `,"max_tokens":5}`,
		` { "max_tokens" : 50 , "model" : "a" , "stream":true }`:  ` {` + version + `, "max_tokens" : 9 , "stream":true }`,
		`{"max_tokens":5,"model":"a"}`:                            `{` + version + `,"max_tokens":5}`,
		`{"anthropic_version":"mine","model":"a","max_tokens":5}`: `{"anthropic_version":"mine","max_tokens":5}`,
	} {
		if got, err := (anthropic.Messages{}).Rewrite([]byte(in), r); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", in, got, err, want)
		}
	}
	const counted = `{` + version + `,"model":"b","messages":[]}`
	if got, err := (anthropic.CountTokens{}).Rewrite([]byte(`{"model":"a","messages":[]}`), r); err != nil || string(got) != counted {
		t.Errorf("counting: %s, %v, want %s", got, err, counted)
	}
}
