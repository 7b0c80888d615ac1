// SPDX-License-Identifier: Apache-2.0

package ledger

// readFunds reads a workspace's balance. Used is settled spend less what was
// paid in, so it is negative while money is there; available = Credit - Used.
// Observing, admission needs available > 0 (BAL-2); reserving (prepaid_hold),
// the worst case must fit (BAL-6).
func (c *Check) readFunds(s *State, r *Reading) {
	r.Used = saturatingSub(s.Settled, s.Credits)
	r.Held = s.Held
	c.readAmount(r, c.Credit)
	if !r.Pass && c.Mode == Reserve && r.Reason == "larger_than_limit" {
		// More money may be paid in at any time: no amount is too large for ever.
		r.Reason = ""
	}
	// A candidate that costs nothing still needs funds (PRC-4).
	if c.Mode == Reserve && r.Pass && saturatingSub(c.Credit, r.Used) <= 0 {
		r.Pass, r.WaitMicros = false, -1
	}
}
