// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package local

import "syscall"

// dieWithParent: only Linux can tie a process to another.
func dieWithParent(*syscall.SysProcAttr) {}
