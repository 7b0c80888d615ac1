// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/admin"
	"github.com/weirhq/weir/internal/admit"
	"github.com/weirhq/weir/internal/money"
	"github.com/weirhq/weir/internal/simulator"
)

// The look of a demonstration. Lines that are redrawn in place fit 80 columns:
// a terminal that wraps them would draw them twice.
const (
	demoFrame  = 80 * time.Millisecond
	demoLabel  = 12
	demoBar    = 28
	demoColumn = 62
	demoWrap   = 66
	clearToEnd = "\x1b[J"
	upLines    = "\x1b[%dF"
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	plainSteps = 5 // lines that show the fill where nothing can be redrawn
)

// tone is how a piece of text stands out.
type tone string

const (
	bold  tone = "\x1b[1m"
	dim   tone = "\x1b[2m"
	red   tone = "\x1b[31m"
	green tone = "\x1b[32m"
)

// demoView writes what a demonstration shows. Its own writer is locked: the
// watcher draws while the volley runs.
type demoView struct {
	live, color bool
	fleet       bool
	capUSD      string
	cap         money.Nanos

	mu    sync.Mutex
	out   io.Writer
	drawn int // lines that the next frame draws over
	step  int64
}

// demoState is what a moment of the volley looks like.
type demoState struct {
	capped, free               admit.KeyView
	running, answered, refused int
	freeAnswered               int
	gateways                   []demoGateway
}

// spent and held are the key's own of the day, decimal strings of dollars: the
// limits in its view begin with those of the workspace. The one that bounds it
// counts, if one does.
func spent(view admit.KeyView) string { return ownSpend(view).Used }

func held(view admit.KeyView) string { return ownSpend(view).Held }

func ownSpend(view admit.KeyView) admit.LimitView {
	own := admit.LimitView{Used: "0", Held: "0"}
	for _, l := range view.Limits {
		if l.Scope == "key" && l.Metric == "spend" && (own.ID == "" || l.Amount != "") {
			own = l
		}
	}
	return own
}

// amount reads a figure of the gateway's; one that cannot be read shows as nothing.
func amount(dollars string) money.Nanos {
	n, err := money.ParseSignedUSD(dollars)
	if err != nil {
		return 0
	}
	return n
}

func newDemoView(o DemoOptions, capUSD string) *demoView {
	return &demoView{live: o.Live, color: o.Color, fleet: o.Replicas > 1, capUSD: capUSD, cap: amount(capUSD), out: o.Stdout}
}

func (v *demoView) in(t tone, text string) string {
	if !v.color {
		return text
	}
	return string(t) + text + "\x1b[0m"
}

// print writes what nobody can be told has failed.
func (v *demoView) print(format string, args ...any) { _, _ = fmt.Fprintf(v.out, format, args...) }

func (v *demoView) title(replicas int) {
	text := "a cap that holds, and books that balance"
	if v.fleet {
		text = fmt.Sprintf("one budget on %d gateways, one of which is killed, and books that balance", replicas)
	}
	v.print("\n%s  %s\n", v.in(bold, "weir demo"), text)
}

func (v *demoView) heading(text string) { v.print("\n%s\n", v.in(bold, text)) }

// fact is one line: what, its description, and how long it took.
func (v *demoView) fact(name, text string, took time.Duration) {
	space := max(1, demoColumn-utf8.RuneCountInString(text))
	v.print("  %-*s%s%*s%s\n", demoLabel, name, text, space, "", v.in(dim, seconds(took)))
}

// more is a line without a time.
func (v *demoView) more(name, text string) { v.print("  %-*s%s\n", demoLabel, name, text) }

func seconds(d time.Duration) string { return fmt.Sprintf("%6.2f s", d.Seconds()) }

func (v *demoView) volley(requests, parallel int) {
	v.heading(fmt.Sprintf("%d chat completions over HTTP, %d at once, half of them streamed", requests, parallel))
	if v.live {
		v.print("%s", hideCursor)
	}
}

// frame draws a moment of the volley.
func (v *demoView) frame(s demoState) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.live {
		v.draw(s)
		return
	}
	if step := int64(amount(spent(s.capped))) * plainSteps / int64(v.cap); step > v.step && step <= plainSteps {
		v.step = step
		v.print("%s\n", v.lines(s)[0])
	}
}

