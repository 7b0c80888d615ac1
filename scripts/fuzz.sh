#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh TIME runs every fuzz target of the module for TIME, each on one core, as
# many at a time as there are cores. Targets are found, not listed: a new one is
# run without being named here.
set -euo pipefail
cd "$(dirname "$0")/.."
fuzztime=$1
cores=$(getconf _NPROCESSORS_ONLN)
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT

mapfile -t folders < <(git ls-files -co --exclude-standard -z -- '*_test.go' ':!tools' ':!clients' |
	xargs -0r grep -lsE '^func Fuzz[A-Z0-9_]' | xargs -r -n1 dirname | sort -u)
targets=()
for folder in "${folders[@]}"; do
	binary=$built/${folder//\//.}
	go test -c -fuzz . -o "$binary" "./$folder"
	for target in $(cd "$folder" && "$binary" -test.list '^Fuzz'); do
		targets+=("$folder $binary $target")
	done
done

# What was found to be worth keeping is where `go test -fuzz` keeps it, too.
cache=$(go env GOCACHE)/fuzz/$(go list -m)
run() {
	local folder=$1 binary=$2 target=$3 log=$2.$3
	if (cd "$folder" && "$binary" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$fuzztime" -test.parallel 1 \
		-test.fuzzcachedir "$cache/$folder") >"$log" 2>&1; then
		printf 'ok   %s %s  %s\n' "$folder" "$target" "$(grep -o 'execs: .*' "$log" | tail -1)"
	else
		printf 'FAIL %s %s\n' "$folder" "$target"
		cat "$log"
		return 1
	fi
}
export fuzztime cache
export -f run

echo "fuzz targets: ${#targets[@]}, $cores at a time"
((${#targets[@]} > 0)) || { echo 'no fuzz target found' >&2; exit 1; }
printf '%s\n' "${targets[@]}" | xargs -P "$cores" -L1 bash -c 'run "$@"' _
