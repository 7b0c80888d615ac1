// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main_test

import (
	"context"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weirhq/weir/internal/simulator"
)

// refusalPatience is within how long an admission is refused while the store
// cannot be written (RES-8): not a time that clients feel, but no hang either.
const refusalPatience = 10 * time.Second

// play is what happens to the process in a round, each scene at a random moment
// of the load. Every round has each of them; their order is the seed's.
func (w *tortured) play() {
	scenes := []func(){
		w.killed, w.killed, w.killed, w.stopped, w.reconfigured, w.reconfigured,
		func() { w.full("the file system is full", w.disk.fill) },
		func() { w.full("files may not grow", w.stunt) },
	}
	w.random.Shuffle(len(scenes), func(i, j int) { scenes[i], scenes[j] = scenes[j], scenes[i] })
	for _, scene := range scenes {
		w.pause(200*time.Millisecond, 900*time.Millisecond)
		w.alive()
		scene()
	}
	w.pause(200*time.Millisecond, 900*time.Millisecond)
	w.alive()
}

// killed ends the process at any instant, perhaps soon after its start.
func (w *tortured) killed() {
	w.kill()
	w.start()
	if w.random.IntN(3) == 0 {
		w.pause(time.Millisecond, 60*time.Millisecond)
		w.kill()
		w.start()
	}
}

func (w *tortured) stopped() {
	w.stop()
	w.start()
}

// reconfigured changes limits, keys and the zone while requests run (STO-2).
func (w *tortured) reconfigured() {
	w.write(w.settings.change(w.random))
	if w.random.IntN(2) == 0 { // else the watcher sees the file
		_ = w.process.command.Process.Signal(syscall.SIGHUP) // one that has died is seen by the next scene
	}
	w.counts["reconfigurations"]++
}

// full: the store cannot be written. Admission says 503 at once and nothing is
// sent; when there is room again, everything is settled (RES-8). A process that
// is killed meanwhile, or stopped, leaves no charge behind.
func (w *tortured) full(what string, fill func() (undo func(), ok bool)) {
	undo, ok := fill()
	if !ok {
		w.counts["left out: "+what]++
		return
	}
	w.counts[what]++
	empty := sync.OnceFunc(undo)
	w.await("503 while "+what, 10*time.Second, func() bool { return w.probe() == http.StatusServiceUnavailable })
	w.await("/readyz red while "+what, 10*time.Second, func() bool { return w.get("/readyz") == http.StatusServiceUnavailable })
	began := time.Now()
	if status := w.probe(); status != http.StatusServiceUnavailable || time.Since(began) > refusalPatience {
		w.t.Errorf("while %s, an admission got %d after %s", what, status, time.Since(began))
	}
	if status := w.get("/healthz"); status != http.StatusOK {
		w.t.Errorf("while %s, /healthz says %d", what, status)
	}
	w.pause(100*time.Millisecond, 800*time.Millisecond)
	w.alive()
	switch w.random.IntN(4) {
	case 0:
		w.kill()
		if p, err := w.tryStart(); err == nil { // it may find room, or say that there is none
			w.process = p
			w.where.Store(&p.address)
			w.pause(50*time.Millisecond, 300*time.Millisecond)
			w.alive()
		}
	case 1:
		w.counts["terms without room"]++
		w.endWithoutRoom(empty)
	}
	empty()
	if w.process == nil {
		w.start()
	}
	w.await("an admission after there is room again", 20*time.Second, func() bool { return w.probe() == http.StatusOK })
}

// endWithoutRoom stops the program while the store cannot be written: there is
// room again soon, or not before the end. What it cannot settle then is in the
// spool, or, where that cannot be written either, told by the exit code and swept
// by the next start.
func (w *tortured) endWithoutRoom(empty func()) {
	if w.random.IntN(3) == 0 {
		if err := w.end(syscall.SIGTERM); err != nil {
			w.died("ended without room")
		}
		return
	}
	timer := time.AfterFunc(time.Duration(w.random.IntN(1500))*time.Millisecond, empty)
	defer timer.Stop()
	if err := w.end(syscall.SIGTERM); err != nil {
		w.t.Errorf("stopped while there was no room for some time, the program ended with %v\n%s", err, w.log.tail())
	}
}

// probe asks for a completion that costs little, and gives its status; 0: no
// answer.
func (w *tortured) probe() int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	body := `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.address()+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+secretOf("free"))
	request.Header.Set("User-Agent", probeTag)
	return status(request)
}

// get gives the status of a path without a key; 0: no answer.
func (w *tortured) get(path string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.address()+path, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	return status(request)
}

func status(request *http.Request) int {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // its status tells all
	return response.StatusCode
}

// probeTag is the tag of every probe: the provider answers them all.
const probeTag = "probe"

// settle waits until nothing is in flight: at the provider, and in the books of
// the process that runs, without a restart.
func (w *tortured) settle() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), idlePatience)
	defer cancel()
	if err := w.provider.Await(ctx, func(t simulator.Totals) bool { return t.InFlight == 0 }); err != nil {
		w.t.Fatalf("requests stay at the provider: %v", err)
	}
	books := w.connect()
	defer books.close()
	w.await("everything is settled", idlePatience, func() bool { return books.held() == "" && w.running(books) == 0 })
	if report := books.verify(); !report.Balanced {
		w.t.Errorf("the books do not balance before a restart: %+v", report.Differences)
	}
}

// readOnly: a store that cannot be written is refused at the start, in one
// sentence that names it.
func (w *tortured) readOnly() {
	w.t.Helper()
	attributes, restore := w.disk.protect()
	defer restore()
	if attributes == nil {
		w.counts["left out: a read-only store"]++
		return
	}
	command := w.command()
	command.SysProcAttr = attributes
	var said strings.Builder
	timer := time.AfterFunc(startPatience, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	_, err := launch(command, &said)
	var exit *exec.ExitError
	switch {
	case err == nil:
		_ = command.Process.Kill() // it should not run at all
		_ = command.Wait()
		w.t.Errorf("weir serve started on a read-only store")
	case !asExit(err, &exit) || exit.ExitCode() != 1:
		w.t.Errorf("on a read-only store weir serve ended with %v", err)
	case !strings.Contains(said.String(), w.store) || strings.Count(said.String(), "\n") > 2:
		w.t.Errorf("on a read-only store weir serve said %q", said.String())
	}
	w.counts["a read-only store"]++
}