// draw draws the lines of a moment over those of the last.
func (v *demoView) draw(s demoState) {
	v.erase()
	lines := v.lines(s)
	v.drawn = len(lines)
	v.print("%s\n", strings.Join(lines, "\n"))
}

// erase takes back the lines of the last moment.
func (v *demoView) erase() {
	if v.drawn > 0 {
		v.print(upLines+clearToEnd, v.drawn)
	}
	v.drawn = 0
}

func (v *demoView) lines(s demoState) []string {
	if v.fleet {
		return v.fleetLines(s)
	}
	return []string{v.cappedLine(s), v.freeLine(s)}
}

// settled draws the last moment, for good.
func (v *demoView) settled(s demoState, late int, took time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.draw(s)
	v.show()
	switch {
	case s.refused == 0:
		v.fact("", "the limit was not reached", took)
	case v.fleet:
		v.fact("", "a budget counts what runs at its worst case: nothing passes it", took)
	case late > 0:
		v.fact("", v.in(red, fmt.Sprintf("%d requests were admitted after a refusal", late)), took)
	default:
		v.fact("", "a cap counts what is settled: what ran when it was reached", took)
		v.more("", "completed, and no later request was admitted")
	}
}

// release gives the terminal back in mid-volley.
func (v *demoView) release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.show()
}

func (v *demoView) show() {
	if v.live {
		v.print("%s", showCursor)
	}
	v.drawn = 0
}

func (v *demoView) cappedLine(s demoState) string {
	at := amount(spent(s.capped))
	filled := int(min(int64(at)*demoBar/int64(v.cap), demoBar))
	color := green
	if at >= v.cap {
		color = red
	}
	bar := v.in(color, strings.Repeat("█", filled)) + v.in(dim, strings.Repeat("░", demoBar-filled))
	return fmt.Sprintf("  %-*s%s %s of $%s  %2d ok %s", demoLabel, demoCapped, bar, short(at), v.capUSD, s.answered, v.refused(s.refused))
}

func (v *demoView) refused(n int) string {
	text := fmt.Sprintf("%2d refused", n)
	if n == 0 {
		return v.in(dim, text)
	}
	return v.in(red, text)
}

func (v *demoView) freeLine(s demoState) string {
	at := amount(spent(s.free))
	note := "no cap"
	if s.running > 0 {
		note = fmt.Sprintf("no cap; %d requests running", s.running)
	}
	return fmt.Sprintf("  %-*s%-*s %s%s %2d ok", demoLabel, demoFree, demoBar, note, short(at), strings.Repeat(" ", len(" of $ ")+len(v.capUSD)), s.freeAnswered)
}

// short is an amount to the ten-thousandth of a dollar, cut: the exact sums
// follow in the books.
func short(n money.Nanos) string {
	return fmt.Sprintf("$%d.%04d", int64(n)/int64(money.Dollar), int64(n)%int64(money.Dollar)/100_000)
}

// wrap breaks text at spaces into lines of at most width characters.
func wrap(text string, width int) []string {
	var lines []string
	current := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case current == "":
			current = word
		case utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, current)
			current = word
		default:
			current += " " + word
		}
	}
	return append(lines, current)
}

// invite says how to go on.
func (v *demoView) invite(d *demo) {
	v.heading("It stays up: try it (Ctrl-C ends)")
	for _, g := range d.gateways {
		v.print(`
  curl %[1]s/v1/chat/completions \
    -H 'Authorization: Bearer %[2]s' -H 'Content-Type: application/json' \
    -d '{"model": "%[3]s", "messages": [{"role": "user", "content": "Hello"}]}'
`, g.base, d.keys[demoFree], demoModel)
	}
	v.print("\n")
	v.more("base URL", d.base()+"/v1")
	v.more("API key", d.keys[demoFree]+"  ("+demoFree+")")
	v.more("", d.keys[demoCapped]+"  ("+demoCapped+", refused until midnight UTC)")
	v.more("commands", "weir usage -c "+d.config)
	if v.fleet {
		v.more("", "weir replicas list -c "+d.config)
		v.more("", fmt.Sprintf("kill -9 %d, and then: weir replicas forget ID -c %s", d.fleet.pid(d.Replicas-1), d.config))
	}
	if d.first != nil {
		v.more("", "weir explain "+d.first.requestID+" -c "+d.config)
	}
	v.print("\n")
}

