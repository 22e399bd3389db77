# Every command of this repository. `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BIN := $(CURDIR)/bin
DIST := $(CURDIR)/dist
export PATH := $(BIN):$(PATH)

# The images that `make deploy` runs, and that of `make run` and of the end-to-end tests.
IMG ?= odh/mpijob-operator:dev
AGENT_IMG ?= odh/mpijob-agent:dev
SAMPLE_IMG ?= odh/mpi-sample-openmpi:dev
# Which sample images to build and load; `make e2e` takes all of them.
SAMPLES ?= openmpi
NODES ?= 2
# What else the cluster has, such as trainer or trainer=v2.1.0, or none; empty: what it has.
WITH ?=
# native: the cluster's scheduler places gangs (Kubernetes' gate GenericWorkload); none: it does not; empty: as it is.
GANGS ?=
# Which end-to-end tests to run, a regular expression over their names in any case (failures, TestPi), or which suite of the benchmark; empty: all.
SUITE ?=
# How many end-to-end tests run at once. They wait more than they compute; what computes, ranks, they count themselves.
PARALLEL ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
# Which cases of the benchmark, a regular expression over their names; empty: all.
CASES ?=
# Where the command line goes.
TO ?= $(HOME)/.local/bin
# The folders with a go.mod of their own that are ours to test and lint.
MODULES := . hack/cluster hack/images hack/bench test/conformance test/s3

# With KUBECONFIG set that cluster is used, and none is made.
ifdef KUBECONFIG
export KUBECTL := kubectl
else
export KUBECTL := $(BIN)/kubectl --kubeconfig=$(CURDIR)/.cluster/kubeconfig
endif

.PHONY: help
help: ## List these commands.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {print "\n" substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo; echo "With KUBECONFIG set, run, deploy and e2e use that cluster; name images that it can pull in IMG, AGENT_IMG and SAMPLE_IMG."

##@ Use

.PHONY: run
run: deploy ## Run a real MPI job on a real Kubernetes, made on this machine.
	@hack/run.sh $(SAMPLE_IMG)

.PHONY: deploy
deploy: $(if $(KUBECONFIG),,cluster-up load) ## Install the operator.
	@hack/deploy.sh $(IMG) $(AGENT_IMG) $(if $(KUBECONFIG),,$(DIST)/operator.tar)

.PHONY: undeploy
undeploy: ## Remove the operator, its CRD and with it every MPIJob.
	$(KUBECTL) delete --ignore-not-found -k config/default

.PHONY: install-cli
install-cli: ## Install kubectl odh mpijob and oc odh mpijob with their completion into TO.
	@mkdir -p $(TO)
	@CGO_ENABLED=0 go build -ldflags '-s -w' -o $(TO)/kubectl-odh-mpijob ./cmd/kubectl-odh-mpijob
	@ln -sf kubectl-odh-mpijob $(TO)/oc-odh-mpijob
	@for name in kubectl oc; do $(TO)/kubectl-odh-mpijob completion $$name >$(TO)/$${name}_complete-odh-mpijob; chmod +x $(TO)/$${name}_complete-odh-mpijob; done
	@echo "kubectl odh mpijob is in $(TO)"; case ":$$PATH:" in *":$(TO):"*) ;; *) echo "which is not in your PATH yet";; esac

.PHONY: cluster-up
cluster-up: $(BIN)/cluster ## Start a real Kubernetes with NODES nodes on this machine; WITH=trainer: with Kubeflow Trainer.
	@cluster up --nodes $(NODES) $(if $(WITH),--with '$(WITH)') \
	  $(if $(GANGS),--feature-gates '$(if $(filter native,$(GANGS)),GenericWorkload=true)' --runtime-config '$(if $(filter native,$(GANGS)),scheduling.k8s.io/v1beta1=true)')
	@ln -sfn "$$(cluster binaries)/kubectl" $(BIN)/kubectl

.PHONY: cluster-down
cluster-down: $(BIN)/cluster ## Stop it and remove all of it.
	@cluster down

.PHONY: images
images: $(BIN)/images ## Build the images, as archives in dist/.
	@mkdir -p $(DIST)
	@images program --name odh/mpijob-operator:dev --package ./cmd/operator --out $(DIST)/operator.tar
	@GOFIPS140=v1.0.0 images program --name odh/mpijob-agent:dev --package ./cmd/agent --path /mpi-agent --out $(DIST)/agent.tar
	@printf '%s\n' $(SAMPLES) | xargs -P 2 -I {} images sample {} --out $(DIST)/{}.tar

