// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/weirhq/weir/internal/sim"
)

const (
	// seedsEnv raises the number of seeds; `make soak` sets it.
	seedsEnv     = "WEIR_SIM_SEEDS"
	defaultSeeds = 300
	// Seeds below few are enough to come across everything.
	few   = 100
	steps = 2000
)

func seeds(t *testing.T, env string, most uint64) uint64 {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return most
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: %v", env, text, err)
	}
	return n
}

func TestSeedsKeepEveryInvariant(t *testing.T) {
	// BUD-1 to BUD-5, BUD-8 to BUD-10, KEY-7, RES-9, USE-3, RAT-4, CAP-1 to CAP-3, RUN-1, RUN-3, RAT-1, RES-1 to RES-5, RES-7, RES-8, RES-10,
	// BAL-2, BAL-3, BAL-6, ORD-1, ORD-2, ORD-4 and ENGINE 6, 7, 9, 13.
	t.Parallel()
	var all sim.Tally
	for seed := range seeds(t, seedsEnv, defaultSeeds) {
		tally, err := sim.RunTally(seed, steps)
		if err != nil {
			t.Fatal(err)
		}
		all.Add(&tally)
		if seed == few {
			cameAcross(t, &all)
		}
	}
	t.Log(all.String())
	if seeds(t, seedsEnv, defaultSeeds) < defaultSeeds {
		return
	}
	// BUD-1: every scope × window × metric × enforcement × narrowing.
	if n := len(all.Combined); n != sim.Combinations {
		t.Errorf("somebody was admitted under %d of %d kinds of budget", n, sim.Combinations)
	}
	if n := len(all.Refusing); n < sim.Refusals*8/10 {
		t.Errorf("somebody was refused by %d of %d kinds of budget", n, sim.Refusals)
	}
}

// cameAcross: a run that never meets a thing shows nothing about it.
func cameAcross(t *testing.T, all *sim.Tally) {
	t.Helper()
	for name, n := range map[string]int{
		"admitted": all.Admitted, "refused": all.Refused, "unavailable": all.Unavailable, "moved": all.Moved,
		"settled": all.Settled, "swept": all.Swept, "voided": all.Voided, "undone": all.Undone, "corrected": all.Corrected,
		"tombstones": all.Tombstones, "stale": all.Stale, "carried": all.Carried, "renewed": all.Renewed,
		"conflicts": all.Conflicts, "crashes": all.Crashes, "clock steps": all.ClockSteps, "changes": all.Changes, "funded": all.Funded,
		"adjusted": all.Adjusted, "notices": all.Notices, "shrunk": all.Shrunk, "looked": all.Looked, "warned": all.Warned,
		"raised": all.Amended[0], "reset": all.Amended[1], "seeded": all.Amended[2],
	} {
		if n < 10 {
			t.Errorf("%s: only %d times", name, n)
		}
	}
	for kind, n := range all.Mishaps {
		if n == 0 {
			t.Errorf("mishap %d never befell anybody", kind)
		}
	}
	for _, code := range []string{
		"apikey_inactive", "insufficient_balance", "model_not_found", "day_limit_reached", "seven_day_limit_reached", "thirty_day_limit_reached", "budget_exceeded", "user_limit_reached", "model_not_allowed", "max_output_tokens_exceeded",
		"api_key_rpm_exceeded", "api_key_tpm_exceeded", "api_key_concurrency_exceeded", "workspace_rpm_exceeded", "workspace_tpm_exceeded", "workspace_concurrency_exceeded", "rate_limited",
	} {
		if all.RefusedBy[code] == 0 {
			t.Errorf("nobody was refused by %s", code)
		}
	}
}

func TestTheSameSeedIsTheSameRun(t *testing.T) {
	for seed := range uint64(5) {
		first, err := sim.RunTally(seed, steps)
		if err != nil {
			t.Fatal(err)
		}
		second, err := sim.RunTally(seed, steps)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := first.String(), second.String(); a != b {
			t.Errorf("seed %d:\n%s\n%s", seed, a, b)
		}
	}
}
