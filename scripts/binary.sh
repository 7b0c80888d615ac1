#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# binary.sh tests the command as users have it: its scripts, releases, deployments, then the demo,
# which ends with 0 only if the books balance to the nano-dollar.
set -euo pipefail
cd "$(dirname "$0")/.."
go test -count=1 -timeout 10m ./cmd/...
bin/weir demo --once </dev/null
