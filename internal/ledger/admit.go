// SPDX-License-Identifier: Apache-2.0

package ledger

// admit tries the candidates in order; the first for which all checks pass is
// admitted, and only it is charged (ENGINE 1). A refusal writes nothing.
func (b *batch) admit(op *Op) Result {
	if _, ended := b.page.Ended[op.ID]; ended || b.page.Open[op.ID] != nil {
		return Result{Verdict: Invalid} // an id is used once
	}
	if !op.named(b.at) {
		return Result{Verdict: Carry}
	}
	chosen, result := b.choose(op, nil)
	switch result.Verdict {
	case Admitted:
	case Refused:
		b.refuse(op, &result)
		return result
	default:
		return result
	}
	r := b.open(op, chosen, result.Readings)
	result.Reservation = r
	b.changes.Opened = append(b.changes.Opened, r)
	b.page.Open[r.ID] = r
	return result
}

// lookUp answers an operation whose first sending had an unknown outcome.
func (b *batch) lookUp(op *Op) (Result, bool) {
	r := b.page.Open[op.ID]
	if r != nil && !r.Tombstone && r.Workspace == op.Workspace {
		chosen := int(r.Candidate)
		return Result{Verdict: Admitted, Reservation: r, Candidate: chosen, Readings: op.recall(r, chosen)}, true
	}
	if _, ended := b.page.Ended[op.ID]; ended || r != nil {
		return Result{Verdict: Already}, true
	}
	return Result{}, false
}

// recall gives the readings of the first sending, as its reservation keeps them.
func (op *Op) recall(r *Reservation, chosen int) []Reading {
	if chosen >= len(op.Candidates) || len(r.Checks) != len(op.Checks)+len(op.Candidates[chosen].Checks) {
		return nil
	}
	readings := make([]Reading, len(r.Checks))
	for i := range r.Checks {
		check := &r.Checks[i]
		readings[i] = Reading{
			Amount: check.Amount, Used: check.Used, Held: check.Held, Wanted: check.Wanted,
			ResetsAt: check.ResetsAt, Pass: check.Pass,
		}
		if i < len(op.Checks) {
			readings[i].Check = &op.Checks[i]
		} else {
			readings[i].Check = &op.Candidates[chosen].Checks[i-len(op.Checks)]
		}
	}
	return readings
}

// choose evaluates the common checks with each candidate. moved is the
// reservation that a move hands on; nil at admission.
//
// The refusal is the first allowed candidate's (ORD-4), its wait the soonest of
// all (ERR-2). Without candidates (no such model) the common checks alone are
// read: one of them is the policy check that refuses.
func (b *batch) choose(op *Op, moved *Reservation) (int, Result) {
	candidates := op.Candidates
	if len(candidates) == 0 {
		candidates = []Candidate{{}}
	}
	var answer Result
	soonest := int64(-1)
	for i := range candidates {
		c := &candidates[i]
		result := Result{Verdict: Admitted, Candidate: i}
		result.Readings = make([]Reading, 0, len(op.Checks)+len(c.Checks))
		b.evaluate(op.Checks, c, moved, &result)
		b.evaluate(c.Checks, c, moved, &result)
		if result.Refusal == nil {
			if len(op.Candidates) == 0 {
				return 0, Result{Verdict: Invalid}
			}
			return i, result
		}
		result.Verdict = Refused
		if w := result.Refusal.WaitMicros; w >= 0 && (soonest < 0 || w < soonest) {
			soonest = w
		}
		if answer.Refusal == nil || answer.disallowed(len(op.Checks)) && !result.disallowed(len(op.Checks)) {
			answer = result
		}
	}
	if answer.Refusal.WaitMicros >= 0 {
		answer.Refusal.WaitMicros = soonest
	}
	return 0, answer
}

// disallowed: it was a policy of the candidate's own that refused it.
func (r *Result) disallowed(common int) bool {
	return r.Refusal.Index >= common && r.Refusal.Check.Kind == KindPolicy
}

