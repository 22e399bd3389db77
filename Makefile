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
# The version of Kubernetes of the one-machine cluster, such as 1.29; empty: what the cluster has, the newest for a new one.
KUBERNETES ?=
# The address of a folder that make mirror has written: what it has is fetched instead of compiled.
MIRROR ?=
ifneq ($(MIRROR),)
export MPIJOB_MIRROR := $(MIRROR)
endif
# What else the cluster has, such as trainer or trainer=v2.1.0, or none; empty: what it has.
WITH ?=
# native: the cluster's scheduler places gangs (Kubernetes' gate GenericWorkload); none: it does not; empty: as it is.
GANGS ?=
# Which end-to-end tests to run, a regular expression over their names in any case (failures, TestPi), or which suite of the benchmark; empty: all.
SUITE ?=
# How many end-to-end tests run at once. They wait more than they compute; what computes, ranks, they count themselves.
PARALLEL ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
# Set: `make e2e` gives each namespace a default queue, so that Kueue admits all jobs (WITH=kueue,trainer); topology: and selects their nodes (TAS).
QUEUED ?=
# How often `make e2e` repeats a test that failed, if at most three did. The summary names it as failed although it passes then.
RETRY ?= 1
# Which cases of the benchmark, a regular expression over their names; empty: all.
CASES ?=
# The commit whose operator and agent the suites mpijob, agent and start of the benchmark measure instead of mpi-operator and OpenSSH; empty: none.
BEFORE ?=
# How often each contestant of the benchmark runs each case, but for the suites list, dashboard and cli; empty: as the suite does.
RUNS ?=
# Set: the benchmark cuts no run short, and the suite scale has 3,000 jobs in addition.
FULL ?=
# The version that is stamped into every binary: a tag, or what git describes the commit as.
VERSION ?= $(shell git describe --tags --match 'v*' --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X opendatahub.io/mpijob/internal/version.stamp=$(VERSION)
# Where the command line goes.
TO ?= $(HOME)/.local/bin
SDK := $(CURDIR)/sdk/python
# It installs the programs of Python: for the SDK, and for the documentation site.
UV_PROGRAM := $(SDK)/.uv/bin/uv
# The folders with a go.mod of their own that are ours to test and lint.
MODULES := . hack/cluster hack/images hack/install hack/olm hack/registry hack/bench hack/monitoring test/conformance test/s3 test/nfs test/collector

# current: `make run` and `make deploy` use the cluster of kind, k3d, k3s or minikube that the kubeconfig names, and load the images into it.
CLUSTER ?=
ifneq ($(filter-out current,$(CLUSTER)),)
$(error CLUSTER=$(CLUSTER) is unknown; use CLUSTER=current, or set KUBECONFIG)
endif
ifeq ($(CLUSTER),current)
export KUBECONFIG ?= $(HOME)/.kube/config
endif

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
run: $(if $(KUBECONFIG),,offer) deploy ## Run a real MPI job on a real Kubernetes, made on this machine, and start the dashboard; CLUSTER=current: on that of your kubeconfig.
	@hack/run.sh $(SAMPLE_IMG)
	@if reason=$$(hack/node.sh); then $(MAKE) dashboard && hack/dashboard.sh start $(BIN)/dashboard; else echo "run: the dashboard is not started: $$reason"; fi

.PHONY: deploy
deploy: $(if $(CLUSTER),load-current,$(if $(KUBECONFIG),,cluster-up load)) ## Install the operator.
	@hack/deploy.sh $(IMG) $(AGENT_IMG) $(if $(OWN_IMAGES),$(DIST)/operator.tar)

# Images of this tree are used on a cluster that they can be loaded into, unless others are named.
OWN_IMAGES = $(if $(CLUSTER),$(if $(filter file,$(origin IMG)),yes),$(if $(KUBECONFIG),,yes))

.PHONY: load-current
load-current: $(if $(OWN_IMAGES),images)
	@$(if $(OWN_IMAGES),hack/existing.sh load $(DIST)/operator.tar $(DIST)/agent.tar $(SAMPLES:%=$(DIST)/%.tar),:)

.PHONY: offer
offer:
	@hack/existing.sh offer

# The pages are built by Node.js, if their sources have changed; the programs build without it.
.PHONY: dashboard
dashboard: web/dist/app/index.html ## Build the dashboard with its pages, as bin/dashboard; requires Node.js 20.19 or later.
	@CGO_ENABLED=0 go build -ldflags '-s -w $(LDFLAGS)' -o $(BIN)/dashboard ./cmd/dashboard

.PHONY: dashboard-image
dashboard-image: dashboard $(BIN)/images ## Build the image of the dashboard, as dist/dashboard.tar.
	@mkdir -p $(DIST)
	@images program --name odh/mpijob-dashboard:dev --package ./cmd/dashboard --ldflags '$(LDFLAGS)' --out $(DIST)/dashboard.tar

.PHONY: dashboard-run
dashboard-run: dashboard ## Start the dashboard on this machine, for the cluster of make run or of KUBECONFIG.
	@hack/dashboard.sh run $(BIN)/dashboard

.PHONY: dashboard-deploy
dashboard-deploy: dashboard-image $(BIN)/cluster ## Install the dashboard on the cluster of make run.
	@cluster load $(DIST)/dashboard.tar
	@hack/dashboard-deploy.sh odh/mpijob-dashboard:dev $(DIST)/dashboard.tar

web/dist/app/index.html: web/node_modules/.package-lock.json $(shell git ls-files web/src web/public web/index.html web/package.json web/tsconfig.json web/vite.config.js web/vite.remote.config.js)
	@echo "dashboard: building the pages"
	@cd web && { npm run --silent build -- --logLevel warn || { rm -f dist/app/index.html; exit 1; }; }

web/node_modules/.package-lock.json: web/package-lock.json
	@reason=$$(hack/node.sh) || { echo "dashboard: $$reason"; exit 1; }
	@cd web && npm ci --ignore-scripts --no-fund --no-audit --loglevel=error

.PHONY: undeploy
undeploy: ## Remove the operator, and keep its namespace and the CRDs with all jobs and reports; CRDS=1 deletes these, too.
	@manifests=$$(hack/manifests.sh) && set -x && $(KUBECTL) delete --ignore-not-found -k "$$manifests" $(if $(CRDS),,-l '!mpi.opendatahub.io/keep')

.PHONY: install-cli
install-cli: ## Install kubectl odh mpijob and oc odh mpijob with their completion into TO.
	@mkdir -p $(TO)
	@CGO_ENABLED=0 go build -ldflags '-s -w $(LDFLAGS)' -o $(TO)/kubectl-odh-mpijob ./cmd/kubectl-odh-mpijob
	@ln -sf kubectl-odh-mpijob $(TO)/oc-odh-mpijob
	@for name in kubectl oc; do $(TO)/kubectl-odh-mpijob completion $$name >$(TO)/$${name}_complete-odh-mpijob; chmod +x $(TO)/$${name}_complete-odh-mpijob; done
	@echo "kubectl odh mpijob is in $(TO)"; case ":$$PATH:" in *":$(TO):"*) ;; *) echo "which is not in your PATH yet";; esac

