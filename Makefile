# SPDX-License-Identifier: Apache-2.0
#
# `make` lists what there is. Needs Go 1.21 or newer (it fetches the toolchain
# that go.mod names), git, and a C compiler for the race detector.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

# go.mod names the toolchain: an older one has reachable advisories. An
# environment that pins its own (GOTOOLCHAIN=local) would refuse to build.
export GOTOOLCHAIN := auto
export GOWORK := off
# go:generate directives name their tools without a path.
export PATH := $(CURDIR)/.tools:$(PATH)

BIN := bin/weir
# Benchmarks: time for each. Fuzzing: time for each target of `make fuzz`.
BENCHTIME ?= 1s
FUZZTIME ?= 10m
# Seeds of `make soak`, 2,000 steps each on the model book, and those that drive
# SQLite and PostgreSQL, 700 steps each.
SEEDS ?= 20000
SQLITE_SEEDS ?= 2000
PG_SEEDS ?= 500
# Random histories for each property of the store contract.
HISTORIES ?= 1000
# How many streams a soak sends through one gateway, looking at its memory.
STREAMS ?= 100000
# Rounds of each test of `make torture`, about 15 seconds each, and the seed of the
# first: another one each time. A failure says how to repeat its round.
ROUNDS ?= 12
SEED ?= $(shell date +%s)
# What `make release` builds, and where to.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
DIST ?= dist
# Seconds of `make load`.
LOAD_SECONDS ?= 1800
# Arguments of `make demo`, for example ARGS="--replicas 3 --once".
ARGS ?=

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  \033[1m%-14s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/weir, static, for this machine
	@CGO_ENABLED=0 go build -trimpath -o $(BIN) ./cmd/weir

.PHONY: demo
demo: ## Show a cap that holds: gateway, simulated provider, a volley of requests
	@[[ -x $(BIN) ]] || echo 'building weir: a first compile of the pure-Go SQLite takes about a minute'
	@$(MAKE) --no-print-directory build
	@$(BIN) demo $(ARGS)

.PHONY: test
test: ## Everything, in stages, each held against its time budget; what CI runs
	@scripts/test.sh

.PHONY: check
check: test-static ## Format, vet, lint, layout rules, generated files, known vulnerabilities

.PHONY: test-static
test-static: .tools/gofumpt .tools/golangci-lint
	@scripts/static.sh

.PHONY: test-unit
test-unit: ## Unit and property tests and the store contract, with the race detector
	@scripts/unit.sh

.PHONY: test-stores
test-stores: ## The store contract and the behaviour tests on PostgreSQL, which the tests start themselves
	@scripts/stores.sh

.PHONY: test-postgres
test-postgres: ## The same, with every behaviour test on four programs too
	@scripts/stores.sh whole

.PHONY: test-fuzz
test-fuzz: ## Every fuzz target for ten seconds
	@scripts/fuzz.sh 10s

.PHONY: test-clients
test-clients: build ## The official client libraries against bin/weir, and a turn of each coding agent that is installed
	@scripts/clients.sh

.PHONY: test-binary
test-binary: build ## The command line and the demo, as a user runs them
	@scripts/binary.sh

.PHONY: clients
clients: build ## The same, and coding agents in every way of being refused (installs 1.1 GB, once)
	@scripts/clients.sh whole

.PHONY: fuzz
fuzz: ## Every fuzz target for FUZZTIME (10m)
	@scripts/fuzz.sh $(FUZZTIME)

.PHONY: soak
soak: ## Simulate replicas, crashes and clock steps with SEEDS (20,000) seeds, SQLITE_SEEDS (2,000) on SQLite, PG_SEEDS (500) on PostgreSQL; send STREAMS (100,000); report and drop EVENTS (1,000,000)
	@WEIR_SIM_SEEDS=$(SEEDS) WEIR_SIM_SQLITE_SEEDS=$(SQLITE_SEEDS) WEIR_SIM_POSTGRES_SEEDS=$(PG_SEEDS) \
		go test -timeout 0 -v -run 'TestSeedsKeepEveryInvariant|DoesAsTheModel' ./internal/sim
	@go test -p 1 -count=1 -timeout 0 -run KeepsTheContract ./internal/store/sqlite ./internal/store/postgres -rapid.checks=$(HISTORIES)
	@WEIR_STREAMS=$(STREAMS) go test -count=1 -timeout 0 -v -run TestStreamsLeaveNo ./internal/app
	@WEIR_SOAK_EVENTS=$(EVENTS) go test -p 1 -count=1 -timeout 0 -v -run TestReportsOfManyEvents ./internal/store/sqlite ./internal/store/postgres

.PHONY: torture
torture: ## Kill, starve, cut and lie to the real program, its network and database for ROUNDS (12), audit its books
	@WEIR_TORTURE_ROUNDS=$(ROUNDS) WEIR_TORTURE_SEED=$(SEED) go test -p 1 -count=1 -timeout 0 -v -run UnderTorture ./internal/store/postgres ./cmd/weir

.PHONY: matrix
matrix: ## Every door, streamed or not, to every ending under every family of limits: the whole product
	@WEIR_MATRIX=whole go test -count=1 -timeout 0 -run TestEveryDoorEndingAndLimit ./internal/app

.PHONY: load
load: ## 500 requests a second for LOAD_SECONDS (1800): what they add, and what memory it takes
	@WEIR_LOAD_SECONDS=$(LOAD_SECONDS) WEIR_LOAD_RATE=500 go test -count=1 -timeout 0 -v -run TestAConstantLoad ./cmd/weir

.PHONY: bench
bench: ## Every benchmark, BENCHTIME (1s) each
	@scripts/bench.sh $(BENCHTIME)

.PHONY: release
release: .tools/cyclonedx-gomod .tools/release ## Archives, images, SBOMs and checksums in dist/, for PLATFORMS
	@scripts/release.sh $(DIST) $(PLATFORMS)

.PHONY: fmt
fmt: .tools/gofumpt ## Format the Go code
	@.tools/gofumpt -l -w .

.PHONY: generate
generate: .tools/sqlc ## Run every go:generate directive
	@go generate ./...

.PHONY: clean
clean: ## Remove what was built; .tools too
	@rm -rf bin dist .tools test-results

# Tools have modules of their own (tools/), so that theirs are never the
# product's. A binary is built once and again when its pins change.
.tools/gofumpt: tools/go.mod tools/go.sum
	@scripts/tool.sh tools mvdan.cc/gofumpt $@
.tools/golangci-lint: tools/go.mod tools/go.sum
	@scripts/tool.sh tools github.com/golangci/golangci-lint/v2/cmd/golangci-lint $@
.tools/govulncheck: tools/go.mod tools/go.sum
	@scripts/tool.sh tools golang.org/x/vuln/cmd/govulncheck $@
.tools/sqlc: tools/go.mod tools/go.sum
	@scripts/tool.sh tools github.com/sqlc-dev/sqlc/cmd/sqlc $@
.tools/cyclonedx-gomod: tools/release/go.mod tools/release/go.sum
	@scripts/tool.sh tools/release github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod $@
.tools/compose: tools/release/go.mod tools/release/go.sum $(wildcard tools/release/compose/*.go)
	@scripts/tool.sh tools/release ./compose $@
.tools/release: tools/release/go.mod tools/release/go.sum $(wildcard tools/release/*.go)
	@scripts/tool.sh tools/release . $@
.tools/indexdb: tools/vulndb/go.mod tools/vulndb/go.sum
	@scripts/tool.sh tools/vulndb golang.org/x/vulndb/cmd/indexdb $@
