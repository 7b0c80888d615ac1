// SPDX-License-Identifier: Apache-2.0

package ledger

import "iter"

// Reservation is the durable record of an admitted request: what it holds on
// which counters until it is settled. Settlement derives nothing anew, so a
// change of zone, membership or limit in mid-flight moves no charge (ENGINE 8).
type Reservation struct {
	ID         ID
	Workspace  string
	Process    string
	At         int64 // of the admission; the windows of every charge
	Place      int32
	ExpiresAt  int64
	Generation int64
	Subjects   Subjects
	// Model, Provider, Price and Candidate are of the candidate that holds it.
	Model, Provider, Price string
	Candidate              int32
	// Worst is charged when nobody settles (RES-5).
	Worst Amounts
	Holds []Hold
	// Flows are what it did to buckets and sliding windows, in order.
	Flows []Flow
	// Checks are the figures that the decision saw, in order (ADM-7).
	Checks   []CheckRecord
	Note     []byte
	ClientID string
	// Tombstone marks a row that only makes a late commit of its id fail.
	Tombstone bool
	// EndedAt is set on what a call record gives back (Call.Reservation).
	EndedAt int64
	// SlotsFreed: the process died and the gauges were released (ENGINE 9).
	SlotsFreed bool
}

// Hold is one counter that a reservation holds or will charge.
type Hold struct {
	Counter        Counter
	Kind           Kind
	Wants, Charges Metric
	// Held lies in the counter until the end; Taken was taken at admission, or at
	// a move, of a bucket's or a sliding window's units; Limit was their amount and
	// At the instant.
	Held, Taken, Limit, At int64
	// Level is the bucket's deficit after the taking, plus its Returned; of a
	// sliding window its Restarts.
	Level int64
	// Model and Provider are set when the hold comes from a candidate's own
	// checks: it is then charged for that candidate's attempts alone (RES-2). A
	// counter may stand twice among the holds of a request that was moved.
	Model, Provider string
	// Zone and ZoneEpoch start a days counter's row if this is its first charge.
	Zone      string
	ZoneEpoch uint32
	// SkipMissing as the check had it; Skipped: an attempt was left out for it.
	SkipMissing, Skipped bool
	// Alarm is nil for a check that never warns.
	Alarm *Alarm
}

// CheckRecord is what one check saw, kept for explain and simulate (ENGINE 14).
type CheckRecord struct {
	Counter            Counter
	Kind               Kind
	Mode               Mode
	Wants              Metric
	Code               string
	Name, Scope        string
	Origin             string
	Amount, Credit     int64
	Used, Held, Wanted int64
	ResetsAt           int64
	Span               int32
	Pass               bool
}

// EventKind says what an event is for.
type EventKind uint8

// The kinds of event. A reservation ends with exactly one of the first four.
const (
	EventSettled EventKind = iota + 1
	EventSwept
	EventVoided
	EventUndone
	EventCorrection
	EventTopUp
	EventCredit
	EventAdjustment
	EventRaise
	EventReset
	EventSeed
)

var eventKindNames = [...]string{
	EventSettled: "settled", EventSwept: "swept", EventVoided: "voided", EventUndone: "undone",
	EventCorrection: "correction", EventTopUp: "top_up", EventCredit: "credit", EventAdjustment: "adjustment",
	EventRaise: "raise", EventReset: "reset", EventSeed: "seed",
}

// String is the kind's word in stores and reports.
func (k EventKind) String() string {
	if int(k) < len(eventKindNames) {
		return eventKindNames[k]
	}
	return "unknown"
}

// ParseEventKind reads what String wrote; ok is false for anything else.
func ParseEventKind(s string) (k EventKind, ok bool) {
	for i, name := range eventKindNames {
		if name == s && name != "" {
			return EventKind(i), true
		}
	}
	return 0, false
}

// Event is one append-only entry of the ledger; (Workspace, ID, Attempt, Kind)
// is unique. Charges name every counter that it moved and by how much.
type Event struct {
	ID                     ID
	Workspace              string
	Attempt                int32
	Kind                   EventKind
	At                     int64 // of the decision that wrote it
	Place                  int32
	AdmittedAt             int64
	Subjects               Subjects
	Model, Provider, Price string
	Spend, Tokens          int64
	Reason, Actor          string
	Detail                 []byte
	Charges                []Charge
	// Flows are a correction's. Those of a request that ends are in its call.
	Flows []CounterFlow
}

