// SPDX-License-Identifier: Apache-2.0

package sqlite

// FailCommits puts f in the place of every commit until the book connects anew.
func (b *Book) FailCommits(f func(commit func() error) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writer.fault = f
}
