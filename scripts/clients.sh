#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clients.sh [whole] runs each suite under clients/: an executable
# clients/NAME/run that installs its pinned client library into its own folder,
# starts the server that it needs from $WEIR, and exits 0 only when every test
# passed. `whole` (make clients) is CLIENTS=whole for them: what is long, too.
set -euo pipefail
cd "$(dirname "$0")/.."
export WEIR=$PWD/bin/weir CLIENTS=${1:-}

found=0 failed=()
for suite in clients/*/run; do
	[[ -x $suite ]] || continue
	found=$((found + 1))
	echo "-- $suite"
	"$suite" || failed+=("$suite")
done
((found > 0)) || { echo 'no suite found: clients/NAME/run' >&2; exit 1; }
((${#failed[@]} == 0)) || { echo "failed: ${failed[*]}" >&2; exit 1; }