.PHONY: cluster-up
cluster-up: $(BIN)/cluster ## Start a real Kubernetes with NODES nodes on this machine; KUBERNETES=1.29: that version; WITH=trainer: with Kubeflow Trainer.
	@cluster up --nodes $(NODES) $(if $(KUBERNETES),--kubernetes '$(KUBERNETES)') $(if $(WITH),--with '$(WITH)') \
	  $(if $(GANGS),--feature-gates '$(if $(filter native,$(GANGS)),GenericWorkload=true)' --runtime-config '$(if $(filter native,$(GANGS)),scheduling.k8s.io/v1beta1=true)')
	@ln -sfn "$$(cluster binaries)/kubectl" $(BIN)/kubectl

.PHONY: mirror
mirror: $(BIN)/cluster ## Write the programs of the cluster to the folder TO or dist/mirror, for make run MIRROR=URL on other machines; UPDATE=1 also writes their checksums.
	@cluster mirror $(if $(UPDATE),--update) $(if $(filter-out file,$(origin TO)),$(TO),$(DIST)/mirror)

.PHONY: cluster-down
cluster-down: $(BIN)/cluster ## Stop it and remove all of it.
	@hack/dashboard.sh stop
	@cluster down

.PHONY: images
images: $(BIN)/images ## Build the images, as archives in dist/; FIPS=1: the operator with the FIPS 140-3 module, as in releases.
	@mkdir -p $(DIST)
	@$(if $(FIPS),GOFIPS140=v1.0.0) images program --name odh/mpijob-operator:dev --package ./cmd/operator --ldflags '$(LDFLAGS)' --out $(DIST)/operator.tar
	@GOFIPS140=v1.0.0 images program --name odh/mpijob-agent:dev --package ./cmd/agent --path /mpi-agent \
	  --library /lib/libmpi-profile.so=internal/agent/library/build.sh \
	  --library /lib/libmpi-exchange.so=internal/agent/library/build.sh \
	  --library /lib/libmpi-gpus.so=internal/agent/library/build.sh \
	  --link /bin/ssh=../mpi-agent --folder /run --ldflags '$(LDFLAGS)' --out $(DIST)/agent.tar
	@printf '%s\n' $(SAMPLES) | xargs -P 2 -I {} images sample {} --out $(DIST)/{}.tar

