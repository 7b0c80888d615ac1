// SPDX-License-Identifier: Apache-2.0

package local

import "syscall"

// dieWithParent ends the server when this process is killed.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
