// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirhq/weir/internal/ledger"
)

// EventKind says what an event of a script is.
type EventKind uint8

// The kinds of event.
const (
	Arrive EventKind = iota // a client sends a request
	Mishap                  // the next batches of a replica go wrong
	Crash                   // a replica dies, and comes back later
	Step                    // the book's clock jumps
	Drift                   // a replica's clock jumps
	Change                  // an operator changes something in the configuration
	Pay                     // a workspace is topped up
	Amend                   // a limit is raised, reset or seeded
	Adjust                  // an ended request is corrected
	Look                    // somebody reads the limits of a key
	eventKinds
)

// Event is one thing that happens to the system from outside. Its meaning is in
// it alone, so that a script stays one when others are dropped.
type Event struct {
	At        int64 // microseconds since the run began
	Kind      EventKind
	Replica   int
	Workspace int
	// Amount is a step, a drift or a pause in microseconds, a payment in
	// nano-dollars, or what a change draws its value from.
	Amount int64
	Mishap MishapKind
	// Count is of batches that a mishap befalls, what a reset means, or the sign of
	// an adjustment.
	Count  int
	Entry  ledger.EventKind // of an amendment
	Change ChangeKind
	Request
}

// Request is the script of one request: the client's side and the provider's.
type Request struct {
	Key, Model  int
	TextBytes   int64
	OutputBound int64 // -1: the client sends none
	// LatencyMicros until the answer's end; GoneMicros until the client leaves, 0
	// never.
	LatencyMicros, GoneMicros int64
	Ending                    EndingKind
	// CachedPermille of the input was read from a cache.
	CachedPermille int64
	// User is whom it names as its user, 0 nobody; Tags are its tags, one a bit.
	User, Tags int
	// InputPermille and OutputPermille are real use in thousandths of what was
	// held: under, equal, over.
	InputPermille, OutputPermille int64
	// Failover is the model to move to when the first provider fails; -1: none.
	Failover int
}

// EndingKind says how a provider's answer ends.
type EndingKind uint8

// The endings.
const (
	EndsOK         EndingKind = iota
	EndsFailed                // an error, no output
	EndsCut                   // the provider broke off after some output
	EndsUnreported            // whole, but no usage in it
	EndsUnsent                // it could not be sent
	EndsNever                 // nobody hears of its end
	endingKinds
)

// MishapKind says what goes wrong between a replica and the book.
type MishapKind uint8

// The mishaps.
const (
	Delayed    MishapKind = iota // reaches the book late: others go first
	AnswerLost                   // applied, the answer is lost
	BatchLost                    // not applied, and nobody can tell
	Failed                       // not applied, and the book says so
	Late                         // given up by the replica, applied later
	Twice                        // applied, the answer lost, and delivered once more later
	LockedOut                    // the book answers nobody for a while
	mishapCount
)

func kindNames() [eventKinds]string {
	return [eventKinds]string{"arrive", "mishap", "crash", "step", "drift", "change", "pay", "amend", "adjust", "look"}
}

func endingNames() [endingKinds]string {
	return [endingKinds]string{"ok", "failed", "cut", "unreported", "unsent", "never"}
}

func mishapNames() [mishapCount]string {
	return [mishapCount]string{"delayed", "answer lost", "batch lost", "failed", "late", "twice", "locked out"}
}

// String is one line of a printed script.
func (e *Event) String() string {
	head := fmt.Sprintf("%13.6fs %-6s", float64(e.At)/1e6, kindNames()[e.Kind])
	switch e.Kind {
	case Arrive:
		return fmt.Sprintf("%s r%d w%d key %d model %d bytes %d bound %d latency %s gone %s %s use %d/%d ‰ cached %d ‰ failover %d user %d tags %d", head, e.Replica, e.Workspace,
			e.Key, e.Model, e.TextBytes, e.OutputBound, span(e.LatencyMicros), span(e.GoneMicros), endingNames()[e.Ending],
			e.InputPermille, e.OutputPermille, e.CachedPermille, e.Failover, e.User, e.Tags)
	case Mishap:
		return fmt.Sprintf("%s r%d %s, %d batches, %s", head, e.Replica, mishapNames()[e.Mishap], e.Count, span(e.Amount))
	case Change:
		return fmt.Sprintf("%s w%d key %d %s (%d)", head, e.Workspace, e.Key, changeNames()[e.Change], e.Amount)
	case Pay, Adjust:
		return fmt.Sprintf("%s r%d w%d %d × %d", head, e.Replica, e.Workspace, e.Amount, e.Count)
	case Look:
		return fmt.Sprintf("%s r%d w%d key %d user %d tags %d", head, e.Replica, e.Workspace, e.Key, e.User, e.Tags)
	case Amend:
		return fmt.Sprintf("%s r%d w%d key %d %s %d (%d)", head, e.Replica, e.Workspace, e.Key, e.Entry, e.Amount, e.Count)
	default:
		return fmt.Sprintf("%s r%d %s", head, e.Replica, span(e.Amount))
	}
}

func span(micros int64) time.Duration { return time.Duration(micros) * time.Microsecond }