# Of the discovery of targets, only that by Kubernetes is compiled. Debian's package has it not.
.PHONY: prometheus-image
prometheus-image: $(BIN)/images ## Build an image of Prometheus for its tests, as dist/prometheus.tar; compiled once, in 6 minutes of CPU time.
	@mkdir -p $(DIST)
	@GOFLAGS=-tags=remove_all_sd,enable_kubernetes_sd images program --name odh/prometheus:dev --dir hack/monitoring \
	  --package github.com/prometheus/prometheus/cmd/prometheus --out $(DIST)/prometheus.tar

.PHONY: load-prometheus
load-prometheus: prometheus-image $(BIN)/cluster
	@cluster load $(DIST)/prometheus.tar

.PHONY: release
release: $(BIN)/images $(BIN)/install $(BIN)/kustomize web/dist/app/index.html $(SDK)/.venv/synced ## Build the release VERSION into dist/release (RELEASE.md); DRY_RUN=1 skips the checks of the tree.
	@hack/release.sh $(if $(DRY_RUN),--dry-run) '$(VERSION)'

# What it installs, it also removes; an operator that was there before is installed again.
.PHONY: release-check
release-check: WITH := trainer
release-check: $(if $(KUBECONFIG),,cluster-up) $(BIN)/images $(BIN)/install $(BIN)/kustomize $(BIN)/registry web/dist/app/index.html $(SDK)/.venv/synced ## Build a release, push it to a registry on this machine, and install it from there on the one-machine cluster; ALL=1: with all images.
	@hack/release-check.sh

.PHONY: krew
krew: ## Build the CLI's packages for VERSION and their krew manifest; RELEASES is the URL that they will be published at.
	@hack/krew.sh '$(VERSION)' '$(RELEASES)' $(PLATFORMS)

.PHONY: chart
chart: ## Write the generated templates of the Helm chart in charts/mpijob-operator anew.
	@go run -C hack/install . generate

.PHONY: load
load: images $(BIN)/cluster
	@cluster load $(DIST)/operator.tar $(DIST)/agent.tar $(SAMPLES:%=$(DIST)/%.tar)

##@ Check

.PHONY: test
test: ## Run linters, unit tests and a quarter of the end-to-end tests (SHARE= runs all), and print what this machine cannot run.
	@hack/test.sh

.PHONY: unit
unit: $(BIN)/cluster $(BIN)/promtool $(BIN)/versitygw ## Test the packages; those that need an API server or an S3 server get a real one.
	@assets="$$(cluster binaries)"; for module in $(MODULES); do echo "== go test $$module"; \
	  (cd $$module && S3_SERVER=$(BIN)/versitygw KUBEBUILDER_ASSETS="$$assets" go test -vet=off -timeout 20m $$(go list ./... | grep -v /test/e2e)); done
	@echo "== go test ./test/e2e, without a cluster"; KUBECONFIG= go test -vet=off ./test/e2e

# What needs no node: the whole of that version is compiled by make e2e KUBERNETES=1.29.
.PHONY: oldest
oldest: $(BIN)/cluster ## Test on the API server of the oldest Kubernetes, 1.29: manifests, CRDs, policies and the operator; it is compiled once, in 5 minutes of CPU time.
	@assets="$$(cluster binaries --kubernetes 1.29 --api-server)"; "$$assets/kube-apiserver" --version; export KUBEBUILDER_ASSETS="$$assets"; \
	  (cd hack/install && go test -vet=off ./cluster -count=1 -v -run '^(TestManifests|TestPolicies)$$') && \
	  go test -vet=off ./internal/operator -count=1 -run '^($(OLDEST))$$'
# Some of the operator's life on an API server: what it creates, changes and reads there.
OLDEST := TestReportFollowsAJobThatSucceeds|TestStartedLauncherIsResumed|TestScaling|TestLauncherWaitsForReadyWorkers|TestEmbeddedMakesAllPodsOrNone|TestWaitsForQuota|TestTrainJobsArePlacedAsAWhole|TestTTLOfTrainJobs|TestAgentIsDeliveredAsNodesAllow|TestRolesForUsers|TestSpecificationOutlivesTheJob

.PHONY: e2e-oldest
e2e-oldest: ## Run the smallest end-to-end tests on a new cluster of the oldest Kubernetes.
	@$(MAKE) e2e KUBERNETES=1.29 SAMPLES=openmpi WITH=none SUITE='^(TestPi|TestFailingProgram|TestKubernetesVersion)$$'

.PHONY: vulnerabilities
vulnerabilities: $(BIN)/govulncheck ## Look for known vulnerabilities in the programs of a release, the dashboard's pages and the SDK's dependencies.
	@python3 -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && $(MAKE) $(UV_PROGRAM) || true
	@hack/vulnerabilities.sh