// Charge is what an event added to one counter's settled amount (or, for funds,
// to its credits), in the counter's own metric.
type Charge struct {
	Counter Counter
	Kind    Kind
	Amount  int64
	Credit  bool
	// Raise: the amount was added to the window's limit, not to its use. No closing
	// keeps it, so the event stays as long as the window's row.
	Raise bool
	// At is an instant of the local date that the charge belongs to; 0: the
	// event's AdmittedAt.
	At int64
}

// Call is one request's record in the call log: admitted and ended, or refused.
type Call struct {
	ID         ID
	Workspace  string
	Key        string
	Outcome    string // settled, swept, voided, undone, refused
	Code       string // of a refusal
	At         int64  // of the decision
	Place      int32
	EndedAt    int64
	Generation int64
	Model      string
	Provider   string
	Price      string
	Subjects   Subjects
	Worst      Amounts
	Spend      int64
	Tokens     int64
	Checks     []CheckRecord
	Holds      []Hold
	Flows      []Flow // the end's too
	ClientID   string
	Note       []byte // of the admission
	End        []byte // of the settlement
}

// Page is what a book loaded for one batch: working copies that it puts in the
// place of its own only after the commit. Reservations in it are never changed,
// only replaced by changed copies.
type Page struct {
	// Generations of the workspaces that the batch names.
	Generations map[string]int64
	// Counters holds every counter that Needs named and that has a row; Open
	// every open reservation that Needs named, tombstones too.
	Counters map[Counter]*State
	Open     map[ID]*Reservation
	// Ended says how a reservation ended that is no longer open: looked up for
	// the ids that Open lacks.
	Ended map[ID]Ending
}

// Ending is how a reservation ended (the Kind of its event of attempt 0 that is
// no correction), and how many events of kind EventCorrection it has had since.
type Ending struct {
	Kind        EventKind
	Corrections int32
	// Swept is the reservation as a sweep ended it, Call.Reservation of its call
	// record. With it, who comes late and knows an older state of it, or its id
	// alone, corrects what was charged; without, what his own copy says.
	Swept *Reservation
}

// Reservation is the reservation that a call record was written at the end of:
// all but what only an open one needs, its process and expiry.
func (c *Call) Reservation() *Reservation {
	return &Reservation{
		ID: c.ID, Workspace: c.Workspace, At: c.At, Place: c.Place, Generation: c.Generation, Subjects: c.Subjects,
		Model: c.Model, Provider: c.Provider, Price: c.Price, Worst: c.Worst, Holds: c.Holds, Flows: c.Flows, Checks: c.Checks,
		Note: c.Note, ClientID: c.ClientID, EndedAt: c.EndedAt,
	}
}

// Changes is what one batch did, for the book to store in its transaction:
// Opened, then Replaced, then Closed, since one batch may do all three to a row.
// Counters lists every counter that changed, in key order.
type Changes struct {
	Counters []Counter
	Opened   []*Reservation // new rows
	Replaced []*Reservation // rows whose body changed (move, renew)
	Closed   []*Reservation // rows to remove
	Events   []Event
	Calls    []Call // of Closed, in their order, but for tombstones; stored in the transaction
	Refused  []Call // refused ones; may be stored later, bounded (ENGINE 3)
	Quarters []QuarterSum
	Outbox   []Notice // effects of the charges; stored in the transaction
}

// Empty tells whether there is nothing to store but refusal records.
func (c *Changes) Empty() bool {
	return len(c.Counters) == 0 && len(c.Opened) == 0 && len(c.Replaced) == 0 && len(c.Closed) == 0 &&
		len(c.Events) == 0 && len(c.Calls) == 0
}

// checkLists are the common list of checks and each candidate's.
func (op *Op) checkLists() iter.Seq[[]Check] {
	return func(yield func([]Check) bool) {
		if !yield(op.Checks) {
			return
		}
		for i := range op.Candidates {
			if !yield(op.Candidates[i].Checks) {
				return
			}
		}
	}
}

// Needs calls counter for each counter that the operation reads or charges and
// open for the reservation whose row it claims. check is the check behind the
// counter, nil when a hold names it.
func (op *Op) Needs(counter func(c Counter, check *Check), open func(ID)) {
	for list := range op.checkLists() {
		for i := range list {
			if list[i].Kind != KindPolicy {
				counter(list[i].Counter, &list[i])
			}
			if list[i].Kind == KindRoster {
				counter(list[i].Marker, &list[i])
			}
		}
	}
	if op.Reservation != nil {
		for i := range op.Reservation.Holds {
			counter(op.Reservation.Holds[i].Counter, nil)
		}
		open(op.Reservation.ID)
	} else if op.Verb == Admit && op.Again || op.Verb == Undo || op.Verb == Fund || op.Verb == Amend {
		open(op.ID)
	}
}
