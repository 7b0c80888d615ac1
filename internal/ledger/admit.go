// SPDX-License-Identifier: Apache-2.0

package ledger

// admit tries the candidates in order; the first for which all checks pass is
// admitted, and only it is charged (ENGINE 1). A refusal writes nothing.
func (b *batch) admit(op *Op) Result {
	if op.Again {
		if known, ok := b.lookUp(op); ok {
			return known
		}
	}
	if !b.named(op) {
		return Result{Verdict: Carry}
	}
	chosen, result := b.choose(op, nil)
	if result.Verdict == Refused {
		b.refuse(op, &result)
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
	if r := b.page.Open[op.ID]; r != nil && !r.Tombstone {
		return Result{Verdict: Admitted, Reservation: r, Candidate: int(r.Candidate)}, true
	}
	if _, ended := b.page.Ended[op.ID]; ended || b.page.Open[op.ID] != nil {
		return Result{Verdict: Already}, true
	}
	return Result{}, false
}

// named tells whether every fixed window that op names is the current one.
func (b *batch) named(op *Op) bool {
	for _, list := range op.checkLists() {
		for i := range list {
			if !list[i].inWindow(b.at) {
				return false
			}
		}
	}
	return true
}

// choose evaluates the common checks with each candidate. own finds what the
// request holds already on a counter; nil at admission.
//
// Without candidates (no such model) the common checks alone are read: one of
// them is the policy check that refuses.
func (b *batch) choose(op *Op, own func(*Check) *Hold) (int, Result) {
	var first *Result
	candidates := op.Candidates
	if len(candidates) == 0 {
		candidates = []Candidate{{}}
	}
	for i := range candidates {
		c := &candidates[i]
		result := Result{Verdict: Admitted, Candidate: i}
		result.Readings = make([]Reading, 0, len(op.Checks)+len(c.Checks))
		b.evaluate(op.Checks, c, own, &result)
		b.evaluate(c.Checks, c, own, &result)
		if result.Refusal == nil && len(op.Candidates) > 0 {
			return i, result
		}
		result.Verdict = Refused
		if first == nil {
			first = &result
		}
	}
	return 0, *first
}

// evaluate reads each check of a list, in order, the failed ones too: explain
// shows them all. The first that fails is the refusal; its wait is the longest
// of all runtime limits that stand against the request (ERR-2).
func (b *batch) evaluate(list []Check, c *Candidate, own func(*Check) *Hold, result *Result) {
	for i := range list {
		check := &list[i]
		var held *Hold
		if own != nil {
			held = own(check)
		}
		r := b.reading(check, c.Wants, c.Free, held)
		if held != nil && check.Mode == Take && check.Kind == KindGauge {
			r.Pass = true
		}
		result.Readings = append(result.Readings, r)
		if r.Pass {
			continue
		}
		if result.Refusal == nil {
			result.Refusal = &Refusal{Index: len(result.Readings) - 1, Check: check, Reading: r, WaitMicros: r.WaitMicros}
		} else if w := result.Refusal.WaitMicros; check.Mode == Take && w >= 0 {
			if r.WaitMicros < 0 {
				result.Refusal.WaitMicros = -1
			} else {
				result.Refusal.WaitMicros = max(w, r.WaitMicros)
			}
		}
	}
}

// open charges the chosen candidate and builds its reservation.
func (b *batch) open(op *Op, chosen int, readings []Reading) *Reservation {
	c := &op.Candidates[chosen]
	r := &Reservation{
		ID: op.ID, Workspace: op.Workspace, Process: op.Process,
		At: b.at, Place: b.place, ExpiresAt: b.at + op.HoldMicros, Generation: op.Generation,
		Subjects: op.Subjects, Model: c.Model, Provider: c.Provider, Price: c.Price,
		Candidate: int32(chosen), Worst: c.Wants, Checks: recordChecks(readings), Note: op.Note, ClientID: op.ClientID,
	}
	r.Holds = b.takeAll(op.Checks, c, r.Holds)
	r.Holds = b.takeAll(c.Checks, c, r.Holds)
	return r
}

// takeAll charges each counter once, though several checks may read it.
func (b *batch) takeAll(list []Check, c *Candidate, holds []Hold) []Hold {
	for i := range list {
		if findHold(holds, &list[i]) != nil {
			continue
		}
		if h := b.take(&list[i], c.Wants); h != nil {
			holds = append(holds, *h)
		}
	}
	return holds
}

func findHold(holds []Hold, c *Check) *Hold {
	for i := range holds {
		if holds[i].Counter == c.Counter {
			return &holds[i]
		}
	}
	return nil
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
		call.Model, call.Provider, call.Price, call.Worst = c.Model, c.Provider, c.Price, c.Wants
	}
	b.changes.Refused = append(b.changes.Refused, call)
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
			Name: c.Name, Scope: c.Scope, Origin: c.Origin, Amount: c.Amount, Credit: c.Credit,
			Used: r.Used, Held: r.Held, Wanted: r.Wanted, ResetsAt: r.ResetsAt, Span: c.Span, Pass: r.Pass,
		}
	}
	return out
}

// read answers with what each check would see, and changes nothing.
func (b *batch) read(op *Op) Result {
	result := Result{Verdict: Done, Readings: make([]Reading, 0, len(op.Checks))}
	for i := range op.Checks {
		c := op.Checks[i]
		if c.Kind == KindFixed {
			c.Counter.Window, _ = c.Window.Bounds(b.at)
		}
		result.Readings = append(result.Readings, b.reading(&c, Amounts{}, false, nil))
	}
	return result
}
