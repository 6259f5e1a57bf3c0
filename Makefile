# All targets need Go and build the other tools that they use (golangci-lint, controller-gen, Helm, GoReleaser: see tools).
# The first build of the Kubernetes packages takes about 5 minutes on 2 cores.

SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
COMMIT  ?= $(shell git rev-parse --short HEAD 2>/dev/null)
DATE    ?= $(shell git log -1 --format=%cs 2>/dev/null)
MODULE  := github.com/plimsoll-k8s/plimsoll
LDFLAGS := -s -w -buildid= -X $(MODULE)/internal/version.Version=$(VERSION) -X $(MODULE)/internal/version.Commit=$(COMMIT) -X $(MODULE)/internal/version.Date=$(DATE)
TOOL    := go tool -modfile=tools/go.mod

# All go commands have the same flags, so that programs, tests, linters and lab share one build cache. The programs are static and
# depend only on the sources and the three variables above, not on the folder or the state of git.
export CGO_ENABLED := 0
export GOFLAGS     := -trimpath -buildvcs=false
BUILD    := go build -ldflags '$(LDFLAGS)'
PROGRAMS := $(notdir $(wildcard cmd/*))
# The programs that have images, named REGISTRY/program:TAG.
IMAGES   := plimsoll plimsoll-scheduler plimsoll-controller load-watcher
REGISTRY ?= ghcr.io/plimsoll-k8s
TAG      ?= $(VERSION)
PLATFORMS ?= linux/amd64,linux/arm64

# The packages that start goroutines or share state between them. Packages that import most of kube-scheduler are left out: the race
# detector compiles it a second time.
RACE := ./load ./load/endpoint ./load/prometheus ./load/provider ./load/service ./load/signalfx ./load/telemetry ./internal/fleet/... \
  ./internal/controllers/... ./internal/cli/base ./internal/cli/loadwatcher \
  ./internal/scheduling/cache ./internal/scheduling/shared ./internal/scheduling/prediction

FUZZTIME ?= 10s
SOAK     ?= 30m

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

.PHONY: demo
demo: ## run the scenarios on an embedded control plane, with and without Plimsoll; stop with Ctrl-C
	@echo "The demo starts etcd, kube-apiserver and kube-scheduler on 127.0.0.1, runs scenarios with the default profile and"
	@echo "with those of Plimsoll, and leaves a cluster of simulated nodes to try. It needs no cluster and changes none."
	@echo "building it (about 5 minutes the first time on 2 cores) ..."
	@$(BUILD) -o bin/ ./cmd/plimsoll-demo ./cmd/plimsoll
	@command -v kubectl >/dev/null || (cd test/kubectl && go build -o ../../bin/kubectl .)
	@bin/plimsoll-demo $(ARGS)

.PHONY: build
build: ## build all programs into bin/, with the links that make plimsoll a kubectl plugin
	$(BUILD) -o bin/ ./cmd/...
	@ln -sf plimsoll bin/kubectl-plimsoll && ln -sf plimsoll bin/kubectl_complete-plimsoll

.PHONY: $(PROGRAMS:%=bin/%)
$(PROGRAMS:%=bin/%): bin/%:
	$(BUILD) -o $(or $(BINARY),$@) ./cmd/$*

RELEASE_TOOL := go tool -modfile=tools/goreleaser/go.mod

# The texts are beside the main packages for ko, which adds kodata to images, and those of all programs in bin for archives.
.PHONY: licenses
licenses: ## write the license texts of the modules in the programs to bin/licenses and cmd/*/kodata
	@for program in $(IMAGES); do \
	  $(RELEASE_TOOL) go-licenses save ./cmd/$$program --save_path=cmd/$$program/kodata/licenses --force --ignore=$(MODULE) || exit 1; \
	  cp LICENSE cmd/$$program/kodata/ && cp "$$(go env GOROOT)/LICENSE" cmd/$$program/kodata/licenses/Go; \
	done
	@$(RELEASE_TOOL) go-licenses save ./cmd/... --save_path=bin/licenses --force --ignore=$(MODULE)
	@cp "$$(go env GOROOT)/LICENSE" bin/licenses/Go

.PHONY: images
images: licenses ## build the images with ko, without Docker, and push them to REGISTRY
	@GOFLAGS='$(GOFLAGS) "-ldflags=$(LDFLAGS)"' KO_DOCKER_REPO=$(REGISTRY) \
	  $(RELEASE_TOOL) ko build --base-import-paths --platform=$(PLATFORMS) --tags=$(TAG) $(IMAGES:%=./cmd/%)

.PHONY: release
release: ## make the files of a release in dist, as .ci/release does, without images and without publishing
	$(RELEASE_TOOL) goreleaser release --snapshot --clean --skip=ko

# The check fetches the database of vuln.go.dev, or reads the copy in GOVULNDB=file:///FOLDER, and fails
# without one.
.PHONY: vulncheck
vulncheck: ## check all programs for known vulnerabilities in the functions that they call
	@[ -z "$(GOVULNDB)" ] || [ -s "$(GOVULNDB:file://%=%)/index/modules.json" ] || { \
	  echo "GOVULNDB: found no index/modules.json in $(GOVULNDB): must be file:///FOLDER with an unpacked https://vuln.go.dev/vulndb.zip"; exit 2; }
	go tool -modfile=tools/vulncheck/go.mod govulncheck $(if $(GOVULNDB),-db $(GOVULNDB)) ./cmd/...

.PHONY: mkdocs docs docs-serve
mkdocs:
	@mkdocs build --help 2>/dev/null | grep -q material || { \
	  echo "== installing mkdocs with its material theme, which build the documentation site (Debian packages)"; \
	  sudo=$$(test "$$(id -u)" = 0 || echo sudo); \
	  $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends mkdocs mkdocs-material >/dev/null; } || { \
	  echo "the documentation site needs mkdocs and mkdocs-material: install them, for example with pip"; exit 1; }
docs: mkdocs ## build the documentation site into site/
	mkdocs build --strict --quiet
docs-serve: mkdocs ## show the documentation site at http://127.0.0.1:8000 and update it when a page changes
	mkdocs serve

# The servers and tools of other projects that tests with the build tag foreign start.
.PHONY: test-servers
test-servers: mkdocs
	@command -v prometheus >/dev/null && command -v promtool >/dev/null || { \
	  echo "== installing Prometheus, which the tests start (Debian package prometheus)"; \
	  sudo=$$(test "$$(id -u)" = 0 || echo sudo); \
	  $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends prometheus >/dev/null; } || { \
	  echo "the tests need a Prometheus server: install prometheus and promtool and add them to PATH"; exit 1; }
	@command -v chromium >/dev/null || { \
	  echo "== installing Chromium, in which the tests open reports (Debian package chromium)"; \
	  sudo=$$(test "$$(id -u)" = 0 || echo sudo); \
	  $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; } || { \
	  echo "the tests need a browser: install chromium and add it to PATH"; exit 1; }
	@command -v npm >/dev/null || { \
	  echo "== installing npm, with which the rules of accessibility are installed (Debian package npm)"; \
	  sudo=$$(test "$$(id -u)" = 0 || echo sudo); \
	  $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends npm >/dev/null; } || { \
	  echo "the tests need axe-core: install npm and add it to PATH"; exit 1; }
	@python3 -c 'import pandas' 2>/dev/null || /usr/bin/python3 -c 'import pandas' 2>/dev/null || { \
	  echo "== installing pandas, with which a test opens a recording (Debian package python3-pandas)"; \
	  sudo=$$(test "$$(id -u)" = 0 || echo sudo); \
	  $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends python3-pandas >/dev/null; } || { \
	  echo "the tests need pandas: install python3 and pandas"; exit 1; }
	@cd test/browser && npm ci --silent --no-audit --no-fund --ignore-scripts
	@echo "== building Helm, metrics-server, kube-state-metrics, Karpenter, kubectl and a load-watcher client, which the tests start (about 10 minutes the first time)"
	@go tool -modfile=tools/helm/go.mod -n helm >/dev/null
	@cd test/metricsserver && go build -o /dev/null sigs.k8s.io/metrics-server/cmd/metrics-server
	@cd test/kubestatemetrics && go build -o /dev/null k8s.io/kube-state-metrics/v2
	@cd test/karpenter && go build -o /dev/null sigs.k8s.io/karpenter/kwok
	@cd test/loadwatcher && go build -o /dev/null .
	@cd test/kubectl && go build -o /dev/null .

# Tests that need servers or tools of other projects have the build tag foreign. make test runs all others, and test-foreign only these.
FOREIGN  := $(shell grep -rl --include='*_test.go' '^//go:build foreign' internal load test)
TIMES    := bin/test-times
GO_TEST  := go test -vet=off -timeout 30m

.PHONY: test
test: ## run the tests that need Go only: unit, fuzz corpora, command line, integration on the embedded control plane
	@echo "== tests (a first build of the Kubernetes parts takes about 5 minutes on 2 cores)"
	@mkdir -p bin && rm -f $(TIMES)
	@$(GO_TEST) $$(go list ./... | grep -v /test/bench$$) | tee -a $(TIMES)
	@echo "== passed the tests that need Go only; not run: the tests with servers and tools of other projects ($(words $(FOREIGN)) files" \
	  "with the build tag foreign) and those of tools and lab, see make test-all"

.PHONY: test-all
test-all: test test-foreign test-nodes-if-possible ## run all tests; installs Prometheus, Chromium, npm, mkdocs and pandas if they are missing, and builds other servers

.PHONY: test-foreign
test-foreign: test-servers ## run the tests of test-all that are not in test
	@mkdir -p bin
	@$(GO_TEST) -tags=foreign -run "^($$(sed -nE 's/^func (Test[A-Za-z0-9_]+)\(t .*/\1/p' $(FOREIGN) | paste -sd'|'))$$" \
	  $(sort $(dir $(FOREIGN:%=./%))) | tee -a $(TIMES)
	cd tools/goreleaser && go test -vet=off -timeout 20m ./...
	cd tools/vulncheck && go test -vet=off ./...
	@$(MAKE) --no-print-directory lab

# Real nodes: kubelets in namespaces of this machine (lab/nodes). They need root, and programs of other projects in bin/nodes.
NODES := bin/nodes
KUBELET_VERSION := $(shell sed -nE 's/^\sk8s.io\/kubernetes (v\S+).*/\1/p' lab/nodes/kubelet/go.mod)
VERSION_FLAGS = -X k8s.io/component-base/version.gitVersion=$(KUBELET_VERSION) $(shell echo $(KUBELET_VERSION) | \
  sed -E 's/v([0-9]+)\.([0-9]+).*/-X k8s.io\/component-base\/version.gitMajor=\1 -X k8s.io\/component-base\/version.gitMinor=\2/')

# Each program that real nodes need, with its Debian package, which may have come from elsewhere (containerd and runc of Docker).
.PHONY: nodes-packages
nodes-packages:
	@missing=; for program in containerd:containerd runc:runc ip:iproute2 prometheus:prometheus /usr/lib/cni/bridge:containernetworking-plugins; do \
	  command -v "$${program%:*}" >/dev/null || missing="$$missing $${program#*:}"; done; \
	[ -z "$$missing" ] || { echo "== installing Debian packages that real nodes need:$$missing"; \
	  sudo=$$(test "$$(id -u)" = 0 || echo sudo); \
	  $$sudo apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends $$missing >/dev/null; } || { \
	  echo "cannot install what real nodes need:$$missing"; exit 1; }

.PHONY: nodes-programs
nodes-programs: nodes-packages
	@echo "== building kubelet, metrics-server, kube-state-metrics, kubectl and the programs of Plimsoll for real nodes (about 5 minutes the first time)"
	@cd lab/nodes/kubelet && go build -ldflags '-s -w $(VERSION_FLAGS)' -o ../../../$(NODES)/kubelet k8s.io/kubernetes/cmd/kubelet
	@cd test/metricsserver && go build -ldflags '-s -w' -o ../../$(NODES)/metrics-server sigs.k8s.io/metrics-server/cmd/metrics-server
	@cd test/kubestatemetrics && go build -ldflags '-s -w' -o ../../$(NODES)/kube-state-metrics k8s.io/kube-state-metrics/v2
	@cd test/kubectl && go build -ldflags '-s -w' -o ../../$(NODES)/kubectl .
	@go tool -modfile=tools/helm/go.mod -n helm >/dev/null
	@$(BUILD) -o $(NODES)/ ./cmd/plimsoll ./cmd/plimsoll-scheduler ./cmd/plimsoll-controller ./cmd/load-watcher
	@cd lab && go build -ldflags '-s -w' -o ../$(NODES)/ ./nodes ./nodes/work ./nodes/experiment ./nodes/calibration ./nodes/scheduler

.PHONY: nodes
nodes: nodes-programs ## run a cluster with real kubelets on this machine, in namespaces of its own (Linux, root)
	@$(NODES)/nodes -bin $(NODES) $(ARGS)

.PHONY: test-nodes
test-nodes: nodes-programs ## run the tests on real nodes (Linux, root)
	@$(NODES)/nodes check
	cd lab && go test -vet=off -count=1 -timeout 15m -p 1 -v -tags nodes ./nodes/lifecycle ./nodes/tests

# The tests on real nodes where they can run, and what is missing elsewhere. A program that does not build is an error.
.PHONY: test-nodes-if-possible
test-nodes-if-possible:
	@if [ "$$(uname)" != Linux ] || [ "$$(id -u)" != 0 ]; then \
	  echo "== not run: the tests on real nodes, which need Linux and root: sudo make test-nodes"; \
	elif ! $(MAKE) --no-print-directory nodes-packages; then \
	  echo "== not run: the tests on real nodes, which need these packages"; \
	elif ! (cd lab && go build -ldflags '-s -w' -o ../$(NODES)/ ./nodes); then exit 1; \
	elif ! missing=$$($(NODES)/nodes check 2>&1); then \
	  echo "== not run: the tests on real nodes: $$missing"; \
	else $(MAKE) --no-print-directory test-nodes; fi

.PHONY: test-times
test-times: ## print the twenty slowest packages of the last make test or test-all
	@sort -k3 -rn $(TIMES) | sed -n '/^ok/p' | head -20

.PHONY: race
race: ## run the tests of packages with goroutines under the race detector
	CGO_ENABLED=1 go test -race -vet=off -timeout 20m -skip '^TestHostileExpressions$$' $(RACE) # these have limits of time

.PHONY: test-versions
test-versions: test-servers ## test with the API servers of Kubernetes 1.34 to 1.37, and write the table of docs/compatibility.md
	go run ./test/versions $(ARGS)

# The modules of test/versions state the versions of all modules of Kubernetes.
LIBRARY := ./plugins/... ./load/... ./api/config/...
.PHONY: test-library
test-library: ## test the plugins as a library with Kubernetes VERSION (1.36 or 1.35)
	@[ -f "test/versions/$(VERSION)/go.mod" ] || { echo "VERSION: invalid value $(VERSION): must be 1.36 or 1.35"; exit 2; }
	@echo "== testing the plugins with Kubernetes $(VERSION) (the first build takes about 8 minutes on 2 cores)"
	@dir=$$(mktemp -d) && trap "rm -rf $$dir" EXIT && cp go.mod $$dir/go.mod && cat go.sum test/versions/$(VERSION)/go.sum >$$dir/go.sum && \
	  go mod edit $$(sed -nE 's#^\s(k8s.io/\S+) => \S+ (v.*)#-replace=\1=\1@\2#p; s#^\s(k8s.io/kubernetes) (v\S+).*#-replace=\1=\1@\2#p' \
	    test/versions/$(VERSION)/go.mod) $$dir/go.mod && \
	  go test -modfile=$$dir/go.mod -mod=mod $(LIBRARY)

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (10s)
	@for package in $$(go list -f '{{.Dir}}' ./...) $$(go list -C lab -f '{{.Dir}}' ./...); do \
	  for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(f .*/\1/p' $$package/*_test.go 2>/dev/null); do \
	    echo "== $$package $$target"; go test -C $$package -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x . || exit 1; \
	  done; \
	done

.PHONY: soak
soak: ## run load watcher, controllers and scheduler for SOAK (30m) with faults and print their memory and goroutines
	go test -timeout 24h -count 1 -v -run '^TestSoak$$' ./internal/cli/loadwatcher ./test/chaos -args -soak=$(SOAK)

ROUNDS ?= 200
SEED ?= 0
.PHONY: chaos
chaos: ## run ROUNDS (200) rounds of random faults against the controllers, from a SEED (0: the time)
	go test -count=1 -timeout 12h -v -run '^TestChaos$$' ./test/chaos -args -rounds=$(ROUNDS) -seed=$(SEED)

.PHONY: bench
bench: ## run the benchmarks of docs/benchmarks.md
	go test -run '^$$' -bench . -benchmem ./internal/scheduling/predict ./internal/autoscaler ./internal/controllers/agent ./internal/fleet/... ./load/... ./plugins/... ./slack/...
	go test -run '^$$' -bench . -benchtime 1x -timeout 30m ./internal/cli/loadwatcher ./internal/whatif/scaling ./test/bench

.PHONY: lab
lab: ## test the experiments, which are a module of their own (lab/README.md)
	cd lab && go test -vet=off -timeout 20m ./...

# CRDs of Open Cluster Management, without descriptions, for hubs that lack them; PlacementDecision has a version more. Two types are
# left out: Placement, which this project defines itself, and ClusterClaim, which it does not read.
OCM        := open-cluster-management.io/api/cluster
OCM_UNUSED := placements clusterclaims

# The RBAC rules of the chart come from the markers beside the code that needs them:
# component=package.
CHART_GENERATED := charts/plimsoll/generated
RIGHTS := slack=internal/controllers/slack placement=internal/controllers/placement agent=internal/controllers/agent \
  default-policy=internal/cli/controller placeholder-pods=slack nodes=load/flags node-metrics=load/metricsserver \
  pod-metrics=internal/scheduling/shared shadow=internal/cli/shadow

.PHONY: generate
generate: ## regenerate code, CRDs and RBAC
	$(TOOL) controller-gen object crd paths=./api/... output:crd:artifacts:config=config/crd
	@rm -rf config/crd/ocm
	$(TOOL) controller-gen crd:maxDescLen=0 $(foreach version,v1 v1beta2 v1beta1 v1alpha1,paths=$(OCM)/$(version)) output:crd:artifacts:config=config/crd/ocm
	go run ./hack/crdgen config/crd/plimsoll.dev_resourceslacks.yaml config/crd/plimsoll.dev_clustercapacities.yaml \
	  config/crd/cluster.open-cluster-management.io_placements.yaml \
	  config/crd/ocm/cluster.open-cluster-management.io_placementdecisions.yaml
	@cd config/crd/ocm && rm $(OCM_UNUSED:%=cluster.open-cluster-management.io_%.yaml)
	@rm -rf $(CHART_GENERATED) && mkdir -p $(CHART_GENERATED)/crd/slack $(CHART_GENERATED)/crd/capacity $(CHART_GENERATED)/crd/fleet $(CHART_GENERATED)/profiles
	cp config/crd/plimsoll.dev_resourceslacks.yaml $(CHART_GENERATED)/crd/slack
	cp config/crd/plimsoll.dev_clustercapacities.yaml $(CHART_GENERATED)/crd/capacity
	cp config/crd/cluster.*.yaml config/crd/ocm/*.yaml $(CHART_GENERATED)/crd/fleet
	cp examples/profiles/*.yaml $(CHART_GENERATED)/profiles
	@for right in $(RIGHTS); do \
	  $(TOOL) controller-gen rbac:roleName=$${right%%=*},fileName=$${right%%=*}.yaml paths=./$${right#*=} output:rbac:dir=$(CHART_GENERATED)/rbac || exit 1; \
	done

# The files without the words of hack/words.txt: not those generated from types of other projects.
PROSE := '*.go' '*.md' '*.yaml' '*.yml' '*.tpl' '*.html' '*.sh' '*.txt' '*.txtar' Makefile \
  ':!config/crd/ocm' ':!charts/plimsoll/generated' ':!hack/words.txt'

.PHONY: lint
lint: ## check formatting, import rules, workflows, language and common mistakes
	@! git grep -nIiwE -f hack/words.txt -- $(PROSE) || { echo 'hack/words.txt lists these words: see "Language" in CONTRIBUTING.md'; exit 1; }
	$(TOOL) golangci-lint run ./...
	cd lab && go tool -modfile=../tools/go.mod golangci-lint run ./...
	go tool -modfile=tools/actionlint/go.mod actionlint -shellcheck= -pyflakes=

.PHONY: verify
verify: lint ## run lint and check that generated files are up to date
	@before=$$(git status --porcelain; git diff); $(MAKE) --no-print-directory generate; go mod tidy; (cd lab && go mod tidy); \
	  after=$$(git status --porcelain; git diff); \
	  if [ "$$before" != "$$after" ]; then echo "generated files or go.mod are out of date; run 'make generate' and 'go mod tidy', also in lab:"; git status --short; exit 1; fi
	@for module in tools tools/actionlint tools/helm tools/goreleaser tools/vulncheck test/metricsserver test/kubestatemetrics test/loadwatcher test/karpenter test/kubectl lab/nodes/kubelet lab/ocm/suite lab/peers/released test/versions/1.34 test/versions/1.35 test/versions/1.36; do (cd $$module && go mod verify >/dev/null) || exit 1; done

.PHONY: fmt
fmt: ## format the code
	$(TOOL) golangci-lint fmt ./...
