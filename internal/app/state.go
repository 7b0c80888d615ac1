// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirhq/weir/internal/store"
	"github.com/weirhq/weir/internal/store/shelf"
)

const (
	// stateName begins the names of the files of a process on a shared store.
	stateName     = "weir"
	processSuffix = ".process"
	// maxProcesses bounds what is read of who had the folder before.
	maxProcesses = 1 << 16
)

// state is the folder of a process on a shared store. The lock on its process file
// says that whoever had it before is dead.
type state struct {
	folder string
	file   *os.File
	before []string // the processes that may have left something open
}

// takeState makes the folder this process's until release.
func takeState(folder string) (*state, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make state_dir, the folder of this process's spool: %w", err)
	}
	s := &state{folder: folder}
	var err error
	if s.file, err = shelf.LockFile(filepath.Join(folder, stateName+processSuffix)); err != nil {
		if errors.Is(err, store.ErrLocked) {
			return nil, fmt.Errorf("the folder %s is another process's: give each process on a shared store a state_dir of its own: %w", folder, store.ErrLocked)
		}
		return nil, fmt.Errorf("take state_dir, the folder of this process's spool: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(s.file, maxProcesses))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read who had state_dir before: %w", err), s.release())
	}
	s.before = strings.Fields(string(text))
	return s, nil
}

func (s *state) spoolPath() string { return filepath.Join(s.folder, stateName+spoolSuffix) }

// write names the process that has the folder now, before it admits anything.
func (s *state) write(process string) error {
	line := []byte(process + "\n")
	if _, err := s.file.WriteAt(line, 0); err != nil {
		return fmt.Errorf("write who has state_dir: %w", err)
	}
	if err := errors.Join(s.file.Truncate(int64(len(line))), s.file.Sync()); err != nil {
		return fmt.Errorf("write who has state_dir: %w", err)
	}
	return nil
}

// release lets the next process have the folder; nil has none.
func (s *state) release() error {
	if s == nil || s.file == nil {
		return nil
	}
	file := s.file
	s.file = nil
	if err := file.Close(); err != nil {
		return fmt.Errorf("give back state_dir: %w", err)
	}
	return nil
}
