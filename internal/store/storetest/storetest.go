// SPDX-License-Identifier: Apache-2.0

// Package storetest is the contract of package store as tests, run whole
// against every driver.
package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/store"
)

// records are the roles of what has happened, but for reading it.
type records interface {
	store.Verifiable
	store.Retainable
	store.Keeper
}

// Store is every role at once.
type Store interface {
	store.Book
	store.Sweepable
	store.Objects
	store.Secrets
	store.Log
	records
	Close() error
}

// Options are what the contract needs to say when it opens a store.
type Options struct {
	Clock       clock.Clock
	AcceptClock bool
	OnClockStep func(store.ClockStep)
	// BeforeSweep, if set, looks at the store before the start sweeps what is
	// open. Its error is Open's.
	BeforeSweep func(Store) error
}

// Driver opens stores. The same place opened again is the same store, if the
// driver Keeps anything; an empty directory is a new one.
//
// Shared: any number of them may be open at one place at once. Such a store
// sweeps nothing at its start: what is open may be another one's.
type Driver struct {
	Keeps  bool
	Shared bool
	// Ways are those of reaching the store that are tested; none: all.
	Ways []string
	Open func(ctx context.Context, place string, o Options) (Store, error)
	// Killed makes, in an empty directory, what a kill at this instant would leave
	// of the store that is open at the place.
	Killed func(place, into string) error
}

// Noon is when the tests' clock starts: 2026-03-10 12:00:05 UTC.
var Noon = time.Date(2026, 3, 10, 12, 0, 5, 0, time.UTC).UnixMicro()

// ways are how the same tests reach a book.
var ways = []struct {
	name    string
	tellers int
	faulty  bool
	apart   bool // each teller has a store of its own, at one place
}{
	{"OneTeller", 1, false, false},
	{"TwoTellers", 2, false, false},
	{"AFaultyStore", 2, true, false},
	{"TwoStores", 2, false, true},
	{"TwoFaultyStores", 2, true, true},
}

// Run holds a driver against the contract.
func Run(t *testing.T, d Driver) {
	t.Helper()
	for _, way := range ways {
		if way.apart && !d.Shared || len(d.Ways) > 0 && !slices.Contains(d.Ways, way.name) {
			continue
		}
		t.Run(way.name, func(t *testing.T) {
			run := func(name string, test func(*testing.T, *desk)) {
				t.Run(name, func(t *testing.T) {
					c := clock.NewManual(Noon)
					place, o := t.TempDir(), Options{Clock: c}
					first := d.openAt(t, place, o)
					desk := newDesk(t, first, c, way.tellers, way.faulty)
					if way.apart {
						desk.add(t, d.openAt(t, place, o), way.tellers)
					}
					test(t, desk)
				})
			}
			run("ConcurrentHoldsNeverPassALimit", concurrentHolds)
			run("ARefusedRequestConsumesNothing", refusalIsFree)
			run("SettlingTwiceChargesOnce", settleTwice)
			run("EveryEndingReleasesWhatWasHeld", endings)
			run("GenerationMakesOlderOperationsStale", staleGeneration)
			run("ALateSettleCorrectsASweep", lateSettle)
			run("ALateSettleOfAnOldCopyCorrectsWhatWasSwept", lateOldCopy)
			run("AMovedReservationSettlesByAnOldCopy", movedSettle)
			run("AnExpiredReservationIsListedAndSwept", expired)
			run("ATopUpSentTwiceIsBookedOnce", topUpTwice)
			run("ACorrectionSentTwiceIsBookedOnce", adjustTwice)
			run("VerifySeesOneInstantWhileOthersWrite", consistentView)
			run("AnAmendmentSentTwiceIsBookedOnce", amendTwice)
			run("ResetsAndRaisesUnbalanceNothing", resetWhileOthersWrite)
			run("ALevelIsAnnouncedOnce", noticesOnce)
			run("ARosterIsNeverPassed", rosterBounded)
			run("PruningDisturbsNoRequest", pruneWhileOthersWrite)
			run("AReportHasWhatWasAnswered", reportWhileOthersWrite)
		})
	}
	run := func(name string, test func(*testing.T, Driver)) {
		t.Run(name, func(t *testing.T) { test(t, d) })
	}
	run("AnIdIsNeverHeldTwice", heldTwice)
	run("TombstonesStopALateAdmission", tombstones)
	run("FailedBatchesChangeNothing", failedBatch)
	run("DriversAgreeOnRandomMixes", randomMixes)
	run("TimeStandsStillOrIsBelieved", clockSteps)
	run("AZoneChangeRebuildsDays", zoneRebuild)
	run("ObjectsHaveVersionsAndConflicts", objectVersions)
	run("SinceTellsWhatChanged", sinceGeneration)
	run("RetiredObjectsComeBack", retiredComeBack)
	run("ChangesAreAllOrNothing", changeAtomic)
	run("SecretsAndTheirGrace", secretsGrace)
	run("CredentialsAndTokensAreApart", credentials)
	run("AuditIsListedNewestFirst", auditList)
	run("TheCallLogFindsCalls", callLog)
	run("RefusalRecordsAreBounded", refusalRecords)
	run("ReadsSeeWhatWasAnsweredBefore", readsFollow)
	run("UsageByKeyModelAndLocalDay", usage)
	run("AReportIsTheSumOfAllEvents", reportsAgree)
	run("ReportsOutliveEvents", reportsOutliveEvents)
	run("LateUsageCountsOnce", lateUsageCounts)
	run("AClosedStoreIsUnavailable", closed)
	run("WhatIsOlderThanTheCutGoes", pruneByAge)
	run("WhatIsGoneIsAnsweredMissing", prunedMissing)
	run("ARequestIsClosedWholeOrNotAtAll", prunedWhole)
	run("AZoneChangeRebuildsDaysBesideWholeDays", prunedRebuild)
	run("VerifyPassesAfterEveryStep", pruneRandomly)
	keeps(run, d)
}

// keeps is what holds for what a store keeps beside its books, and, if it outlives
// a process, after that.
func keeps(run func(string, func(*testing.T, Driver)), d Driver) {
	run("WhatProvidersKeepIsItsWorkspacesAlone", keptApart)
	run("WhatProvidersKeepIsFoundAtOnce", keptAtOnce)
	run("WhatProvidersKeepIsForgotten", keptUntil)
	if d.Keeps {
		outlives(run, d.Shared)
	}
}

// outlives is what holds for stores that outlive a process.
func outlives(run func(string, func(*testing.T, Driver)), shared bool) {
	run("ReopeningGivesTheSameState", reopen)
	run("AClockFarBehindRefusesTheStart", clockBehind)
	run("WhatProvidersKeepOutlivesTheProcess", keptThroughKills)
	if shared {
		run("AStartLeavesWhatIsOpen", startLeaves)
		return
	}
	run("AStartSweepsWhatIsOpen", startSweeps)
	run("AKillLosesNothingThatWasAnswered", killedAnywhere)
	run("PruningGoesOnAfterAKill", pruneThroughKills)
}

func (d Driver) open(t *testing.T, o Options) Store {
	t.Helper()
	return d.openAt(t, t.TempDir(), o)
}

func (d Driver) openAt(t *testing.T, place string, o Options) Store {
	t.Helper()
	s, err := d.Open(t.Context(), place, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}
