// SPDX-License-Identifier: Apache-2.0

package spool

// Scan tells how many bytes of a file are whole records, damaged and torn.
func Scan(file []byte) (records, damaged, torn int) {
	s, salt := scan(file)
	for _, r := range s.Records {
		records += r.To - r.From
	}
	for _, part := range s.Damaged {
		damaged += part.To - part.From
	}
	if salt != nil {
		records += headerSize
	}
	return records, damaged, s.Torn
}

// FailWrites makes writing fail; nil lets it work again.
func (s *Spool) FailWrites(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.write = func() error { return err }
}
