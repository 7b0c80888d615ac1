// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shelf

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/internal/store"
)

// LockFile takes the lock that keeps a second process out, or answers ErrLocked. It lies in a file of
// its own: SQLite's locks on the database come and go with each transaction, and
// on some systems the two sorts of lock would meet. The kernel releases it with
// the process, however that ends; the file stays.
func LockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("lock %s: %w", path, store.ErrLocked)
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}
