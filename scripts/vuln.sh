#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# vuln.sh fails when the code can reach a known vulnerability of its modules or
# of the Go release. It asks the online database; when that cannot be reached,
# it takes the advisories of the module golang.org/x/vulndb at the version that
# tools/vulndb pins. Being unable to reach either is said, and is no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
online=https://vuln.go.dev

scan() { # DATABASE DESCRIPTION
	echo "vulnerability database: $2"
	.tools/govulncheck -db "$1" ./...
}

# offline makes the database from the pinned module and prints its folder.
offline() {
	local module version folder
	make --no-print-directory .tools/indexdb >&2 || return 1
	read -r version module < <(cd tools/vulndb && go mod download golang.org/x/vulndb >&2 &&
		go list -m -f '{{.Version}} {{.Dir}}' golang.org/x/vulndb) || return 1
	folder=$PWD/.tools/vulndb-$version
	if [[ ! -d $folder ]]; then
		rm -rf "$folder.new"
		.tools/indexdb -vulns "$module/data/osv" -out "$folder.new" >&2 || return 1
		mv "$folder.new" "$folder"
	fi
	echo "$folder"
}

make --no-print-directory .tools/govulncheck
if curl --fail --silent --max-time 5 "$online/index/db.json" 2>/dev/null | grep -q '"modified"'; then
	scan "$online" "$online, $(date -u +%F)"
elif folder=$(offline); then
	scan "file://$folder" "offline, golang.org/x/vulndb ${folder##*/vulndb-} (the online one cannot be reached)"
else
	echo 'vulnerabilities NOT CHECKED: neither the online database nor the pinned module can be reached' >&2
fi