.PHONY: dashboard-test
dashboard-test: dashboard $(BIN)/cluster $(BIN)/gotestsum ## Test the dashboard's server and, in Chromium, its pages; SCREENSHOTS is a folder for screenshots, RETRY=0 repeats none that fails.
	@cd web && npm run --silent test
	@CHROMIUM="$$(web/test/chromium.sh)" KUBEBUILDER_ASSETS="$$(cluster binaries)" \
	  gotestsum --format standard-quiet $(if $(filter-out 0,$(RETRY)),--rerun-fails=$(RETRY) --rerun-fails-max-failures=3) --packages ./internal/dashboard -- -count=1 -timeout 25m

.PHONY: dashboard-bench
dashboard-bench: dashboard $(BIN)/cluster ## Measure the dashboard's server and, in Chromium, its pages; writes .bench/dashboard.json.
	@mkdir -p .bench
	@CHROMIUM="$$(web/test/chromium.sh)" DASHBOARD=$(BIN)/dashboard DASHBOARD_BENCH=$(CURDIR)/.bench/dashboard.json KUBEBUILDER_ASSETS="$$(cluster binaries)" \
	  go test ./internal/dashboard -run '^TestBench$$' -count=1 -v -timeout 60m

.PHONY: web-types
web-types: web/node_modules/.package-lock.json ## Write the dashboard's OpenAPI document and, from it, the types of its pages anew.
	@go test ./internal/dashboard -run '^TestGenerated$$' -update >/dev/null
	@cd web && npm run --silent types >/dev/null

.PHONY: dashboard-lint
dashboard-lint: web/node_modules/.package-lock.json ## Type-check and lint the dashboard's pages; fails if their types of the API are out of date.
	@cd web && npm run --silent lint

.PHONY: dashboard-e2e
dashboard-e2e: WITH := trainer
dashboard-e2e: $(BIN)/kubectl-odh-mpijob deploy dashboard-deploy ## Run real jobs through the dashboard's pages, in Chromium, on the one-machine cluster; JOURNEY picks journeys by name.
	@CHROMIUM="$$(web/test/chromium.sh)" web/test/cluster.sh $(SAMPLE_IMG)

.PHONY: e2e
# The images with programs that others wrote are large, and only the tests of these programs need them; so do those of upstream's examples.
e2e: SAMPLES := $(if $(findstring rograms,$(SUITE)),$(if $(findstring mall,$(SUITE)),openmpi intelmpi,openmpi pytorch deepspeed tensorflow science intelmpi),$(if $(findstring pstreamGit,$(SUITE)),openmpi horovod-elastic tensorflow-benchmarks,$(if $(findstring pstream,$(SUITE)),openmpi mpich-sshd intelmpi-sshd openmpi-sshd horovod-mnist,$(if $(findstring rometheus,$(SUITE)),openmpi,openmpi openmpi5 mpich intelmpi openmpi-sshd))))
# Where the runs of programs are recorded for docs/proof.md.
e2e: PROGRAMS ?= $(if $(findstring rograms,$(SUITE)),$(CURDIR)/.bench/programs.json)
# SUITE=mutants tries all families of mistakes with a seed of its own, unless MUTANTS and MUTANTS_SEED are set; otherwise the commit is the seed.
e2e: MUTANTS_ENV := $(if $(findstring utants,$(SUITE)),MUTANTS=$(or $(MUTANTS),all) MUTANTS_REMEDIES=$(or $(MUTANTS_REMEDIES),all) MUTANTS_SEED=$(or $(MUTANTS_SEED),$(shell date -u +%s)))
# Kubeflow Trainer v2.3 needs Kubernetes 1.33 and v2.1 1.31; without it the tests of TrainJobs are skipped.
e2e: WITH := $(if $(filter 1.29,$(KUBERNETES)),none,$(if $(filter 1.31,$(KUBERNETES)),trainer=v2.1.0,trainer))
# A share that hangs ends before the time of CI does, so that the other steps run.
e2e: $(if $(KUBECONFIG),,deploy $(if $(findstring rometheus,$(SUITE)),load-prometheus)) $(BIN)/kubectl-odh-mpijob $(BIN)/gotestsum ## Test on a real cluster with real MPI; SUITE picks tests by name, RETRY=0 repeats none that fails.
	@mkdir -p .bench/tests; passed='.bench/tests/$(if $(QUEUED),$(if $(filter topology,$(QUEUED)),topology,queued),$(if $(filter native,$(GANGS)),native,plain))@$(VERSION)'@$$(date -u +%s).json; \
	  KUBECONFIG="$${KUBECONFIG:-$(CURDIR)/.cluster/kubeconfig}" SAMPLE_IMG=$(SAMPLE_IMG) AGENT_IMG=$(AGENT_IMG) QUEUED=$(QUEUED) GANGS=$(GANGS) PROGRAMS='$(PROGRAMS)' $(MUTANTS_ENV) \
	  gotestsum --format standard-verbose $(if $(filter-out 0,$(RETRY)),--rerun-fails=$(RETRY) --rerun-fails-max-failures=3) --packages ./test/e2e \
	  --jsonfile-timing-events "$$passed" \
	  -- -count=1 -timeout $(if $(SHARE),40m,60m) -parallel $(PARALLEL) $(if $(SUITE),-run '(?i)$(SUITE)')

