// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package child

import "syscall"

// tie: only Linux can tie a process to another.
func tie(*syscall.SysProcAttr, syscall.Signal) {}
