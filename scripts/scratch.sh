# SPDX-License-Identifier: Apache-2.0
# scratch.sh is sourced: it lets the tests write into memory, where a file system
# for it has room. Most of the time of a test on a store is its disk's flushes.
#
# The stores flush as ever, and what these tests show is the same: they end
# processes, not machines, and what a process has written outlives it on either.
# The stage `binary` and the long editions (test-postgres, torture, soak) use the
# disk. So does everything when TMPDIR is set.
scratch() {
	local memory=/dev/shm needed=$((3 * 1024 * 1024)) there available folder # KiB
	[[ -z ${TMPDIR:-} && -w $memory && -r /proc/meminfo ]] || return 0
	there=$(df -Pk "$memory" | awk 'NR == 2 {print $4}')
	available=$(awk '$1 == "MemAvailable:" {print $2}' /proc/meminfo)
	((there > needed && available > needed)) || return 0

	# One name for all runs: another one would be another input of every test, and
	# none would be cached. What a run that was killed has left goes after a while.
	folder=$memory/weir-tests-$UID
	mkdir -p "$folder"
	[[ -O $folder ]] || return 0
	chmod 1777 "$folder" # PostgreSQL is another user's
	find "$folder" -mindepth 1 -maxdepth 1 -mmin +120 -exec rm -rf {} +
	# Tests build programs and run them.
	printf '#!/bin/sh\n' >"$folder/run.$$"
	chmod 755 "$folder/run.$$"
	if "$folder/run.$$" 2>/dev/null; then
		export GOTMPDIR=${GOTMPDIR:-/tmp} TMPDIR=$folder # what go itself builds is large
	fi
	rm -f "$folder/run.$$"
}
scratch
