# What can be done here. Everything needs Go and nothing else; what the targets
# use beyond it, they build (golangci-lint, controller-gen: see tools/go.mod).
# A first build of the Kubernetes parts takes about 5 minutes on 2 cores.

SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
COMMIT  ?= $(shell git rev-parse --short HEAD 2>/dev/null)
DATE    ?= $(shell git log -1 --format=%cs 2>/dev/null)
VERSION_PACKAGE := github.com/plimsoll-k8s/plimsoll/internal/version
LDFLAGS := -s -w -X $(VERSION_PACKAGE).Version=$(VERSION) -X $(VERSION_PACKAGE).Commit=$(COMMIT) -X $(VERSION_PACKAGE).Date=$(DATE)
TOOL    := go tool -modfile=tools/go.mod

# Tests of packages with goroutines of their own also run under the race
# detector.
RACE := ./load/... ./internal/noderes/... ./internal/nodemetrics/... ./internal/fleet/... ./internal/controllers/... ./plugins/... ./slack/...

FUZZTIME ?= 10s

.PHONY: help
help: ## show this
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

.PHONY: demo
demo: ## a real scheduler on a real control plane, with and without Plimsoll; ends with Ctrl-C
	@echo "building the demo (about 5 minutes the first time) ..."
	@go build -ldflags '$(LDFLAGS)' -o bin/plimsoll-demo ./cmd/plimsoll-demo
	@bin/plimsoll-demo $(ARGS)

.PHONY: build
build: ## all programs, into bin/, and the links that make plimsoll a plugin of kubectl
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...
	@ln -sf plimsoll bin/kubectl-plimsoll && ln -sf plimsoll bin/kubectl_complete-plimsoll

# The real servers that tests and the demo start.
.PHONY: test-servers
test-servers:
	@command -v prometheus >/dev/null && command -v promtool >/dev/null || { \
	  echo "== installing Prometheus, which the tests start (Debian package prometheus)"; \
	  sudo=$$(test "$$(id -u)" = 0 || echo sudo); \
	  $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends prometheus >/dev/null; } || { \
	  echo "the tests want a Prometheus server and its promtool: install them, so that 'prometheus' and 'promtool' are in PATH"; exit 1; }
	@command -v chromium >/dev/null || { \
	  echo "== installing Chromium, in which the tests look at reports (Debian package chromium)"; \
	  sudo=$$(test "$$(id -u)" = 0 || echo sudo); \
	  $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; } || { \
	  echo "the tests want a browser: install Chromium, so that 'chromium' is in PATH"; exit 1; }
	@echo "== building metrics-server, Karpenter, kubectl and a client of load watchers, which the tests start (about 5 minutes the first time)"
	@cd test/metricsserver && go build -o /dev/null sigs.k8s.io/metrics-server/cmd/metrics-server
	@cd test/karpenter && go build -o /dev/null sigs.k8s.io/karpenter/kwok
	@cd test/loadwatcher && go build -o /dev/null .
	@cd test/kubectl && go build -o /dev/null .

.PHONY: test
test: test-servers ## all tests: unit, race, fuzz corpora, integration on the embedded control plane
	@echo "== tests (a first build of the Kubernetes parts takes about 5 minutes on 2 cores)"
	go test -timeout 30m ./...
	@echo "== under the race detector"
	go test -race -timeout 20m $(RACE)

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (10s)
	@for package in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
	    echo "== $$package $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
	  done; \
	done

.PHONY: bench
bench: ## the benchmarks whose figures the README quotes
	go test -run '^$$' -bench . -benchmem ./internal/algo/... ./internal/fleet/... ./load/... ./plugins/... ./slack/...
	go test -run '^$$' -bench . -benchtime 1x -timeout 30m ./test/bench/...

# The types of Open Cluster Management that Plimsoll uses as they are get CRDs
# without texts, for hubs that have none. Of the packages, two types are left out:
# there is a Placement of our own, and nothing here reads claims as objects.
OCM        := open-cluster-management.io/api/cluster
OCM_UNUSED := placements clusterclaims

.PHONY: generate
generate: ## the generated code, CRDs and dashboards
	$(TOOL) controller-gen object crd paths=./api/... output:crd:artifacts:config=config/crd
	go run ./internal/crdgen config/crd/cluster.open-cluster-management.io_placements.yaml
	@rm -rf config/crd/ocm
	$(TOOL) controller-gen crd:maxDescLen=0 $(foreach version,v1 v1beta2 v1beta1 v1alpha1,paths=$(OCM)/$(version)) output:crd:artifacts:config=config/crd/ocm
	go run ./internal/dashboardgen charts/plimsoll/files/dashboards
	@cd config/crd/ocm && rm $(OCM_UNUSED:%=cluster.open-cluster-management.io_%.yaml)

.PHONY: lint
lint: ## formatting, static checks and the import rules
	$(TOOL) golangci-lint run ./...

.PHONY: verify
verify: lint ## lint, and that what is generated is up to date
	@before=$$(git status --porcelain; git diff); $(MAKE) --no-print-directory generate; go mod tidy; \
	  after=$$(git status --porcelain; git diff); \
	  if [ "$$before" != "$$after" ]; then echo "generated files or go.mod are not up to date; run 'make generate' and 'go mod tidy':"; git status --short; exit 1; fi
	@for module in tools test/metricsserver test/loadwatcher test/karpenter test/kubectl; do (cd $$module && go mod verify >/dev/null) || exit 1; done

.PHONY: fmt
fmt: ## format the code
	$(TOOL) golangci-lint fmt ./...
