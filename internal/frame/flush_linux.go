// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"errors"
	"os"
	"syscall"
)

// Flush brings what was written to a file to the disk. Where the length stays it
// waits for the content alone (fdatasync).
func Flush(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	failed := syscall.EINTR
	for errors.Is(failed, syscall.EINTR) {
		err = raw.Control(func(fd uintptr) { failed = flush(int(fd)) })
		if err != nil {
			return err
		}
	}
	if failed != 0 {
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: failed}
	}
	return nil
}

func flush(fd int) syscall.Errno {
	_, _, errno := syscall.Syscall(syscall.SYS_FDATASYNC, uintptr(fd), 0, 0)
	return errno
}
