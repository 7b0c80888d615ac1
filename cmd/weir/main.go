// SPDX-License-Identifier: Apache-2.0

// Command weir is the gateway and everything that administers it.
package main

import (
	"os"

	"github.com/weirhq/weir/internal/cli"
)

func main() { cli.Main(os.Args) }
