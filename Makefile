# What can be done here. Everything needs Go and nothing else; what the targets
# use beyond it, they build (golangci-lint, controller-gen, Helm, ko: see tools); only
# images wants Docker.
# A first build of the Kubernetes parts takes about 5 minutes on 2 cores.

SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
COMMIT  ?= $(shell git rev-parse --short HEAD 2>/dev/null)
DATE    ?= $(shell git log -1 --format=%cs 2>/dev/null)
VERSION_PACKAGE := github.com/plimsoll-k8s/plimsoll/internal/version
LDFLAGS := -s -w -buildid= -X $(VERSION_PACKAGE).Version=$(VERSION) -X $(VERSION_PACKAGE).Commit=$(COMMIT) -X $(VERSION_PACKAGE).Date=$(DATE)
TOOL    := go tool -modfile=tools/go.mod

# Static programs that depend on the sources alone: not on the folder, nor on what
# git says of it beyond the three variables above.
BUILD    := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)'
PROGRAMS := $(notdir $(wildcard cmd/*))
# The programs that have images, and what these are called: REGISTRY/program:TAG.
IMAGES   := plimsoll-scheduler plimsoll-controller load-watcher
REGISTRY ?= plimsoll-k8s
TAG      ?= $(VERSION)
PLATFORMS ?= linux/amd64,linux/arm64

# Tests of packages with goroutines of their own also run under the race
# detector.
RACE := ./load/... ./internal/noderes/... ./internal/nodemetrics/... ./internal/fleet/... ./internal/controllers/... ./plugins/... ./slack/...

FUZZTIME ?= 10s

.PHONY: help
help: ## show this
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

.PHONY: demo
demo: ## a real scheduler on a real control plane, with and without Plimsoll; ends with Ctrl-C
	@echo "building the demo (about 5 minutes the first time) ..."
	@go build -ldflags '$(LDFLAGS)' -o bin/plimsoll-demo ./cmd/plimsoll-demo
	@bin/plimsoll-demo $(ARGS)

.PHONY: build
build: ## all programs, into bin/, and the links that make plimsoll a plugin of kubectl
	$(BUILD) -o bin/ ./cmd/...
	@ln -sf plimsoll bin/kubectl-plimsoll && ln -sf plimsoll bin/kubectl_complete-plimsoll

.PHONY: $(PROGRAMS:%=bin/%)
$(PROGRAMS:%=bin/%): bin/%:
	$(BUILD) -o $@ ./cmd/$*

.PHONY: images
images: ## images of the programs, with Docker; ARGS=--push pushes them to REGISTRY
	@for program in $(IMAGES); do \
	  docker buildx build --platform=$(PLATFORMS) --build-arg PROGRAM=$$program --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) --build-arg DATE=$(DATE) \
	    --tag $(REGISTRY)/$$program:$(TAG) $(ARGS) . || exit 1; \
	done

.PHONY: ko
ko: ## the same with ko, without Docker, pushed to REGISTRY; ARGS are flags of ko build
	VERSION=$(VERSION) COMMIT=$(COMMIT) DATE=$(DATE) KO_DOCKER_REPO=$(REGISTRY) \
	  go tool -modfile=tools/release/go.mod ko build --base-import-paths --platform=$(PLATFORMS) --tags=$(TAG) $(ARGS) $(IMAGES:%=./cmd/%)

.PHONY: sbom
sbom: build ## bills of materials of all programs (SPDX, JSON), into dist/
	@mkdir -p dist && cd tools/release && go build -o ../../dist/.sbom ./sbom
	@for program in $(PROGRAMS); do dist/.sbom bin/$$program $(VERSION) $(DATE) > dist/$$program.spdx.json || exit 1; done; rm dist/.sbom; ls dist/*.spdx.json

# The second build is in another folder and with an empty cache, so that nothing of
# the first is in it; for load-watcher that takes about 3 minutes.
REPRODUCE ?= load-watcher
.PHONY: reproducible
reproducible: ## that two builds of REPRODUCE (load-watcher) give the same bytes
	@other=$$(mktemp -d) && trap "rm -rf $$other" EXIT && \
	  mkdir $$other/sources && git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t $$other/sources && \
	  $(MAKE) --no-print-directory bin/$(REPRODUCE) && \
	  GOCACHE=$$other/cache $(MAKE) --no-print-directory -C $$other/sources bin/$(REPRODUCE) VERSION=$(VERSION) COMMIT=$(COMMIT) DATE=$(DATE) && \
	  sha256sum bin/$(REPRODUCE) $$other/sources/bin/$(REPRODUCE) && cmp bin/$(REPRODUCE) $$other/sources/bin/$(REPRODUCE) && echo "the same bytes"

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
	@echo "== building Helm, metrics-server, Karpenter, kubectl and a client of load watchers, which the tests start (about 7 minutes the first time)"
	@go tool -modfile=tools/helm/go.mod -n helm >/dev/null
	@cd test/metricsserver && go build -o /dev/null sigs.k8s.io/metrics-server/cmd/metrics-server
	@cd test/karpenter && go build -o /dev/null sigs.k8s.io/karpenter/kwok
	@cd test/loadwatcher && go build -o /dev/null .
	@cd test/kubectl && go build -o /dev/null .

.PHONY: test
test: test-servers ## all tests: unit, race, fuzz corpora, integration on the embedded control plane
	@echo "== tests (a first build of the Kubernetes parts takes about 5 minutes on 2 cores)"
	go test -timeout 30m ./...
	cd tools/release && go test -timeout 20m ./...
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

# The rights in the chart are those that markers ask for, beside the code that
# needs them: part=package.
CHART_GENERATED := charts/plimsoll/generated
RIGHTS := slack=internal/controllers/slack placement=internal/controllers/placement agent=internal/controllers/agent \
  default-policy=cmd/plimsoll-controller nodes=load/flags node-metrics=load/metricsserver

.PHONY: generate
generate: ## the generated code, CRDs, dashboards, and what the chart has of them
	$(TOOL) controller-gen object crd paths=./api/... output:crd:artifacts:config=config/crd
	go run ./internal/crdgen config/crd/cluster.open-cluster-management.io_placements.yaml
	@rm -rf config/crd/ocm
	$(TOOL) controller-gen crd:maxDescLen=0 $(foreach version,v1 v1beta2 v1beta1 v1alpha1,paths=$(OCM)/$(version)) output:crd:artifacts:config=config/crd/ocm
	go run ./internal/dashboardgen charts/plimsoll/files/dashboards
	@cd config/crd/ocm && rm $(OCM_UNUSED:%=cluster.open-cluster-management.io_%.yaml)
	@rm -rf $(CHART_GENERATED) && mkdir -p $(CHART_GENERATED)/crd/slack $(CHART_GENERATED)/crd/fleet $(CHART_GENERATED)/profiles
	cp config/crd/plimsoll.dev_*.yaml $(CHART_GENERATED)/crd/slack
	cp config/crd/cluster.*.yaml config/crd/ocm/*.yaml $(CHART_GENERATED)/crd/fleet
	cp examples/profiles/*.yaml $(CHART_GENERATED)/profiles
	@for right in $(RIGHTS); do \
	  $(TOOL) controller-gen rbac:roleName=$${right%%=*},fileName=$${right%%=*}.yaml paths=./$${right#*=} output:rbac:dir=$(CHART_GENERATED)/rbac || exit 1; \
	done

.PHONY: lint
lint: ## formatting, static checks and the import rules
	$(TOOL) golangci-lint run ./...

.PHONY: verify
verify: lint ## lint, and that what is generated is up to date
	@before=$$(git status --porcelain; git diff); $(MAKE) --no-print-directory generate; go mod tidy; \
	  after=$$(git status --porcelain; git diff); \
	  if [ "$$before" != "$$after" ]; then echo "generated files or go.mod are not up to date; run 'make generate' and 'go mod tidy':"; git status --short; exit 1; fi
	@for module in tools tools/helm tools/release test/metricsserver test/loadwatcher test/karpenter test/kubectl; do (cd $$module && go mod verify >/dev/null) || exit 1; done

.PHONY: fmt
fmt: ## format the code
	$(TOOL) golangci-lint fmt ./...