# Tests of docs/promises.md whose jobs can be placed in any way: in a queue, also with Kueue's TAS, and by PodGroups. With BRIEF=1, those are
# left out that take long or need more than one image.
EVERYWHERE := WorkerEvicted|Drain|TrainJobSurvivesEvictions|MPIJobIsIsolated|TrainJobIsIsolated|ConnectionReachesRanks|ConnectionReachesTrainJobsRanks|ResultsOutliveJob|TrainJobsResultsOutliveJob|LimitsAreKept|BadInputIsRefused|TrainerFaultsAreRefused|NFS|RDMANotOffered|AnyMPIWithoutSSHD|TrainJobAnyMPI|WhoDidIt|FailingProgram|TrainJobExplained|LogsStayWhenPodsAreGone|TrainJobsLogsStay|WholeLogsStayWhenTheJobIsGone|WholeLogsOfTrainJobsStay|DeletedMPIJobRunsAgain|DeletedTrainJobRunsAgain
LONG := NFS|AnyMPIWithoutSSHD|TrainJobAnyMPI|WholeLogsStayWhenTheJobIsGone|WholeLogsOfTrainJobsStay
comma := ,
space := $(subst ,, )

.PHONY: e2e-promises
e2e-promises: ## Test what holds for jobs however they are placed (docs/promises.md): with QUEUED=1, QUEUED=topology or GANGS=native; BRIEF=1 leaves out the long tests.
	@$(MAKE) e2e SUITE='^Test($(subst $(space),|,$(filter-out $(if $(BRIEF),$(subst |, ,$(LONG))),$(subst |, ,$(EVERYWHERE)))))$$' SAMPLES='openmpi$(if $(BRIEF),, openmpi5 mpich intelmpi)' GANGS=$(or $(GANGS),none) QUEUED=$(QUEUED) WITH='$(if $(QUEUED),kueue$(comma))trainer'

.PHONY: pages-e2e
pages-e2e: SAMPLES := openmpi pytorch
pages-e2e: $(if $(KUBECONFIG),,deploy) $(BIN)/kubectl-odh-mpijob ## Run the commands of README and the tutorials on a real cluster; PAGE picks pages by name, UPDATE=1 writes their outputs.
	@PAGES_KUBECONFIG="$${KUBECONFIG:-$(CURDIR)/.cluster/kubeconfig}" go test ./test/docs -count=1 -v -timeout 60m -run '^TestPages$$'

# The earlier version: the latest release, or a commit whose reports have other fields (test/e2e/upgrade-from.sh).
FROM ?= $(shell test/e2e/upgrade-from.sh)

.PHONY: e2e-upgrade
e2e-upgrade: SAMPLES := openmpi
e2e-upgrade: WITH := trainer
e2e-upgrade: cluster-up load ## Upgrade the operator of the commit FROM to this one, go back, and upgrade again, under jobs in every state.
	@from='$(FROM)'; test/e2e/deploy-commit.sh "$$from"; \
	  KUBECONFIG=$(CURDIR)/.cluster/kubeconfig SAMPLE_IMG=$(SAMPLE_IMG) UPGRADE="$(CURDIR)/hack/deploy.sh $(IMG) $(AGENT_IMG) $(DIST)/operator.tar" \
	  ROLLBACK="env KEEP_CRDS=1 $(CURDIR)/test/e2e/deploy-commit.sh $$from" \
	  go test ./test/e2e -count=1 -v -timeout 20m -run '^(TestUpgrade|TestLostFields)$$'

.PHONY: e2e-switch
e2e-switch: SAMPLES := openmpi-sshd
e2e-switch: WITH := trainer
e2e-switch: $(if $(KUBECONFIG),,deploy) ## Switch a real cluster from mpi-operator to this operator and back, under jobs in every state.
	@go build -C hack/bench/programs/mpi-operator -o $(BIN)/mpi-operator github.com/kubeflow/mpi-operator/cmd/mpi-operator
	@KUBECONFIG="$${KUBECONFIG:-$(CURDIR)/.cluster/kubeconfig}" SAMPLE_IMG=$(SAMPLE_IMG) AGENT_IMG=$(AGENT_IMG) MPI_OPERATOR=$(BIN)/mpi-operator \
	  go test ./test/e2e -count=1 -v -timeout 15m -run '^TestSwitchFromMPIOperator$$'