// script is a run: who takes part, what happens, and for how long.
type script struct {
	seed     uint64
	steps    int
	replicas int
	// shape draws the configuration that the run begins with.
	shape  uint64
	events []Event
	// shared: the book is one for many processes.
	shared bool
	// open opens the book that is driven beside the model; nil: none is.
	open func() (Peer, error)
}

const (
	micro  = int64(1)
	milli  = 1000 * micro
	second = 1000 * milli
	minute = 60 * second
	hour   = 60 * minute

	workspaces = 2
	keys       = 3 // of each workspace
)

// draw makes the script of a seed. A run of so many steps never needs more
// events than that.
func draw(seed uint64, steps int) *script {
	random := rand.New(rand.NewPCG(seed, 1))
	s := &script{seed: seed, steps: steps, replicas: 1 + random.IntN(4), shape: random.Uint64()}
	// Seeds differ in how busy and how troubled they are, and not all of them
	// trouble the clock: most rules can be checked sharper without.
	pace := []int64{20 * milli, 300 * milli, 3 * second}[random.IntN(3)]
	trouble, jumps := random.IntN(4), random.IntN(3)
	// Some begin shortly before a month, or a week, is over.
	at := []int64{0, 0, 18 * hour, (23*24 + 18) * hour}[random.IntN(4)]
	for range max(1, steps/4) {
		at += random.Int64N(2 * pace)
		if random.IntN(150) == 0 {
			at += random.Int64N(9 * hour)
		}
		if random.IntN(600) == 0 {
			at += random.Int64N(10 * 24 * hour)
		}
		s.events = append(s.events, s.event(random, at, trouble, jumps))
	}
	return s
}

func (s *script) event(random *rand.Rand, at int64, trouble, jumps int) Event {
	e := Event{At: at, Replica: random.IntN(s.replicas), Workspace: random.IntN(workspaces)}
	e.Key = random.IntN(keys)
	switch n := random.IntN(1000); {
	case n < 30*trouble:
		e.Kind, e.Mishap, e.Count = Mishap, MishapKind(random.IntN(int(mishapCount))), 1+random.IntN(4)
		e.Amount = random.Int64N([]int64{20 * milli, 500 * milli, 20 * second}[random.IntN(3)])
	case n < 100 && n >= 100-5*trouble:
		e.Kind, e.Amount = Crash, random.Int64N(40*second)
	case n < 105:
		e.Kind, e.Amount = Drift, random.Int64N(10*second)-5*second
	case n < 105+4*jumps:
		e.Kind, e.Amount = Step, stepOf(random)
	case n < 160:
		e.Kind, e.Change, e.Amount = Change, ChangeKind(random.IntN(int(changeKinds))), random.Int64N(1000)
	case n < 185:
		e.Kind, e.Amount = Pay, 1+random.Int64N(2_000_000_000)
	case n < 215:
		e.Kind, e.Amount, e.Count = Amend, random.Int64N(5000), random.IntN(3)
		e.Entry = [...]ledger.EventKind{ledger.EventRaise, ledger.EventReset, ledger.EventSeed}[random.IntN(3)]
	case n < 235:
		e.Kind, e.User, e.Tags = Look, random.IntN(users), random.IntN(4)
	case n < 245:
		e.Kind, e.Amount, e.Count = Adjust, random.Int64N(50_000_000), 1-2*random.IntN(2)
	default:
		e.Kind, e.Request = Arrive, requestOf(random, e.Key)
	}
	return e
}

// stepOf is a jump of the book's clock, within and beyond the bounds of ENGINE 7.
func stepOf(random *rand.Rand) int64 {
	most := []int64{second, 10 * second, 12 * second, 10 * minute, 2 * hour, 30 * hour}[random.IntN(6)]
	return random.Int64N(2*most) - most
}

func requestOf(random *rand.Rand, key int) Request {
	r := Request{
		Key: key, Model: drawModel(random), TextBytes: random.Int64N(6000), OutputBound: -1, Failover: -1,
		LatencyMicros: random.Int64N([]int64{30 * milli, 2 * second, 20 * second, 3 * minute}[random.IntN(4)]),
		InputPermille: 1000, OutputPermille: 1000,
	}
	if random.IntN(3) > 0 {
		r.OutputBound = 1 + random.Int64N(2000)
	}
	if random.IntN(8) == 0 {
		r.GoneMicros = 1 + random.Int64N(2*r.LatencyMicros+2)
	}
	if random.IntN(3) == 0 {
		r.Ending = EndingKind(random.IntN(int(endingKinds)))
	}
	if random.IntN(3) > 0 {
		r.InputPermille, r.OutputPermille = random.Int64N(1400), random.Int64N(1400)
	}
	if random.IntN(4) == 0 {
		r.CachedPermille = random.Int64N(1001)
	}
	if random.IntN(3) > 0 {
		r.User = random.IntN(users)
	}
	if random.IntN(3) == 0 {
		r.Tags = random.IntN(4)
	}
	if random.IntN(6) == 0 {
		r.Failover = drawModel(random)
	}
	return r
}

// drawModel asks for a model that does not exist now and then only.
func drawModel(random *rand.Rand) int {
	if random.IntN(25) == 0 {
		return models - 1
	}
	return random.IntN(models - 1)
}
