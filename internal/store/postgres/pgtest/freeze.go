// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Freeze stops every process of the server where it is, as a machine that hangs
// does: connections stay open and nothing answers. Thaw lets it go on; the test's
// end does, too.
func (s *Server) Freeze(t testing.TB) (thaw func()) {
	t.Helper()
	process := s.server.Pid()
	if process == 0 {
		t.Fatal("the server does not run")
	}
	frozen := []int{process}
	if err := syscall.Kill(process, syscall.SIGSTOP); err != nil { // it starts no more
		t.Fatalf("stop the server: %v", err)
	}
	children, err := childrenOf(process)
	for _, pid := range children {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err == nil {
			frozen = append(frozen, pid)
		}
	}
	thaw = func() {
		for _, pid := range frozen {
			_ = syscall.Kill(pid, syscall.SIGCONT) // it may have ended
		}
		frozen = nil
	}
	t.Cleanup(thaw)
	if err != nil {
		t.Fatalf("find the server's processes: %v", err)
	}
	return thaw
}

func childrenOf(parent int) ([]int, error) {
	out, err := exec.CommandContext(context.Background(), "ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		return nil, err
	}
	var list []int
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) != 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		pid, err := strconv.Atoi(fields[0])
		if err != nil {
			return nil, err
		}
		list = append(list, pid)
	}
	if len(list) == 0 {
		return nil, errors.New(fmt.Sprint("process ", parent, " has no children"))
	}
	return list, nil
}