# Removes the operator of make deploy: later steps install it again.
.PHONY: install-e2e
install-e2e: $(if $(KUBECONFIG),,cluster-up load) ## Install, upgrade and remove the operator with Helm on a real cluster, under a job that runs.
	@cd hack/install && KUBECONFIG="$${KUBECONFIG:-$(CURDIR)/.cluster/kubeconfig}" IMG=$(IMG) AGENT_IMG=$(AGENT_IMG) SAMPLE_IMG=$(SAMPLE_IMG) \
	  go test ./cluster -count=1 -v -timeout 15m -run '^TestCluster$$'

# Removes the operator that it finds, and installs it again.
.PHONY: olm-e2e
olm-e2e: $(if $(KUBECONFIG),,cluster-up load) $(BIN)/images $(BIN)/install $(BIN)/registry $(BIN)/opm $(BIN)/kubectl-odh-mpijob ## Install, upgrade and remove the operator with the Operator Lifecycle Manager on a real cluster, under a job that runs; the first time, it compiles OLM and opm in some minutes.
	@IMG=$(IMG) AGENT_IMG=$(AGENT_IMG) SAMPLE_IMG=$(SAMPLE_IMG) hack/olm-check.sh

.PHONY: bundle
bundle: $(BIN)/install $(BIN)/opm ## Write the bundle for OLM into dist/bundle and validate it in a catalog; opm is compiled once, in 3 minutes of CPU time.
	@hack/bundle.sh

.PHONY: cli-platforms
cli-platforms: ## Compile the CLI for macOS and Windows.
	@for platform in darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do echo "== $$platform"; \
	  CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} go build -o /dev/null ./cmd/kubectl-odh-mpijob; done

.PHONY: conformance
conformance: $(BIN)/cluster ## Run mpi-operator's own integration tests against our operator.
	@cd test/conformance && KUBEBUILDER_ASSETS="$$(cluster binaries)" go test -v -count=1 ./...

.PHONY: bench
ifeq ($(SUITE),dashboard)
bench: dashboard-bench
else ifeq ($(SUITE),cli)
bench: bench-cli
else ifeq ($(SUITE),list)
bench: bench-list
else
bench: $(BIN)/cluster $(BIN)/bench ## Measure our operator beside mpi-operator; SUITE and CASES pick what.
	@KUBEBUILDER_ASSETS="$$(cluster binaries)" bench $(if $(SUITE),--suite $(SUITE)) $(if $(CASES),--cases '$(CASES)') $(if $(LATENCY),--latency $(LATENCY)) $(if $(BEFORE),--before $(BEFORE)) $(if $(RUNS),--runs $(RUNS)) $(if $(FULL),--full)
endif

.PHONY: bench-cli
bench-cli: $(BIN)/kubectl-odh-mpijob ## Measure how long commands of the CLI take from start to end.
	@go test ./internal/cli -run '^$$' -bench BenchmarkStart -benchtime 20x

.PHONY: bench-list
bench-list: $(BIN)/cluster $(BIN)/kubectl-odh-mpijob $(SDK)/.venv/synced ## Measure how long the CLI and the SDK take to list 5,000 jobs; writes .bench/list.json.
	@mkdir -p .bench
	@if [ -n '$(BEFORE)' ]; then rm -rf .bench/before && git worktree prune && git worktree add --quiet --force --detach .bench/before '$(BEFORE)' && \
	  go build -C .bench/before -o $(CURDIR)/.bench/kubectl-odh-mpijob-before ./cmd/kubectl-odh-mpijob; git worktree remove --force .bench/before; fi
	@KUBEBUILDER_ASSETS="$$(cluster binaries)" LIST_BENCH=$(CURDIR)/.bench/list.json LIST_CLI=$(BIN)/kubectl-odh-mpijob LIST_PYTHON=$(SDK)/.venv/bin/python \
	  $(if $(BEFORE),LIST_BEFORE=$(CURDIR)/.bench/kubectl-odh-mpijob-before) go test ./internal/cli -run '^TestLists$$' -count=1 -timeout 30m -v