// refusal shows which request was refused first, why, and what its checks saw.
func (v *demoView) refusal(a *demoAnswer, explained *admin.RequestAnswer) {
	where := ""
	if v.fleet {
		where = ", on " + a.gateway.name
	}
	v.more("request", fmt.Sprintf("number %d, of %s%s: %s", a.number, a.key, where, v.in(red, fmt.Sprintf("%d %s", a.status, a.code))))
	for i, text := range wrap(a.message, demoWrap) {
		name := ""
		if i == 0 {
			name = "message"
		}
		v.more(name, text)
	}
	v.print("\n  %s\n", v.in(dim, checkLine("check", "amount", "used", "held", "wanted")+"verdict"))
	for i := range explained.Checks {
		c := &explained.Checks[i]
		verdict := v.in(green, c.Verdict)
		if c.Verdict != "pass" {
			verdict = v.in(red, c.Verdict)
		}
		sign := ""
		if c.Metric == "spend" {
			sign = "$"
		}
		v.print("  %s%s\n", checkLine(c.Name, seen(sign, c.Amount), seen(sign, c.Used), seen(sign, c.Held), seen(sign, c.Wanted)), verdict)
	}
}

// checkLine is what a check saw, up to its verdict.
func checkLine(name, amount, used, held, wanted string) string {
	return fmt.Sprintf("%-*s%12s%14s%12s%12s  ", demoLabel, name, amount, used, held, wanted)
}

func seen(sign, figure string) string {
	if figure == "" {
		return ""
	}
	return sign + figure
}

// books shows both sides of the account.
func (v *demoView) books(run *DemoRun, bill *simulator.Bill, verified *admin.VerifyAnswer, took time.Duration) {
	v.heading("The books")
	width := max(len(run.Ledger.String()), len(run.Bill.String()))
	v.more("ledger", fmt.Sprintf("$%-*s  %d requests charged, %d refused and charged nothing", width, run.Ledger, run.Charged-run.Swept, run.Refused))
	v.more("bill", fmt.Sprintf("$%-*s  %d requests served: %d + %d tokens, at their prices", width, run.Bill, bill.Requests, bill.Input, bill.Output))
	v.more("difference", fmt.Sprintf("%d nano-dollars", int64(run.Ledger-run.Bill)))
	if run.Swept > 0 {
		v.more("swept", fmt.Sprintf("$%-*s  %d of those charged at their worst case; the bill: $%s", width, run.SweptLedger, run.Swept, run.SweptBill))
	}
	v.fact("verify", fmt.Sprintf("%d counters recomputed from %d events, %d differ", verified.Counts.Counters, verified.Counts.Events, run.Differences), took)
}

func (v *demoView) verdict(run *DemoRun, took time.Duration) {
	v.print("\n")
	if run.Balanced {
		limit := "cap"
		if v.fleet {
			limit = "budget"
		}
		v.print("%s\n", v.in(green, fmt.Sprintf("The %s held and the books balance to the nano-dollar, %.1f s after the start.", limit, took.Seconds())))
		return
	}
	reasons := []string{}
	for _, r := range []struct {
		wrong bool
		text  string
	}{
		{run.Refused == 0, "nothing was refused: send more requests"},
		{run.Spared, "no gateway had enough to do to be killed: send more requests"},
		{run.Late > 0, fmt.Sprintf("%d requests were admitted after a refusal", run.Late)},
		{run.Over, "the budget was passed"},
		{run.Wrong > 0, fmt.Sprintf("%d requests are charged something else than they cost", run.Wrong)},
		{run.Ledger != run.Bill, "ledger and bill differ"},
		{run.Differences > 0, "counters and events differ"},
	} {
		if r.wrong {
			reasons = append(reasons, r.text)
		}
	}
	if len(reasons) == 0 {
		reasons = append(reasons, "requests are missing from the books")
	}
	v.print("%s\n", v.in(red, "It does not hold: "+strings.Join(reasons, "; ")+"."))
}
