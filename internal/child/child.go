// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package child runs programs that end with this one: in order when they are told
// to, and on Linux also when this process is killed.
//
// It is for demonstrations and tests; a gateway starts no programs.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// Process is a program that was started. It is safe for concurrent use.
type Process struct {
	command *exec.Cmd
	ended   chan struct{}
	failed  atomic.Pointer[error]
}

// Start starts a command. apart keeps a signal to this process's group, as Ctrl-C
// is, away from it; orphaned is the signal that it gets when this process dies,
// where the system can do that.
func Start(c *exec.Cmd, apart bool, orphaned syscall.Signal) (*Process, error) {
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	c.SysProcAttr.Setpgid = apart
	tie(c.SysProcAttr, orphaned)
	p := &Process{command: c, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel takes the thread that started a program for its parent.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			if err := c.Wait(); err != nil {
				p.failed.Store(&err)
			}
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	return p, nil
}

// Pid is the process's number, which another may have once it has ended.
func (p *Process) Pid() int { return p.command.Process.Pid }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err is how the process ended: nil for exit code 0, and while it runs.
func (p *Process) Err() error {
	if err := p.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// End sends a signal and waits until the process has ended, however that went.
// One that has not after patience is killed, which is an error.
func (p *Process) End(signal os.Signal, patience time.Duration) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.command.Path, err)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
	}
	err := p.command.Process.Kill()
	if err == nil {
		<-p.ended
	}
	return errors.Join(fmt.Errorf("%s did not stop within %s", p.command.Path, patience), err)
}
