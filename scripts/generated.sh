#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# generated.sh fails when a committed file is not what its go:generate
# directive makes. It generates in a copy, so that a check changes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

directives=$(git ls-files -co --exclude-standard -z -- '*.go' | xargs -0r grep -ls '^//go:generate ' || true)
if [[ -z $directives ]]; then
	echo 'no go:generate directive'
	exit
fi
grep -qsE '^//go:generate .*\bsqlc\b' $directives && make --no-print-directory .tools/sqlc

copy=$(mktemp -d)
trap 'rm -rf "$copy" "$copy.files"' EXIT
git ls-files -co --exclude-standard -z | while IFS= read -r -d '' file; do
	[[ -e $file ]] && printf '%s\0' "$file"
done >"$copy.files"
tar --null -T "$copy.files" -c | tar -x -C "$copy"
(cd "$copy" && GOFLAGS="${GOFLAGS:-} -buildvcs=false" go generate ./...)

stale=0
while IFS= read -r -d '' file; do
	diff -u "$file" "$copy/$file" || stale=1
done <"$copy.files"
# Files that a directive makes and nobody committed.
while IFS= read -r -d '' file; do
	[[ -e $file ]] || { echo "not committed: $file"; stale=1; }
done < <(cd "$copy" && find . -type f -print0)
((stale == 0)) || { echo 'run make generate' >&2; exit 1; }
