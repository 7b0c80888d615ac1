// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/money"
)

// yellow is what is held.
const yellow tone = "\x1b[33m"

// fleetLines are a moment of several gateways: the budget, the other key, and what
// became of the requests on each.
func (v *demoView) fleetLines(s demoState) []string {
	lines := []string{v.budgetLine(s), v.freeLine(s)}
	for i := range s.gateways {
		lines = append(lines, v.gatewayLine(&s.gateways[i]))
	}
	return lines
}

func (v *demoView) budgetLine(s demoState) string {
	used, holds := amount(spent(s.capped)), amount(held(s.capped))
	filled := min(int64(used)*demoBar/int64(v.cap), demoBar)
	reached := min((int64(used)+int64(holds))*demoBar/int64(v.cap), demoBar)
	bar := v.in(green, strings.Repeat("█", int(filled))) + v.in(yellow, strings.Repeat("▒", int(reached-filled))) +
		v.in(dim, strings.Repeat("░", int(demoBar-reached)))
	return fmt.Sprintf("  %-*s%s %s + %s held of $%s", demoLabel, demoCapped, bar, short(used), short(holds), v.capUSD)
}

func (v *demoView) gatewayLine(g *demoGateway) string {
	state := g.base
	if g.down {
		state = v.in(red, fmt.Sprintf("%-*s", demoBar, "killed"))
	}
	text := fmt.Sprintf("  %-*s%-*s %3d ok %s", demoLabel, g.name, demoBar, state, g.ok, v.refused(g.refused))
	switch {
	case g.cut > 0:
		return text + v.in(red, fmt.Sprintf("  %d cut, sent again", g.cut))
	case g.running > 0:
		return text + v.in(dim, fmt.Sprintf("  %d running", g.running))
	}
	return text
}

// event tells, once and for good, what happened in the middle of the volley.
func (v *demoView) event(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.live {
		v.erase()
	}
	v.print("  %s\n", v.in(red, text))
}

// left shows what a killed gateway left open.
func (v *demoView) left(g *demoGateway, open int64, heldUSD string) {
	v.heading("What the killed gateway left")
	v.more(g.name, fmt.Sprintf("%d requests open, and nobody to settle them: $%s of the budget", open, heldUSD))
	v.more("", "stay held for them, for nobody else to spend")
	v.more("", "slots come back 45 s after its last sign of life, the money when its")
	v.more("", "holds end, with `weir replicas forget`, or when it starts again, as now:")
}

// recovered shows what a killed gateway did when it was started again.
func (v *demoView) recovered(g *demoGateway, swept int, charged money.Nanos, took time.Duration) {
	v.fact(g.name, fmt.Sprintf("started again; %d charged their worst case, $%s", swept, charged), took)
}
