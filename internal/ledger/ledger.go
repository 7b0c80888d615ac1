// SPDX-License-Identifier: Apache-2.0

// Package ledger decides: whether a request may run, what it holds while it
// runs, and what it is charged at its end.
//
// It is one deterministic state machine. Batch takes what a book has loaded (a
// Page), a list of operations and one instant, and returns a result for each
// operation and the changes that the book must store in the same transaction.
// There is no clock, no I/O, no goroutine and no randomness in it, so the same
// function serves admission, verification, explanation and simulation.
//
// It is not for storing (store/...), for gathering batches (teller) or for
// building operations out of keys and models (admit).
package ledger

import (
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/window"
)

// Bounds of one operation. An operation past them is a programming error of
// the caller and is refused whole.
const (
	MaxChecks     = 256
	MaxCandidates = 8
	MaxAttempts   = 64
)

// Metric is what a limit counts.
type Metric uint8

// The metrics. Spend is in nano-dollars, the others are whole numbers. Input is
// the input estimate alone: TPM asks for it at admission and is charged Tokens.
// Uncached are the tokens without cache reads: a check that leaves those out asks
// for Tokens or Input at admission and charges Uncached (USE-3).
const (
	MetricNone Metric = iota
	Spend
	Tokens
	Input
	Requests
	Slots
	Uncached
)

// String is the metric's word in the API: spend, tokens, requests, concurrency.
func (m Metric) String() string {
	switch m {
	case Spend:
		return "spend"
	case Tokens, Input, Uncached:
		return "tokens"
	case Requests:
		return "requests"
	case Slots:
		return "concurrency"
	case MetricNone:
		return "none"
	default:
		return "unknown"
	}
}

// Amounts is one value for each metric. Spend is in nano-dollars.
type Amounts struct {
	Spend, Tokens, Input, Requests, Slots, Uncached int64
}

// Of returns the amount of one metric; 0 for MetricNone.
func (a Amounts) Of(m Metric) int64 {
	switch m {
	case Spend:
		return a.Spend
	case Tokens:
		return a.Tokens
	case Input:
		return a.Input
	case Requests:
		return a.Requests
	case Slots:
		return a.Slots
	case Uncached:
		return a.Uncached
	case MetricNone:
		return 0
	default:
		return 0
	}
}

// negative tells whether any amount is below zero.
func (a Amounts) negative() bool {
	return min(a.Spend, a.Tokens, a.Input, a.Requests, a.Slots, a.Uncached) < 0
}

// Counter is the full key of one counter row. Window is the start of a fixed
// window in Unix microseconds and 0 for every other kind.
type Counter struct {
	Workspace string
	Limit     string
	Epoch     uint32
	Subject   string
	Window    int64
}

// Less orders counters by their keys: the order in which books lock them.
func (c Counter) Less(d Counter) bool {
	switch {
	case c.Workspace != d.Workspace:
		return c.Workspace < d.Workspace
	case c.Limit != d.Limit:
		return c.Limit < d.Limit
	case c.Epoch != d.Epoch:
		return c.Epoch < d.Epoch
	case c.Subject != d.Subject:
		return c.Subject < d.Subject
	default:
		return c.Window < d.Window
	}
}

// Kind says how a counter keeps time.
type Kind uint8

// The kinds. Policy has no counter: it refuses by what was worked out before
// the step, at its place in the published order (ORD-2).
const (
	KindPolicy Kind = iota + 1
	KindFixed
	KindDays
	KindBucket
	KindGauge
	KindFunds
	KindSliding
	KindRoster
)

// Mode says how a check admits (SPEC section 5).
type Mode uint8

// The modes: Track never refuses; Observe refuses when settled >= amount;
// Reserve refuses when settled + held + wanted > amount; Take is the
// all-or-nothing of runtime limits.
const (
	Track Mode = iota + 1
	Observe
	Reserve
	Take
)

// Check is one limit that applies to one request, with the amount that its
// workspace's snapshot gave it: counters hold sums, never limits (ENGINE 13).
type Check struct {
	Counter Counter
	Kind    Kind
	Mode    Mode
	// Wants is asked for at admission, Charges is charged at settlement.
	Wants, Charges Metric
	// Amount is the limit, in the metric's unit. For KindPolicy: 0 refuses
	// always, else it refuses from that instant on (a key's expires_at).
	Amount int64
	// Credit is what a funds check may go below zero by, in nano-dollars.
	Credit int64
	// Span is the number of local days that a days check sums: 1, 7 or 30.
	Span int32
	// Zone and ZoneEpoch belong to days checks: a counter row of an older
	// epoch is rebuilt from its quarters before it is read (CAP-3).
	Zone      *time.Location
	ZoneEpoch uint32
	// Window names the window of a fixed check. A sliding one has its Length alone,
	// 1 to 86,400 s in whole milliseconds.
	Window window.Spec
	// SkipMissing: an attempt whose usage nobody reported charges nothing here
	// (RES-3).
	SkipMissing bool
	// WarnPercent are a fixed check's warning thresholds, ascending, 1 to 100. A
	// fixed check that tracks an amount above zero is a soft limit, which warns
	// without any (BUD-5).
	WarnPercent []uint8
	// Marker is the row of the member that a roster check admits; its Subject is
	// the member. Counter counts the members and has no subject.
	Marker Counter
	// Code is the refusal. Name, Scope and Origin are words for people: the
	// limit's name, whose it is, and where it was declared (EFF-1).
	Code                fault.Code
	Name, Scope, Origin string
}

