// SPDX-License-Identifier: Apache-2.0

package call_test

import (
	"fmt"
	"testing"

	"github.com/weirhq/weir/internal/call"
)

// USE-1: of each count the last value given wins.
func TestToolCallsAreCountsByName(t *testing.T) {
	var a, b call.ToolCalls
	a.Set(call.WebSearch, 1)
	a.Set(call.CodeExecution, 2)
	a.Set(call.WebSearch, 3)
	b.Set(call.CodeExecution, 2)
	b.Set(call.WebSearch, 3)
	if a != b || a.Of(call.WebSearch) != 3 || a.Of(call.FileSearch) != 0 || len(a.List()) != 2 || a.List()[0].Name != call.CodeExecution {
		t.Errorf("%v and %v", a, b)
	}
	var full call.ToolCalls
	for i := range call.MaxTools {
		if !full.Set(fmt.Sprint("tool", i), 1) {
			t.Fatalf("no place for tool %d", i)
		}
	}
	if full.Set("one more", 1) || full.Set("", 1) || !full.Set("tool3", 9) || full.Of("tool3") != 9 || len(full.List()) != call.MaxTools {
		t.Errorf("%v", full)
	}
}

// USE-4.
func TestACostInSmallerUnitsIsADecimal(t *testing.T) {
	if got := call.Decimal(87_750, 10); got != "87750e-10" {
		t.Error(got)
	}
}