.PHONY: proof
proof: ## Measure what docs/proof.md shows, and write it; SUITES picks what, FORCE=1 measures again what is of this commit, DRY_RUN=1 prints how long it takes.
	@go run -C hack/bench ./proof/refresh --root $(CURDIR) --suites '$(SUITES)' --cases '$(CASES)' $(if $(RUNS),--runs $(RUNS)) \
	  $(if $(FORCE),--force) $(if $(FULL),--full) $(if $(DRY_RUN),--dry-run)

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
	@go run ./hack/packagemap
	@go run ./hack/roletable
	@go run -C hack/monitoring . generate
	@$(MAKE) chart
	@if reason=$$(hack/node.sh); then $(MAKE) web-types; else echo "generate: the types of the dashboard's pages stay as they are: $$reason"; fi
	@if python3 -c 'import venv' 2>/dev/null; then $(MAKE) sdk-generate; else echo "generate: without python3 the SDK's models stay as they are"; fi

.PHONY: fmt
fmt: $(BIN)/golangci-lint ## Format the code.
	@for module in $(MODULES); do (cd $$module && golangci-lint fmt --config $(CURDIR)/.golangci.yml); done
	@if python3 -c 'import venv' 2>/dev/null; then $(MAKE) sdk-fmt; else echo "fmt: without python3 the SDK's code is not formatted"; fi

.PHONY: lint
lint: $(BIN)/golangci-lint $(if $(SKIP_PROSE),,prose dashboard-lint) ## Look for mistakes, for imports that the architecture does not allow, and for unclear texts.
	@for module in $(MODULES); do echo "== lint $$module"; (cd $$module && golangci-lint run --config $(CURDIR)/.golangci.yml ./...); done
	@if python3 -c 'import venv' 2>/dev/null; then $(MAKE) sdk-lint; else echo "lint: without python3 the SDK's code is not checked"; fi

