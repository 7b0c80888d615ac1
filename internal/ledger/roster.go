// SPDX-License-Identifier: Apache-2.0

package ledger

// A roster counts distinct members. Its first admitted request sets a member's
// own row and counts one up; nothing ever takes that back (KEY-7). Neither row
// has events: the count is the number of members' rows.

// readRoster admits a member that is known, or while there is room for another.
func (c *Check) readRoster(s *State, known bool, r *Reading) {
	r.Used = s.Settled
	r.Pass = known || c.Mode == Track || r.Used < c.Amount
	if !r.Pass {
		r.WaitMicros = -1
	}
}

func (b *batch) knowsMember(c *Check) bool {
	s := b.counters.Find(c.Marker)
	return s != nil && s.Settled > 0
}

// enrol notes the member of an admitted request.
func (b *batch) enrol(c *Check) {
	if b.knowsMember(c) {
		return
	}
	for _, counter := range [2]Counter{c.Marker, c.Counter} {
		s := b.touch(counter, c.Kind)
		s.settle(1)
		s.At = b.at
	}
}

// lists tells whether a roster check names its two rows.
func (c *Check) lists() bool {
	return (c.Mode == Take || c.Mode == Track) && c.Charges == MetricNone && c.Counter.Subject == "" &&
		c.Marker.Subject != "" && c.Marker.Workspace == c.Counter.Workspace
}

// roster is what one workspace's rows say: the counts and the members.
type roster struct {
	counter       Counter
	counted, rows int64
}

// roster takes one row of a roster.
func (v *Verifier) roster(c Counter, s *State) {
	if s.Settled == 0 && c.Subject != "" {
		return
	}
	if v.rosters == nil {
		v.rosters = make(map[string]*roster)
	}
	r := v.rosters[c.Workspace]
	if r == nil {
		r = &roster{counter: Counter{Workspace: c.Workspace, Limit: c.Limit}}
		v.rosters[c.Workspace] = r
	}
	if c.Subject != "" {
		r.rows++
		return
	}
	r.counter = c
	r.counted = saturatingAdd(r.counted, s.Settled)
}

// rosterDifferences compares the counts with the members' rows.
func (v *Verifier) rosterDifferences() []Difference {
	var out []Difference
	for _, r := range v.rosters {
		if r.counted != r.rows {
			out = append(out, Difference{Counter: r.counter, Kind: KindRoster, Figure: "members", Have: r.counted, Want: r.rows})
		}
	}
	return out
}
