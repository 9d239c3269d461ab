# One interface for people and for CI. `make help` lists what it can do.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
VENV43 := .venv43
READY43 := $(VENV43)/.ready
# The wheel is tested by this Python, whatever the environment in .venv was made with.
TEST_PYTHON ?= $(PYTHON)
WHEEL_VENV = .venv-wheel-$(shell $(TEST_PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
WHEEL_NEEDS := tests deploy docker docs requirements pyproject.toml mkdocs.yml Makefile $(wildcard *.md)
SEEDS ?= 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20
SECONDS_EACH ?= 60
FORM ?= raw or decoded or fleet or claims or iceberg or fence
DOCKER_TESTS ?= tests/docker
# Processes that share the quick tests, each with its own cluster: most of these wait more than they compute.
AT_ONCE ?= 2
# How often a failed test is run again, for a change that is about to land: RERUNS=1 lists those that passed then.
RERUNS ?= 0
# A test that hangs, perhaps in a library that holds the interpreter's lock, ends its process with a traceback of all threads.
HANGS_S ?= 1200
# A file's tests share fixtures, so they stay in one process; where there is only one, a test that ends it can run again.
DIST = $(if $(filter 1,$(AT_ONCE)),load,loadfile)
PYTEST = $(BIN)/python -m pytest -q -rfER --reruns $(RERUNS) -o faulthandler_timeout=$(HANGS_S) -o faulthandler_exit_on_timeout=true
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-all test-slow unit integration test-kafka-python test-spark43 test-wheel docker-test chaos proof broker lint type audit docs manifests bench bench-check format lock build image clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-17s %s\n", $$1, $$2}'

venv: $(READY) ## make the environment in .venv (rebuilt when the lock changes)

$(VENV)/.packages: requirements/dev.txt
$(VENV43)/.packages: requirements/spark43.txt
$(VENV)/.packages $(VENV43)/.packages:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	@echo "making $(@D) from $<"
	@rm -rf $(@D) && $(PYTHON) -m venv $(@D)
	@$(@D)/bin/pip install $$([ -t 1 ] || echo --quiet) --disable-pip-version-check --require-hashes -r $< || { rm -rf $(@D); echo "the packages could not be installed: is a package index reachable? run make again when it is" >&2; exit 2; }
	@touch $@

# Where there is a C compiler, this compiles the hot paths of planner, consumer, producer and source; where there is none, it says so and goes on.
$(READY): $(VENV)/.packages
$(READY43): $(VENV43)/.packages
$(READY) $(READY43): hatch_build.py assignors/consumer/quick_step_compiled.pyx assignors/planner/plan_loops_compiled.pyx producer/partitioning/deliveries_compiled.pyx \
		producer/partitioning/produce_compiled.pyx spark_sink/fetch/copy_compiled.pyx spark_sink/fetch/from_leaders/batch_decoder_compiled.pyx \
		$(wildcard spark_sink/formats/json_compiled*.p[yx][xi])
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@if command -v java >/dev/null; then \
		$(@D)/bin/python -c 'import sys; from spark_sink.demo.cluster.broker_archive import fetch; sys.exit(fetch())' & \
		trap "kill $$!" INT TERM; \
		$(@D)/bin/azimuth prepare || echo "without it agents start in twice the time; azimuth prepare makes it later" >&2; \
		wait; fi
	@touch $@

demo: $(READY) ## run the whole pipeline on a three-zone Kafka, with a report in build/demo
	@$(BIN)/azimuth demo

test: unit integration ## run the unit tests, then the integration tests on the embedded cluster

test-all: test test-slow ## run every test except those in containers

# LONG=yes also runs the tests marked `long`, which `make test-slow` then leaves out: before a change lands all of them run early.
LONG ?= no
QUICK = not slow$(if $(filter no,$(LONG)), and not long)

unit: $(READY) ## run the unit tests (no broker)
	@$(PYTEST) -n $$((2 * $(AT_ONCE))) -m "$(QUICK) and not (benchmark or integration or acceptance or docker or chaos)"

integration: $(READY) ## run the integration and acceptance tests on real brokers
	@$(PYTEST) -n $(AT_ONCE) --dist $(DIST) -m "(integration or acceptance or docker) and $(QUICK)"

# MATRIX=no leaves out the tests marked `matrix`.
MATRIX ?= yes
SLOW = $(if $(filter no,$(LONG)),(slow or long),slow)$(if $(filter no,$(MATRIX)), and not matrix)
# Tests on brokers that start no Spark run two at a time; one Spark fills two cores.
WITHOUT_SPARK = $(addprefix tests/integration/,assignors broker producer)
# Those without brokers have a process of their own: threads of Kafka's clients draw from the same random numbers as their examples.
# They get half of the time: close() of the bare client may wait for ever in librdkafka with the interpreter's lock, if a rebalance
# comes meanwhile (Consumer_rebalance_cb -> rd_kafka_rebalance_protocol), and the test then passes in another process.
test-slow: $(READY) ## run the slow tests: many rounds, several databases, separate clusters
	@$(PYTEST) -o faulthandler_timeout=$$(($(HANGS_S) / 2)) --durations 25 -n $$((2 * $(AT_ONCE))) -m "$(SLOW)" tests/unit tests/simulation
	@$(PYTEST) --durations 25 -n 2 --dist loadfile -m "$(SLOW)" $(WITHOUT_SPARK)
	@$(PYTEST) --durations 25 -n 1 -m "$(SLOW)" $(addprefix --ignore ,tests/unit tests/simulation $(WITHOUT_SPARK))

SPARK_TESTS = $(addprefix tests/integration/spark_sink/test_,agent.py landing.py sink.py source.py source_orphan.py spark_cluster.py)

test-spark43: $(READY43) ## run the tests that need Spark on pyspark 4.3, in a separate environment (.venv43)
	@$(VENV43)/bin/python -c 'import pyspark; assert pyspark.__version__.startswith("4.3."), pyspark.__version__'
	@$(VENV43)/bin/python -m pytest -q tests/unit/spark_sink
	@$(VENV43)/bin/python -m pytest -q -m integration $(SPARK_TESTS)

test-wheel: ## build the wheel with TEST_PYTHON=/path/to/python3.13 and run the unit tests on it, outside the checkout
	@[ $(WHEEL_VENV)/.ready -nt requirements/dev.txt ] || { rm -rf $(WHEEL_VENV) && $(TEST_PYTHON) -m venv $(WHEEL_VENV) \
	  && $(WHEEL_VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt && touch $(WHEEL_VENV)/.ready; }
	@rm -rf build/wheel && $(WHEEL_VENV)/bin/python -m build --no-isolation --wheel --outdir build/wheel
	@$(WHEEL_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall build/wheel/kafka_azimuth-*.whl
	@python=$$PWD/$(WHEEL_VENV)/bin/python; outside=$$(mktemp -d) && trap 'rm -rf "$$outside"' EXIT \
	  && cp -r $(WHEEL_NEEDS) "$$outside" && cd "$$outside" && $$python -m pytest -q -n $$((2 * $(AT_ONCE))) tests/unit

docker-test: $(READY) ## three brokers in containers: bytes between zones, and brokers that freeze, vanish and die
	@AZIMUTH_DOCKER_TEST=1 TESTCONTAINERS_RYUK_DISABLED=true $(BIN)/python -m pytest -q -rsP -m docker $(DOCKER_TESTS)

CHAOS_TESTS = tests/integration/spark_sink/chaos tests/integration/spark_sink/test_fence.py

chaos: $(READY) ## kill, stop and restart agents and brokers for 20 seeds of 60 s each; FORM=fleet SEEDS=1,2 SECONDS_EACH=600 for others
	@AZIMUTH_CHAOS_SEEDS=$(SEEDS) AZIMUTH_CHAOS_SECONDS=$(SECONDS_EACH) $(BIN)/python -m pytest -q -s -m "chaos or integration" -k "$(FORM)" $(CHAOS_TESTS)

test-kafka-python: $(READY) ## test with each released kafka-python 3.x; VERSIONS="3.0.11 3.0.12" for some of them
	@$(BIN)/python requirements/kafka_python.py $(VERSIONS)

proof: $(READY) ## check the model in docs/proof by TLC: all guards, then each guard missing
	@$(BIN)/python -m pytest -q -rP -m integration tests/proof

# Maven resolves what it needs on the first run; later runs need no network. JUnit runs before the jar is made.
broker: ## build the broker's assignors into build/broker/azimuth-broker.jar and run their tests (needs Maven and a JDK)
	@if command -v mvn >/dev/null && command -v javac >/dev/null; then mvn --batch-mode --quiet --file broker/pom.xml package && echo build/broker/azimuth-broker.jar; \
	  else echo "the broker's assignors were left out: Maven and a JDK are needed (Debian: apt install maven openjdk-17-jdk-headless)" >&2; fi

lint: $(READY) ## ruff (rules and format) and the import contracts
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports

type: $(READY) ## mypy --strict over code and tests
	@$(BIN)/mypy

audit: $(READY) ## check every locked package in a vulnerability database
	@$(BIN)/python requirements/audit.py

docs: $(READY) ## build the documentation into build/site, warnings are errors
	@said=$$(NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build 2>&1) || { echo "$$said" >&2; exit 1; }; echo "build/site/index.html"

manifests: $(READY) ## write deploy/manifests from the Helm chart's examples
	@$(BIN)/python -m tests.unit.deploy.chart

bench: $(READY) ## measure beside the peers; write build/bench/<area>.json; print each figure beside its bar
	@$(BIN)/python -m pytest -q -s -m benchmark tests/benchmarks
	-@$(BIN)/python -m tests.benchmarks.bars

bench-check: $(READY) ## print each figure of make bench beside its bar; fails below one, with ALL=1 also where one was not measured
	@$(BIN)/python -m tests.benchmarks.bars $(if $(ALL),--all)

format: $(READY) ## format the code and fix what ruff can fix
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

LOCK = $(BIN)/uv pip compile -q --universal --generate-hashes --no-header --no-emit-index-url --no-annotate --python-version 3.11 --extra $(2) --constraint requirements/constraints.txt pyproject.toml -o requirements/$(1).txt

lock: $(READY) ## resolve the requirements files from pyproject.toml
	@$(call LOCK,dev,dev)
	@cp requirements/dev.txt requirements/spark43.txt && $(subst constraints.txt,constraints43.txt,$(call LOCK,spark43,dev))
	@$(call LOCK,image,all)

build: $(READY) broker ## build into dist/: the source archive, a wheel for every Python, one compiled for this Python, the broker's jar
	@AZIMUTH_PURE=1 $(BIN)/python -m build --no-isolation
	@$(BIN)/python -m build --no-isolation --wheel
	@if [ -f build/broker/azimuth-broker.jar ]; then cp build/broker/azimuth-broker.jar dist/; fi

image: build ## build the agents' container image (needs a Docker engine)
	@docker build --quiet --file docker/Dockerfile --tag kafka-azimuth $${PIP_INDEX_URL:+--build-arg PIP_INDEX_URL} .

clean: ## remove the environment and everything that was built
	@rm -rf $(VENV) $(VENV43) .venv-wheel-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find assignors producer spark_sink -name '*.so' -delete