// Candidate is one model that could serve the request, with what it would cost.
type Candidate struct {
	Model, Provider, Price string
	// Wants is held and taken. Worst is what a sweep charges: the whole worst
	// case where less is held of it (BUD-10); nothing set: Wants.
	Wants, Worst Amounts
	// Free: the price is zero in every part. A spent cap or budget never
	// refuses it; funds do (PRC-4).
	Free   bool
	Checks []Check
}

// Subjects says whose request it is. Empty strings are absent.
type Subjects struct {
	Key, Plan, User, Team, Project string
	Tags                           []string
}

// Verb is what an operation does.
type Verb uint8

// The operations of the state machine (ENGINE 1).
const (
	Admit Verb = iota + 1
	Move
	Settle
	Void
	Undo
	Renew
	Sweep
	Fund
	Adjust
	Read
	Amend
	// FreeSlots releases the gauges of a reservation whose process died, once; what
	// else it holds stays held (ENGINE 9).
	FreeSlots
)

// Op is one operation. Which fields it needs depends on Verb.
type Op struct {
	Verb      Verb
	ID        ID
	Workspace string
	// Generation of the snapshot that Checks were built from; an older one than
	// the store's is answered Stale. 0 is never stale (settlements).
	Generation int64
	// Again marks an operation that is sent a second time because the first
	// one's outcome is unknown: its id is looked up first (ENGINE 6).
	Again bool
	// Process names who holds the reservation; HoldMicros how long it is valid.
	Process    string
	HoldMicros int64

	Subjects   Subjects    // Admit
	Checks     []Check     // Admit, Move, Read: in the published order; Fund, Amend
	Candidates []Candidate // Admit, Move: already ordered
	// Note is kept with the reservation and the call log; the ledger does not
	// look into it.
	Note []byte
	// Quiet: a refusal is not recorded, because the caller submits the admission
	// again, smaller (BUD-10, on_short: shrink).
	Quiet bool
	// ClientID is the client's own request id: a label that may repeat (ERR-4).
	ClientID string

	// Reservation is the one that the last answer carried: Move, Settle, Void,
	// Undo, Renew, Sweep, FreeSlots; Adjust builds it from the call record.
	Reservation *Reservation
	Settlement  *Settlement // Settle, Void, Undo
	Entry       *Entry      // Fund, Adjust, Amend
}

// Settlement is how a request ended. Note goes to the call log.
type Settlement struct {
	Attempts []Attempt
	Outcome  string
	Note     []byte
}

// Attempt is one usage that is charged: a provider's answer (RES-2). Model and
// Provider are the candidate's: they find the limits that are narrowed to it.
// Amounts are never negative.
type Attempt struct {
	Model, Provider, Price         string
	Spend, Tokens, Input, Uncached int64
	// Estimated: nobody reported the usage.
	Estimated bool
	Detail    []byte // usage as normalised, marks; opaque here
}

// Entry moves funds (Fund), corrects a settled request (Adjust) or changes what
// open windows have used (Amend). Amounts are signed for adjustments only.
type Entry struct {
	// Kind is what Fund books: EventTopUp, EventCredit or EventAdjustment; or
	// Amend: EventRaise, EventReset or EventSeed.
	Kind EventKind
	// Number is how many corrections the request had when the caller looked: of
	// two adjustments with one number the second is answered Already, so that
	// sending one again books it once.
	Number  int32
	Amounts Amounts
	Reason  string
	Actor   string
}

// Verdict is the short answer to an operation.
type Verdict uint8

// The verdicts. Stale: the operation was built from an older snapshot than the
// store's. Carry: it named other windows than the batch's instant lies in, or
// another state of its reservation than the book's; submit Op.Carried again.
// Already: the reservation has ended, or the admission was called off.
// Missing: nothing is known of the reservation. Invalid: the operation breaks a
// bound. After Stale, Carry, Missing and Invalid nothing has changed.
const (
	Admitted Verdict = iota + 1
	Refused
	Stale
	Carry
	Done
	Already
	Missing
	Invalid
)

// Result answers one operation. At and Place order every decision of a counter.
type Result struct {
	Verdict   Verdict
	At        int64
	Place     int32
	Candidate int // chosen, or the one whose refusal is the answer
	Refusal   *Refusal
	Readings  []Reading // the common checks, then the candidate's own
	// Reservation is the row as it is now, or as it was when it ended.
	Reservation *Reservation
}

// Refusal says which check failed and when the request could pass.
type Refusal struct {
	Index   int // in Readings
	Check   *Check
	Reading Reading
	// WaitMicros is the time until this request would pass every runtime limit
	// and rule that stands against it now (ERR-2); -1: waiting does not help.
	WaitMicros int64
}

// Reading is what one check saw at admission, all in the check's unit.
type Reading struct {
	Check *Check
	// Amount is the limit that counted: the check's, and what its window was
	// raised by (BUD-9).
	Amount int64
	// Used is settled use in the window, Held what open reservations hold.
	Used, Held, Wanted int64
	Pass               bool
	// WaitMicros until this check alone would pass; -1: not by waiting.
	WaitMicros int64
	// ResetsAt is when the window ends or the use is next less; 0: never.
	ResetsAt int64
	// Reason: "", "held" (only held amounts are in the way) or
	// "larger_than_limit" (RUN-2).
	Reason string
}

// Remaining is what is left of the amount, never below zero.
func (r Reading) Remaining() int64 {
	left := saturatingSub(r.Amount, saturatingAdd(r.Used, r.Held))
	if r.Check.Kind == KindFunds {
		left = saturatingSub(r.Check.Credit, saturatingAdd(r.Used, r.Held))
	}
	return max(0, left)
}
