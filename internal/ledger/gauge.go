// SPDX-License-Identifier: Apache-2.0

package ledger

// slotRetryMicros is the Retry-After of a concurrency refusal: nobody can say
// when a running request ends, so one second (ERR-2).
const slotRetryMicros = 1_000_000

// readGauge reads requests in flight.
func (c *Check) readGauge(s *State, r *Reading) {
	r.Held = s.Held
	c.readAmount(r, c.Amount)
	if !r.Pass {
		r.WaitMicros, r.Reason = slotRetryMicros, ""
	}
}
