#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh TIME runs every fuzz target of the module for TIME. Targets are
# found, not listed: a new one is run without being named here.
set -euo pipefail
cd "$(dirname "$0")/.."
fuzztime=$1

packages=$(git ls-files -co --exclude-standard -z -- '*_test.go' ':!tools' ':!clients' |
	xargs -0r grep -lsE '^func Fuzz[A-Z0-9_]' | xargs -r -n1 dirname | sort -u || true)
found=0 status=0
for package in $packages; do
	for target in $(go test "./$package" -list '^Fuzz' | grep '^Fuzz'); do
		found=$((found + 1))
		go test "./$package" -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" || status=1
	done
done
echo "fuzz targets: $found"
((found > 0)) || { echo 'no fuzz target found' >&2; exit 1; }
exit "$status"
