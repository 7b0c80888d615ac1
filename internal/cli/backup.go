// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"github.com/weirhq/weir/internal/admin"
)

type backupCmd struct {
	reach

	File string `arg:"" placeholder:"FILE" help:"The file to make; with --server a whole path on the server's machine."`
}

func (c *backupCmd) Help() string {
	return `It copies the store as of one instant, of a running server too, which goes on. The
server writes the file, readable for its own user alone, and overwrites none. Prove
the copy with weir verify --file FILE.`
}

func (c *backupCmd) Run(s *session) error {
	file := c.File
	if c.Server == "" {
		whole, err := filepath.Abs(file)
		if err != nil {
			return fmt.Errorf("find %s: %w", file, err)
		}
		file = whole
	}
	return c.with(s, func(a *asked) error {
		done := s.progress("copying")
		answer, err := a.Backup(s.ctx, admin.BackupRequest{Body: admin.BackupFields{File: file}})
		done()
		return show(a, answer, err, writeBackup)
	})
}

func writeBackup(w io.Writer, b *admin.BackupAnswer) error {
	return line(w, fmt.Sprintf("%s: %s bytes as of %s, written in %s ms", b.File, thousands(strconv.FormatInt(b.Bytes, 10)), b.At, thousands(strconv.FormatInt(b.Millis, 10))))
}
