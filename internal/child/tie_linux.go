// SPDX-License-Identifier: Apache-2.0

package child

import "syscall"

// tie sends a process a signal when this one dies.
func tie(a *syscall.SysProcAttr, orphaned syscall.Signal) { a.Pdeathsig = orphaned }
