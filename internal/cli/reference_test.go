// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"testing"

	"github.com/weirhq/weir/internal/cli"
)

func TestTheDocumentationIsTheGrammars(t *testing.T) {
	text, err := cli.Reference()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "../../docs/cli.md", text)
}
