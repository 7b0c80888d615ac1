#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# unit.sh runs the tests of every package but those with a stage of their own.
# All run with the race detector, save the packages that `plain` names.
set -euo pipefail
cd "$(dirname "$0")/.."

# Have no goroutine of their own and much arithmetic: the detector finds
# nothing there and makes property tests ten times slower.
plain='/internal/(money|window|call|price|limit|ledger|sim)$'
# The stages static, clients and binary.
elsewhere='/(internal/architecture|clients|cmd)(/|$)'

mapfile -t packages < <(go list ./... | grep -vE "$elsewhere")
mapfile -t raced < <(printf '%s\n' "${packages[@]}" | grep -vE "$plain")
mapfile -t quick < <(printf '%s\n' "${packages[@]}" | grep -E "$plain")
if ! command -v "$(go env CC)" >/dev/null; then
	echo "the race detector needs a C compiler, and $(go env CC) is not installed" >&2
	exit 1
fi

status=0
if ((${#quick[@]})); then go test -timeout 10m "${quick[@]}" || status=1; fi
if ((${#raced[@]})); then CGO_ENABLED=1 go test -race -timeout 10m "${raced[@]}" || status=1; fi
exit "$status"
