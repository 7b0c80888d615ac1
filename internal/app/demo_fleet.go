// SPDX-License-Identifier: Apache-2.0

//go:build unix

package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weirhq/weir/internal/child"
	"github.com/weirhq/weir/internal/config"
	"github.com/weirhq/weir/internal/store/postgres"
	"github.com/weirhq/weir/internal/store/postgres/local"
)

// demoPatience bounds the start and the end of one gateway.
const demoPatience = 30 * time.Second

// demoFleet is several gateways, a process each, on one PostgreSQL.
type demoFleet struct {
	program, folder, config string
	store                   string // its address
	described               string
	server                  *local.Server // nil: the store was given

	mu        sync.Mutex // guards processes
	processes []*child.Process
}

// newDemoFleet brings up the store, or takes the one that it is given.
func newDemoFleet(ctx context.Context, o DemoOptions, folder, file string) (*demoFleet, error) {
	f := &demoFleet{program: o.Program, folder: folder, config: file, store: o.Store, processes: make([]*child.Process, o.Replicas)}
	if f.store != "" {
		p := config.Process{Store: f.store}
		if _, ok := p.StoreURL(); !ok {
			return nil, errors.New("replicas share a PostgreSQL: its address begins with postgres://")
		}
		if err := postgres.CheckVacant(ctx, f.store); err != nil {
			if errors.Is(err, postgres.ErrNotVacant) {
				err = fmt.Errorf("%w; a demonstration wants an empty one, and empties it at its end", err)
			}
			return nil, fmt.Errorf("%s: %w", p.StoreName(), err)
		}
		f.described = p.StoreName() + ", which is yours"
		return f, nil
	}
	bin, err := local.Find()
	if err != nil {
		return nil, fmt.Errorf("%w, or give an empty database with --store postgres://…", err)
	}
	if f.server, err = local.Create(ctx, local.Options{Bin: bin, Apart: true}); err != nil {
		return nil, err
	}
	f.store = f.server.URL("postgres")
	f.described = "PostgreSQL from " + bin + ", durable defaults"
	return f, nil
}

// start starts all gateways at once.
func (f *demoFleet) start(ctx context.Context) (addresses []string, err error) {
	addresses = make([]string, len(f.processes))
	failed := make([]error, len(f.processes))
	var starting sync.WaitGroup
	for i := range f.processes {
		starting.Go(func() { addresses[i], failed[i] = f.launch(ctx, i, "") })
	}
	starting.Wait()
	return addresses, errors.Join(failed...)
}

// stateFolder of the first gateway is the configuration's: commands find its socket.
func (f *demoFleet) stateFolder(i int) string {
	if i == 0 {
		return f.folder
	}
	return filepath.Join(f.folder, demoName(i))
}

// launch starts one gateway and returns the address that it serves models at;
// listen, if set, is that address.
func (f *demoFleet) launch(ctx context.Context, i int, listen string) (address string, err error) {
	log, err := os.OpenFile(filepath.Join(f.folder, demoName(i)+".log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("open the log of %s: %w", demoName(i), err)
	}
	defer func() { _ = log.Close() }() // the process has its own
	c := exec.CommandContext(context.WithoutCancel(ctx), f.program, "serve", "-c", f.config, "--log-level", "warn")
	c.Args[0], c.Stderr = "weir", log
	c.Env = append(demoEnv(), config.EnvStateDir+"="+f.stateFolder(i))
	if listen != "" {
		c.Env = append(c.Env, config.EnvListen+"="+listen)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("start %s: %w", demoName(i), err)
	}
	process, err := child.Start(c, true, syscall.SIGKILL)
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	f.processes[i] = process
	f.mu.Unlock()
	told := make(chan string, 1)
	go readAddress(out, told)
	timer := time.NewTimer(demoPatience)
	defer timer.Stop()
	select {
	case address = <-told:
		return address, nil
	case <-process.Ended():
	case <-ctx.Done():
		return "", ctx.Err()
	case <-timer.C:
	}
	text, _ := os.ReadFile(log.Name()) // the reason, where it can be read
	return "", fmt.Errorf("%s does not run: %s", demoName(i), strings.TrimSpace(string(text)))
}

// readAddress passes on the address that a gateway prints, and reads the rest.
func readAddress(out io.Reader, told chan<- string) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "models"); ok {
			told <- strings.TrimSpace(rest)
			break
		}
	}
	_, _ = io.Copy(io.Discard, out) // ends with the process
}

// demoEnv is the environment without what would change a gateway.
func demoEnv() (list []string) {
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "WEIR_") {
			list = append(list, pair)
		}
	}
	return list
}

func (f *demoFleet) process(i int) *child.Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.processes[i]
}

// pid is the number of a gateway's process, also of one that was killed.
func (f *demoFleet) pid(i int) int { return f.process(i).Pid() }

// kill ends a gateway as a crash does.
func (f *demoFleet) kill(i int) error { return f.process(i).End(syscall.SIGKILL, demoPatience) }

// stop ends the gateways in order, and then the store.
func (f *demoFleet) stop(ctx context.Context) error {
	failed := make([]error, len(f.processes))
	var ending sync.WaitGroup
	for i := range f.processes {
		if p := f.process(i); p != nil {
			ending.Go(func() { failed[i] = p.End(syscall.SIGTERM, demoPatience) })
		}
	}
	ending.Wait()
	err := errors.Join(failed...)
	if f.server != nil {
		return errors.Join(err, f.server.Remove())
	}
	return errors.Join(err, postgres.Clear(ctx, f.store))
}
