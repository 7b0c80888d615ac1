// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package frame

import "os"

// Flush brings what was written to a file to the disk.
func Flush(f *os.File) error { return f.Sync() }
