#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tool.sh MODULE-DIR PACKAGE OUT builds a pinned tool into .tools/.
set -euo pipefail
module=$1 package=$2 out=$PWD/$3
echo "building ${out##*/} (once for each pin: up to a minute on two cores)" >&2
mkdir -p "${out%/*}"
# cgo would tie the binary to this machine's C library for nothing.
(cd "$module" && CGO_ENABLED=0 go build -trimpath -o "$out" "$package")
touch "$out" # go build keeps the time of an up-to-date file, make needs it newer than the pins
