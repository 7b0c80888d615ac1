// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// diskBytes is the size of the small file system that a store is put on: its
// write-ahead log may take 80 MB, what is set apart for the spool 8.
const diskBytes = "size=160m"

// disk is where the store of a round is: a small file system of its own where
// the test may mount one, else a folder.
type disk struct {
	t       *testing.T
	path    string
	mounted bool
}

func newDisk(t *testing.T, path string) *disk {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	d := &disk{t: t, path: path}
	d.mounted = unix.Mount("tmpfs", path, "tmpfs", 0, diskBytes) == nil
	t.Cleanup(func() {
		if !d.mounted {
			return
		}
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return d
}

// fill takes all the room that is left, undo gives it back; not ok: it is not a
// disk of our own.
func (d *disk) fill() (undo func(), ok bool) {
	if !d.mounted {
		return nil, false
	}
	filler := filepath.Join(d.path, "filler")
	f, err := os.Create(filler)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // what does not fit is not written
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	return func() {
		if err := os.Remove(filler); err != nil {
			d.t.Error(err)
		}
	}, true
}

// protect makes the store read-only for a process with the attributes given;
// nil: this user cannot. restore undoes it.
func (d *disk) protect() (attributes *syscall.SysProcAttr, restore func()) {
	if d.mounted {
		if err := unix.Mount("", d.path, "", unix.MS_REMOUNT|unix.MS_RDONLY, diskBytes); err != nil {
			d.t.Fatalf("remount: %v", err)
		}
		return &syscall.SysProcAttr{}, func() {
			if err := unix.Mount("", d.path, "", unix.MS_REMOUNT, diskBytes); err != nil {
				d.t.Fatalf("remount: %v", err)
			}
		}
	}
	if os.Geteuid() == 0 {
		return nil, func() {} // permissions do not bind it
	}
	modes := func(file, folder os.FileMode) {
		files, err := filepath.Glob(filepath.Join(d.path, "*"))
		if err != nil {
			d.t.Fatal(err)
		}
		for _, path := range files {
			if err := os.Chmod(path, file); err != nil {
				d.t.Fatal(err)
			}
		}
		if err := os.Chmod(d.path, folder); err != nil {
			d.t.Fatal(err)
		}
	}
	modes(0o400, 0o500)
	return &syscall.SysProcAttr{}, func() { modes(0o600, 0o700) }
}

// stunt lets no file of the process grow any more (RLIMIT_FSIZE): to it, the
// disk is full. It needs no rights. undo does nothing to a process that has gone.
func (w *tortured) stunt() (undo func(), ok bool) {
	pid := w.process.command.Process.Pid
	var before unix.Rlimit
	err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &before)
	if err == nil {
		err = unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1, Max: before.Max}, nil)
	}
	if err != nil {
		w.t.Logf("prlimit: %v", err)
		return nil, false
	}
	return func() {
		if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &before, nil); err != nil && !errors.Is(err, unix.ESRCH) {
			w.t.Errorf("prlimit: %v", err)
		}
	}, true
}

func asExit(err error, exit **exec.ExitError) bool { return errors.As(err, exit) }
