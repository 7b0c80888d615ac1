// SPDX-License-Identifier: Apache-2.0

package spool

// Scan tells how many bytes of a file are whole records, damaged and torn.
func Scan(file []byte) (records, damaged, torn int) {
	s, salt := scan(file)
	for _, r := range s.records {
		records += r.to - r.from
	}
	for _, part := range s.damaged {
		damaged += len(part)
	}
	if salt != nil {
		records += headerSize
	}
	return records, damaged, s.torn
}

// FailWrites makes writing fail; nil lets it work again.
func (s *Spool) FailWrites(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.write = func() error { return err }
}