.PHONY: krew
krew: ## Pack the command line for VERSION and write its krew manifest; RELEASES is the address of the packages' folder.
	@hack/krew.sh '$(VERSION)' '$(RELEASES)' $(PLATFORMS)

.PHONY: load
load: images $(BIN)/cluster
	@cluster load $(DIST)/operator.tar $(DIST)/agent.tar $(SAMPLES:%=$(DIST)/%.tar)

##@ Check

.PHONY: test
test: ## Test everything that this machine can test, and say what it cannot.
	@hack/test.sh

.PHONY: unit
unit: $(BIN)/cluster ## Test the packages; those that need an API server get a real one.
	@assets="$$(cluster binaries)"; for module in $(MODULES); do echo "== go test $$module"; \
	  (cd $$module && KUBEBUILDER_ASSETS="$$assets" go test $$(go list ./... | grep -v /test/e2e)); done

.PHONY: e2e
e2e: SAMPLES := openmpi openmpi5 mpich intelmpi openmpi-sshd
e2e: WITH := trainer
e2e: $(if $(KUBECONFIG),,deploy) $(BIN)/kubectl-odh-mpijob ## Test on a real cluster with real MPI; SUITE picks tests by name.
	@KUBECONFIG="$${KUBECONFIG:-$(CURDIR)/.cluster/kubeconfig}" SAMPLE_IMG=$(SAMPLE_IMG) AGENT_IMG=$(AGENT_IMG) \
	  go test ./test/e2e -count=1 -v -timeout 60m -parallel $(PARALLEL) $(if $(SUITE),-run '(?i)$(SUITE)')

.PHONY: conformance
conformance: $(BIN)/cluster ## Run mpi-operator's own integration tests against our operator.
	@cd test/conformance && KUBEBUILDER_ASSETS="$$(cluster binaries)" go test -v -count=1 ./...

.PHONY: bench
bench: $(BIN)/cluster $(BIN)/bench ## Measure our operator beside mpi-operator; SUITE and CASES pick what.
	@KUBEBUILDER_ASSETS="$$(cluster binaries)" bench $(if $(SUITE),--suite $(SUITE)) $(if $(CASES),--cases '$(CASES)') $(if $(LATENCY),--latency $(LATENCY))

.PHONY: bench-smallest
bench-smallest: $(BIN)/cluster $(BIN)/bench ## Does the benchmark itself still work? Its smallest case, once.
	@KUBEBUILDER_ASSETS="$$(cluster binaries)" bench --smallest

.PHONY: verify
verify: generate fmt lint ## Generate, format, lint; fails if that changes anything, or if something is not committed.
	@test -z "$$(git status --porcelain)" || { git status --short; git --no-pager diff | head -100; \
	  echo "verify: the tree is not clean: commit what is listed above, or what generation and formatting changed"; exit 1; }

.PHONY: generate
generate: $(BIN)/controller-gen ## Write the generated files anew.
	@controller-gen crd:generateEmbeddedObjectMeta=true paths=github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1 output:crd:dir=config/crd
	@controller-gen object crd paths=./api/... output:crd:dir=config/crd
	@controller-gen rbac:roleName=mpijob-operator paths=./internal/operator/... output:rbac:dir=config/rbac

.PHONY: fmt
fmt: $(BIN)/golangci-lint ## Format the code.
	@for module in $(MODULES); do (cd $$module && golangci-lint fmt --config $(CURDIR)/.golangci.yml); done

.PHONY: lint
lint: $(BIN)/golangci-lint ## Look for mistakes, and for imports that the architecture does not allow.
	@for module in $(MODULES); do echo "== lint $$module"; (cd $$module && golangci-lint run --config $(CURDIR)/.golangci.yml ./...); done

.PHONY: clean
clean: ## Remove what the commands made, but for the cluster.
	rm -rf $(BIN) $(DIST)

# Go knows best whether these are up to date.
.PHONY: $(BIN)/cluster $(BIN)/images $(BIN)/bench $(BIN)/kubectl-odh-mpijob $(BIN)/controller-gen $(BIN)/golangci-lint
$(BIN)/cluster $(BIN)/images $(BIN)/bench:
	@cd hack/$(@F) && go build -o $@ .
$(BIN)/kubectl-odh-mpijob:
	@$(MAKE) install-cli TO=$(BIN) >/dev/null
$(BIN)/controller-gen $(BIN)/golangci-lint:
	@cd hack/tools/$(@F) && GOBIN=$(BIN) go install tool
