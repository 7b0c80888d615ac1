#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh runs every stage, also after one has failed, and prints each one's
# time beside its budget. A budget is for two cores and warm caches: passing it
# is reported, not failed, because a first run compiles everything.
set -uo pipefail
cd "$(dirname "$0")/.."

# Minutes for each stage. A new stage gets a line here and a `test-NAME` target.
budgets=(
	static:1
	unit:5
	stores:5
	fuzz:4
	clients:3
	binary:2
)

passed=0 failed=0 table=
for line in "${budgets[@]}"; do
	stage=${line%%:*} budget=$((${line##*:} * 60)) began=$SECONDS
	printf '\n== %s ==\n' "$stage"
	if make --no-print-directory "test-$stage"; then
		verdict=passed passed=$((passed + 1))
	else
		verdict=FAILED failed=$((failed + 1))
	fi
	took=$((SECONDS - began)) note=
	((took <= budget)) || note='over budget'
	table+=$(printf '%-10s %-8s %5d s of %4d s  %s' "$stage" "$verdict" "$took" "$budget" "$note")$'\n'
done
printf '\n%s\nstages: %d passed, %d failed\n' "$table" "$passed" "$failed"
((failed == 0))
