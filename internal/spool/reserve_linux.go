// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"os"
	"syscall"
)

// keepSize is FALLOC_FL_KEEP_SIZE: blocks are set apart, the length stays.
const keepSize = 1

func allocate(f *os.File, size int64) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = syscall.Fallocate(int(fd), keepSize, 0, size) })
	if err != nil {
		return err
	}
	return failed
}