.PHONY: prose
prose: hack/prose/node_modules/.package-lock.json ## Check that documents, messages and comments are plain technical English.
	@node --test --test-reporter=dot hack/prose/*.test.mjs >/dev/null || node --test hack/prose/*.test.mjs
	@node hack/prose/prose.mjs $$(git ls-files '*.md')
	@go run ./hack/prose api cmd config hack internal test web
	@go run ./hack/prose -lines $$(git ls-files Makefile '*.sh' '*.yaml' '*.yml' '*Containerfile' ':!*/testdata/*' ':!config/crd/*_*.yaml')

hack/prose/node_modules/.package-lock.json: hack/prose/package-lock.json
	@command -v npm >/dev/null || { echo "prose: npm is missing: install Node.js 20.19 or later"; exit 1; }
	@cd hack/prose && npm ci --ignore-scripts --no-fund --no-audit --loglevel=error

# mkdocs fails for warnings that it prints, so that it must not be quiet.
.PHONY: docs
docs: hack/site/.venv/synced ## Build the documentation site, as dist/site; a dead link is an error. With VERSION=v0.2.0, add this version to dist/versions.
ifeq ($(origin VERSION),command line)
	@hack/site/versions.sh '$(VERSION)'
else
	@hack/site/.venv/bin/mkdocs build --strict
	@echo "docs: open dist/site/index.html"
endif

.PHONY: docs-test
docs-test: docs web/node_modules/.package-lock.json ## Check the site in Chromium: offline, on a phone, by axe in light and dark; SCREENSHOTS is a folder for screenshots.
	@CHROMIUM="$$(web/test/chromium.sh)" node hack/site/check.mjs
	@CHROMIUM="$$(web/test/chromium.sh)" node hack/site/versions.mjs

.PHONY: docs-serve
docs-serve: hack/site/.venv/synced ## Serve the documentation site on 127.0.0.1:8000, and build it again when a page changes.
	@hack/site/.venv/bin/mkdocs serve

hack/site/.venv/synced: hack/site/uv.lock hack/site/pyproject.toml $(UV_PROGRAM)
	@UV_PROJECT_ENVIRONMENT=$(CURDIR)/hack/site/.venv $(UV_PROGRAM) sync --quiet --locked --project hack/site
	@touch $@

.PHONY: clean
clean: ## Remove what the commands made, but for the cluster.
	rm -rf $(BIN) $(DIST)

##@ Python SDK

UV := UV_PROJECT_ENVIRONMENT=$(SDK)/.venv $(UV_PROGRAM)
SDK_PYTHON := $(SDK)/.venv/bin/python

.PHONY: sdk
sdk: sdk-fmt sdk-lint ## Format, lint and type-check the Python SDK, and run its unit tests.
	@cd $(SDK) && .venv/bin/pytest --quiet tests/unit

.PHONY: sdk-fmt
sdk-fmt: $(SDK)/.venv/synced
	@cd $(SDK) && .venv/bin/ruff format --quiet

.PHONY: sdk-lint
sdk-lint: $(SDK)/.venv/synced
	@cd $(SDK) && .venv/bin/ruff check --quiet && .venv/bin/mypy

.PHONY: sdk-generate
sdk-generate: $(SDK)/.venv/synced ## Write the SDK's models, its synchronous face, its reference and the notebooks of the documentation anew.
	@cd $(SDK) && for tool in models patterns runtimes sync reference notebooks; do $(SDK_PYTHON) tools/generate_$$tool.py; done

# Without MariaDB the tests of Model Registry are skipped.
.PHONY: sdk-test
sdk-test: sdk $(BIN)/cluster $(BIN)/model-registry ## The same, and test the SDK on a real API server, with faults, and a real Model Registry.
	@cd $(SDK) && KUBEBUILDER_ASSETS="$$(cluster binaries)" MODEL_REGISTRY=$(BIN)/model-registry MARIADB="$$($(CURDIR)/test/modelregistry/mariadb.sh || true)" \
	  .venv/bin/pytest --quiet -r s tests/apiserver

.PHONY: sdk-e2e
sdk-e2e: SAMPLES := openmpi mpich
sdk-e2e: WITH := trainer
sdk-e2e: $(SDK)/.venv/synced $(if $(KUBECONFIG),,deploy) ## Train on a real cluster through the Python SDK.
	@cd $(SDK) && KUBECONFIG="$${KUBECONFIG:-$(CURDIR)/.cluster/kubeconfig}" SAMPLE_IMG=$(SAMPLE_IMG) AGENT_IMG=$(AGENT_IMG) SAMPLES='$(SAMPLES)' \
	  .venv/bin/pytest --quiet tests/cluster

.PHONY: sdk-bench
sdk-bench: $(SDK)/.venv/synced $(BIN)/cluster ## Measure 100 submissions at once and 1,000 waiting futures; writes .bench/sdk.json.
	@cd $(SDK) && SDK_BENCH=$(CURDIR)/.bench/sdk.json KUBEBUILDER_ASSETS="$$(cluster binaries)" .venv/bin/pytest --quiet tests/apiserver/test_scale.py

.PHONY: sdk-functions
sdk-functions: $(SDK)/.venv/synced ## Test on each supported Python which functions train() takes.
	@$(SDK)/tools/matrix.sh functions

.PHONY: sdk-functions-test
sdk-functions-test: sdk-functions

.PHONY: sdk-matrix
sdk-matrix: $(SDK)/.venv/synced ## Install the built SDK into clean environments, one for each supported Python, and test it there.
	@$(SDK)/tools/matrix.sh

$(UV_PROGRAM):
	@python3 -m venv $(SDK)/.uv && $(SDK)/.uv/bin/pip install --quiet uv==0.13.9

$(SDK)/.venv/synced: $(SDK)/uv.lock $(SDK)/pyproject.toml $(UV_PROGRAM)
	@cd $(SDK) && $(UV) sync --quiet --locked --all-extras
	@touch $@

# Go knows best whether these are up to date.
.PHONY: $(BIN)/govulncheck $(BIN)/opm $(BIN)/promtool $(BIN)/versitygw $(BIN)/model-registry $(BIN)/cluster $(BIN)/images $(BIN)/install $(BIN)/registry $(BIN)/bench $(BIN)/kubectl-odh-mpijob $(BIN)/controller-gen $(BIN)/golangci-lint $(BIN)/gotestsum $(BIN)/kustomize
$(BIN)/cluster $(BIN)/images $(BIN)/install $(BIN)/registry $(BIN)/bench:
	@cd hack/$(@F) && go build -o $@ .
$(BIN)/kubectl-odh-mpijob:
	@$(MAKE) install-cli TO=$(BIN) >/dev/null
$(BIN)/controller-gen $(BIN)/golangci-lint $(BIN)/gotestsum $(BIN)/govulncheck $(BIN)/kustomize:
	@cd hack/tools/$(@F) && GOBIN=$(BIN) go install tool
# Without the discovery of targets in clouds, which promtool does not need here; compiled once, in 4 minutes of CPU time.
$(BIN)/promtool:
	@cd hack/monitoring && CGO_ENABLED=0 GOBIN=$(BIN) go install -tags remove_all_sd github.com/prometheus/prometheus/cmd/promtool
# The S3 server of tests, compiled once, in 5 minutes of CPU time.
$(BIN)/versitygw:
	@cd test/s3 && CGO_ENABLED=0 go build -ldflags '-s -w' -o $@ github.com/versity/versitygw/cmd/versitygw
# The registry of the SDK's tests, compiled once, in 2 minutes of CPU time.
$(BIN)/model-registry:
	@cd test/modelregistry && CGO_ENABLED=0 go build -ldflags '-s -w' -o $@ github.com/kubeflow/model-registry
$(BIN)/opm:
	@cd hack/tools/opm && CGO_ENABLED=0 GOBIN=$(BIN) go install -tags containers_image_openpgp,exclude_graphdriver_btrfs tool
