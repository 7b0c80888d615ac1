// SPDX-License-Identifier: Apache-2.0

package ledger

// readFixed reads a counter that starts anew with each window.
func (c *Check) readFixed(s *State, r *Reading, at int64) {
	r.Used = s.Settled
	r.Held = s.Held
	_, r.ResetsAt = c.Window.Bounds(at)
	c.readAmount(r, c.Amount)
}

// readAmount compares use with an amount, by the check's mode (SPEC section 5).
func (c *Check) readAmount(r *Reading, amount int64) {
	switch c.Mode {
	case Track:
		r.Pass = true
	case Observe:
		r.Pass = r.Used < amount
	case Reserve, Take:
		r.Pass = saturatingAdd(saturatingAdd(r.Used, r.Held), r.Wanted) <= amount
		if r.Pass {
			return
		}
		if r.Wanted > amount {
			r.Reason = "larger_than_limit"
		} else if saturatingAdd(r.Used, r.Wanted) <= amount {
			r.Reason = "held"
		}
	}
	if !r.Pass {
		r.WaitMicros = -1
	}
}

// inWindow tells whether the operation named the window that the instant is in.
func (c *Check) inWindow(at int64) bool {
	if c.Kind != KindFixed {
		return true
	}
	start, _ := c.Window.Bounds(at)
	return c.Counter.Window == start
}

// Name gives every fixed check of the operation the window that at lies in.
func (op *Op) Name(at int64) {
	for _, list := range op.checkLists() {
		for i := range list {
			if list[i].Kind == KindFixed {
				list[i].Counter.Window, _ = list[i].Window.Bounds(at)
			}
		}
	}
}
