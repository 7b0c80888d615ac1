// SPDX-License-Identifier: Apache-2.0

package shelf

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"

	"github.com/weirhq/weir/internal/store"
)

// LockFile takes the lock that keeps a second process out, or answers ErrLocked; the system releases
// it with the process.
func LockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	flags := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY)
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{})
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return nil, fmt.Errorf("lock %s: %w", path, store.ErrLocked)
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}
