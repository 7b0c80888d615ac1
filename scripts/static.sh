#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# static.sh holds everything that can be held without running the product. It
# goes through all its checks and fails at the end, naming those that failed.
set -uo pipefail
cd "$(dirname "$0")/.."

bad=()
check() {
	local name=$1
	shift
	echo "-- $name"
	"$@" || bad+=("$name")
}
formatted() {
	local diff
	diff=$(.tools/gofumpt -d .) && [[ -z $diff ]] && return
	printf '%s\nrun make fmt\n' "$diff"
	return 1
}

check format formatted
check vet go vet ./...
check layout go test -count=1 ./internal/architecture
check lint .tools/golangci-lint run
check generated scripts/generated.sh
check vulnerabilities scripts/vuln.sh

((${#bad[@]} == 0)) && exit
echo "static checks failed: ${bad[*]}" >&2
exit 1
