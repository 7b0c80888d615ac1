#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench.sh TIME runs every benchmark of the module, TIME each, one package
# after the other, so that none measures its neighbour.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=$(git ls-files -co --exclude-standard -z -- '*_test.go' ':!tools' ':!clients' |
	xargs -0r grep -lsE '^func Benchmark[A-Z0-9_]' | xargs -r -n1 dirname | sort -u || true)
[[ -n $packages ]] || { echo 'no benchmark found' >&2; exit 1; }
grep -m1 'model name' /proc/cpuinfo 2>/dev/null || true
for package in $packages; do
	go test "./$package" -run '^$' -bench . -benchmem -benchtime "$1"
done
