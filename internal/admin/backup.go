// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/fault"
)

// BackupRequest copies the store to a file where the server runs.
type BackupRequest struct {
	Body BackupFields
}

// BackupFields name the file: its whole path. There must be none yet.
type BackupFields struct {
	File string `json:"file" doc:"an absolute path on the server's machine, of a file that is not there yet"`

	raw []byte
}

// BackupAnswer tells of a copy that is on the disk.
type BackupAnswer struct {
	File   string `json:"file"`
	At     string `json:"at"`
	Bytes  int64  `json:"bytes"`
	Millis int64  `json:"millis" doc:"how long it took, in milliseconds"`
}

// Backup writes the whole store as of one instant to a new file, while requests
// go on.
func (s *Service) Backup(ctx context.Context, a Actor, r BackupRequest) (BackupAnswer, error) {
	if err := permit(a, OpBackup); err != nil {
		return BackupAnswer{}, err
	}
	n, err := node(r.Body.raw, r.Body)
	if err != nil {
		return BackupAnswer{}, err
	}
	var file string
	if _, err := document.Read(n, func(r *document.Reader) {
		r.String("file", &file)
		if !filepath.IsAbs(file) {
			r.Fail("file", "must be an absolute path")
		}
	}); err != nil {
		return BackupAnswer{}, invalid(err)
	}
	if s.Copyable == nil {
		return BackupAnswer{}, fault.New(fault.InvalidRequest, "this store is no file that could be copied; a PostgreSQL database is copied with pg_dump or its provider's backups")
	}
	at := s.Clock.Now()
	bytes, err := s.Copyable.Backup(ctx, file)
	if errors.Is(err, fs.ErrExist) {
		return BackupAnswer{}, fault.New(fault.Conflict, "%s is there already: a backup overwrites nothing", document.Quote(file))
	}
	if err != nil {
		return BackupAnswer{}, answer(err)
	}
	return BackupAnswer{File: file, At: instant(at), Bytes: bytes, Millis: (s.Clock.Now() - at) / 1000}, nil
}