// evaluate reads each check of a list, in order, the failed ones too: explain
// shows them all. The first that fails is the refusal; its wait is the longest
// of all runtime limits that stand against the request (ERR-2).
func (b *batch) evaluate(list []Check, c *Candidate, moved *Reservation, result *Result) {
	for i := range list {
		r := b.reading(&list[i], c.Wants, c.Free, moved)
		result.Readings = append(result.Readings, r)
		if r.Pass {
			continue
		}
		if result.Refusal == nil {
			result.Refusal = &Refusal{
				Index: len(result.Readings) - 1, Check: &list[i], Reading: r, WaitMicros: r.WaitMicros,
			}
		} else if list[i].Mode == Take {
			result.Refusal.WaitMicros = longerWait(result.Refusal.WaitMicros, r.WaitMicros)
		}
	}
}

// longerWait is the longer of two waits; -1, not by waiting, is the longest.
func longerWait(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return max(a, b)
}

// open charges the chosen candidate and builds its reservation.
func (b *batch) open(op *Op, chosen int, readings []Reading) *Reservation {
	c := &op.Candidates[chosen]
	r := &Reservation{
		ID: op.ID, Workspace: op.Workspace, Process: op.Process,
		At: b.at, Place: b.place, ExpiresAt: b.at + op.HoldMicros, Generation: op.Generation,
		Subjects: op.Subjects, Model: c.Model, Provider: c.Provider, Price: c.Price,
		Candidate: int32(chosen), Worst: c.worst(), Checks: recordChecks(readings), Note: op.Note, ClientID: op.ClientID,
	}
	b.flows = make([]Flow, 0, flowing(op.Checks)+flowing(c.Checks))
	r.Holds = b.takeAll(op.Checks, c, false, make([]Hold, 0, len(op.Checks)+len(c.Checks)))
	r.Holds = b.takeAll(c.Checks, c, true, r.Holds)
	r.Flows = b.flows
	return r
}

// flowing counts the checks that take from a bucket or a window.
func flowing(list []Check) (n int) {
	for i := range list {
		if list[i].Kind.flows() {
			n++
		}
	}
	return n
}

// worst is what a sweep of the candidate's reservation charges.
func (c *Candidate) worst() Amounts {
	if c.Worst == (Amounts{}) {
		return c.Wants
	}
	return c.Worst
}

// refuse records why. An operation sent again leaves a tombstone, on which a
// late commit of its first sending fails (ENGINE 6).
func (b *batch) refuse(op *Op, result *Result) {
	call := Call{
		ID: op.ID, Workspace: op.Workspace, Key: op.Subjects.Key, Outcome: "refused",
		Code: string(result.Refusal.Check.Code), At: b.at, Place: b.place, EndedAt: b.at,
		Generation: op.Generation, Subjects: op.Subjects, Checks: recordChecks(result.Readings), Note: op.Note,
		ClientID: op.ClientID,
	}
	if len(op.Candidates) > 0 {
		c := &op.Candidates[result.Candidate]
		call.Model, call.Provider, call.Price, call.Worst = c.Model, c.Provider, c.Price, c.worst()
	}
	if !op.Quiet {
		b.changes.Refused = append(b.changes.Refused, call)
	}
	if op.Again {
		b.entomb(op)
	}
}

func (b *batch) entomb(op *Op) {
	t := &Reservation{
		ID: op.ID, Workspace: op.Workspace, Process: op.Process, At: b.at, Place: b.place,
		ExpiresAt: b.at + op.HoldMicros, Tombstone: true,
	}
	b.changes.Opened = append(b.changes.Opened, t)
	b.page.Open[t.ID] = t
}

func recordChecks(readings []Reading) []CheckRecord {
	out := make([]CheckRecord, len(readings))
	for i := range readings {
		r, c := &readings[i], readings[i].Check
		out[i] = CheckRecord{
			Counter: c.Counter, Kind: c.Kind, Mode: c.Mode, Wants: c.Wants, Code: string(c.Code),
			Name: c.Name, Scope: c.Scope, Origin: c.Origin, Amount: r.Amount, Credit: c.Credit,
			Used: r.Used, Held: r.Held, Wanted: r.Wanted, ResetsAt: r.ResetsAt, Span: c.Span, Pass: r.Pass,
		}
	}
	return out
}

// read answers with what each check would see, and changes nothing.
func (b *batch) read(op *Op) Result {
	if !op.named(b.at) {
		return Result{Verdict: Carry}
	}
	result := Result{Verdict: Done, Readings: make([]Reading, 0, len(op.Checks))}
	for i := range op.Checks {
		result.Readings = append(result.Readings, b.reading(&op.Checks[i], Amounts{}, false, nil))
	}
	return result
}
