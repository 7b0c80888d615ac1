// SPDX-License-Identifier: Apache-2.0

//go:build unix

package local

import (
	"errors"
	"os/user"
	"strconv"
	"syscall"
)

// unprivileged is somebody that the server may run as: it refuses root.
func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUser := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGroup := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(errUser, errGroup); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("neither a user postgres nor a user nobody is there to run the server as")
}
