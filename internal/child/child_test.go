// SPDX-License-Identifier: Apache-2.0

//go:build unix

package child_test

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/child"
)

const patience = 20 * time.Second

func TestAProcessEndsWhenItIsTold(t *testing.T) {
	p, err := child.Start(exec.CommandContext(t.Context(), "sleep", "600"), true, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Ended():
		t.Fatal("it ended by itself")
	default:
	}
	if group, err := syscall.Getpgid(p.Pid()); err != nil || group != p.Pid() {
		t.Errorf("it is in group %d: %v", group, err)
	}
	if err := p.End(syscall.SIGTERM, patience); err != nil {
		t.Error(err)
	}
	if p.Err() == nil {
		t.Error("a signal ended it, and it knows nothing of that")
	}
	if err := p.End(syscall.SIGTERM, patience); err != nil {
		t.Errorf("told again: %v", err)
	}
}

func TestOneThatDoesNotStopIsKilled(t *testing.T) {
	c := exec.CommandContext(t.Context(), "sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := child.Start(c, true, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := p.End(syscall.SIGTERM, 50*time.Millisecond); err == nil || !strings.Contains(err.Error(), "did not stop") {
		t.Errorf("error %v", err)
	}
	<-p.Ended()
}

func TestWhatCannotBeStartedIsAnError(t *testing.T) {
	if _, err := child.Start(exec.CommandContext(t.Context(), "/no/such/program"), false, syscall.SIGKILL); err == nil {
		t.Error("it was started")
	}
}

// TestMain is also the parent that is killed: with PARENT set it starts a program,
// says its number, and waits.
func TestMain(m *testing.M) {
	if os.Getenv("PARENT") == "" {
		os.Exit(m.Run())
	}
	p, err := child.Start(exec.Command("sleep", "600"), true, syscall.SIGKILL)
	if err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString(strconv.Itoa(p.Pid()) + "\n")
	<-p.Ended()
}
