# What to type is in `make help`. Continuous integration calls the same targets.

SHELL := /bin/bash
# Debian keeps ip, iptables and nft in sbin, which a plain user's PATH lacks.
export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin

# The version comes from git below, not from Go's own stamp, which fails in a checkout of another user.
export GOFLAGS := $(GOFLAGS) -buildvcs=false

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/backstop-cni/backstop/internal/version.Version=$(VERSION)
BUILD   := CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)'
MODULES := . conformance
each     = @for m in $(MODULES); do echo "$(1) ($$m)"; (cd $$m && $(1)) || exit 1; done

.DEFAULT_GOAL := help
.NOTPARALLEL: # two cores, and the tests keep both busy

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## bin/backstop (the plugin) and bin/backstopctl (the operator's command), static
	$(BUILD) -o bin/ ./cmd/backstop ./cmd/backstopctl

.PHONY: demo
demo: deps build ## the job in one minute, in a throw-away node: ADD, daemon killed, DEL, replay (root)
	@$(MAKE) --no-print-directory -C conformance demo

.PHONY: test
test: unit conformance ## everything that must pass: unit tests, then the real plugins (root)

.PHONY: unit
unit: deps ## the tests of the main module
	go test -count=1 ./...

.PHONY: conformance
conformance: deps build ## scenarios with cnitool and the reference plugins, in throw-away nodes (root)
	@$(MAKE) --no-print-directory -C conformance test

.PHONY: conformance-aws
conformance-aws: deps build tools ## the real AWS VPC CNI, without and with backstop: writes conformance/aws/report.md (root)
	@$(MAKE) --no-print-directory -C conformance/aws report

.PHONY: tools
tools: ## build cnitool and the reference plugins for the scenarios
	@$(MAKE) --no-print-directory -C conformance tools

.PHONY: bench
bench: deps build ## ADD and DEL as ratios against the reference plugin tuning, in the same run (root)
	@$(MAKE) --no-print-directory -C conformance bench

.PHONY: soak
soak: deps ## the long runs: random lives of pods against a model, 20,000 operations (SEED=N to choose); 10,000 DELs (root)
	go test -count=1 -timeout 60m -v -run TestModel ./internal/model -seed=$(or $(SEED),$(shell date +%s)) -operations=20000 -nodes=2
	go test -count=1 -timeout 30m -v -run TestManyDels ./plugin -dels=10000

.PHONY: crash
crash: deps ## kill backstop at every crash point and at any moment, KILLS=1000 times in all, and print what came of it (root; SEED=N to choose)
	@go test -count=1 -timeout 120m -v -run TestKills ./internal/crashtest -kills=$(or $(KILLS),1000) -seed=$(or $(SEED),$(shell date +%s))

.PHONY: power
power: deps build ## cut the power of a kernel with ext4 under backstop, CUTS=50 times, and print what came of it (root; SEED=N to choose)
	@$(MAKE) --no-print-directory -C conformance power

.PHONY: fuzz
fuzz: ## each fuzzer for FUZZTIME (1m), one after the other; a finding fails and is kept in testdata/fuzz: commit it, mend it
	@.ci/fuzz $(or $(FUZZTIME),1m)

.PHONY: licences
licences: ## fail if a module in one of the programs has a licence that is not on the list; lists them all
	go test -count=1 -v ./internal/licences

.PHONY: vuln
vuln: ## known vulnerabilities in the programs, by govulncheck at the version that tools/go.mod pins; says so if it could not check
	@.ci/vuln

.PHONY: check
check: fmt vet lint licences vuln race ## what a change must pass before review, besides `make test`

.PHONY: fmt
fmt: ## fail if a file is not gofmt-ed
	@files=$$(gofmt -l .); [ -z "$$files" ] || { echo "not gofmt-ed:"; echo "$$files"; exit 1; }

.PHONY: vet
vet: ## go vet, both modules
	$(call each,go vet ./...)

.PHONY: lint
lint: ## staticcheck at the version that tools/go.mod pins, both modules
	$(call each,go tool -modfile=$(CURDIR)/tools/go.mod staticcheck ./...)

.PHONY: race
race: ## the tests of the main module under the race detector (needs a C compiler)
	@.ci/deps gcc
	CGO_ENABLED=1 go test -race -count=1 ./...

.PHONY: deps
deps: # the programs that the tests start
	@.ci/deps ip iptables nft setpriv mkfs.ext4

.PHONY: clean
clean: ## remove what was built
	rm -rf bin conformance/bin conformance/aws/bin
