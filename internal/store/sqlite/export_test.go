// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"database/sql/driver"
	"fmt"
)

// FailCommits puts f in the place of every commit until the book connects anew.
func (b *Book) FailCommits(f func(commit func() error) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writer.fault = f
}

// Pragma reads one of the writing connection's.
func (b *Book) Pragma(name string) (value string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	err = b.writer.query("PRAGMA "+name, func(v []driver.Value) error {
		value = fmt.Sprint(v[0])
		return nil
	})
	return value, err
}
