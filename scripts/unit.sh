#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# unit.sh runs the tests of every package but those with a stage of their own.
# All run with the race detector, save the packages that `plain` names. The stage
# static vets.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/scratch.sh

# Without the race detector, whole: what has no goroutine of its own and much
# arithmetic, where the detector finds nothing and makes property tests ten times
# slower; and what runs long histories in SQLite, whose code is ten times slower
# under it too. Of the latter, what runs at once is run again with the detector.
plain='/internal/(money|window|call|price|limit|ledger|sim|app|admin|store/sqlite)$'
# By itself: its contract draws random histories for each of three ways to keep
# them, so that fewer than the usual hundred are drawn for each.
drawn='/internal/store/sqlite$'
# The longest by far, and it waits more than it computes: beside the others.
longest='/internal/app$'
again='/internal/(app|admin|store/sqlite)$'
atOnce='Volley|AtOnce|AHardBudgetAdmits|FiftyUsers|NestedBudgets|Outage|Stop|Slots|Leaves|Renew|Reload|ChangedFile|Shrink|Rotat|Roles'
atOnce+='|TestTheSQLiteBookKeepsTheContract/FoldsAfterEachBatch/TwoTellers/(Concurrent|.*WhileOthersWrite|ALevel|ARoster)|Folds|Journal|BackupUnderLoad|Background|LongReports'
# Named so, but one request after the other, in a world for each kind of limit.
alone='AResetUnblocksAtOnce'
# The stages static, stores, clients and binary.
elsewhere='/(internal/architecture|internal/store/postgres|clients|cmd)(/|$)'

mapfile -t packages < <(go list ./... | grep -vE "$elsewhere")
mapfile -t raced < <(printf '%s\n' "${packages[@]}" | grep -vE "$plain")
mapfile -t quick < <(printf '%s\n' "${packages[@]}" | grep -E "$plain" | grep -vE "$drawn|$longest")
mapfile -t twice < <(printf '%s\n' "${packages[@]}" | grep -E "$again")
if ! command -v "$(go env CC)" >/dev/null; then
	echo "the race detector needs a C compiler, and $(go env CC) is not installed" >&2
	exit 1
fi

status=0
beside=$(mktemp)
trap 'kill "${first:-}" 2>/dev/null || true; rm -f "$beside"' EXIT
go test -vet=off -timeout 15m ./internal/app >"$beside" 2>&1 &
first=$!
if ((${#quick[@]})); then go test -vet=off -timeout 15m "${quick[@]}" || status=1; fi
go test -vet=off -timeout 15m ./internal/store/sqlite -rapid.checks=40 || status=1
if ((${#raced[@]})); then CGO_ENABLED=1 go test -vet=off -race -timeout 15m "${raced[@]}" || status=1; fi
wait "$first" || status=1
cat "$beside"
if ((${#twice[@]})); then CGO_ENABLED=1 go test -vet=off -race -timeout 15m -run "$atOnce" -skip "$alone" "${twice[@]}" || status=1; fi
exit "$status"
