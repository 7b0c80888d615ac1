// SPDX-License-Identifier: Apache-2.0

package pgtest

import "syscall"

// dieWithParent ends the server when the test process is killed.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
