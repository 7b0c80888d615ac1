#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# release.sh DIST OS/ARCH... builds what is released, from the checkout as it is:
# for each platform a static binary, an archive and an SBOM, for those of Linux an
# image, and checksums of all. Git's version is stamped into the binaries; the same
# commit and toolchain give the same bytes, wherever and by whomever.
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$1
shift

built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
rm -rf "$dist"
mkdir -p "$dist"

for platform in "$@"; do
	binary=$built/${platform/\//_}/weir
	echo "building weir for $platform" >&2
	# The lowest level of each processor, whatever this machine's environment says.
	GOOS=${platform%/*} GOARCH=${platform#*/} GOAMD64=v1 GOARM64=v8.0 GOFLAGS= CGO_ENABLED=0 \
		go build -trimpath -buildvcs=true -ldflags '-s -w -buildid=' -o "$binary" ./cmd/weir
	version=$(go version -m "$binary" | awk '$1 == "mod" {print $3}')
	.tools/cyclonedx-gomod bin -json -noserial -notimestamp -std -version "$version" \
		-output "$dist/weir_${version#v}_${platform/\//_}.cdx.json" "$binary"
done
.tools/release "$built" "$dist" .
(cd "$dist" && ls -l)
