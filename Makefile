# Every target sets up what it needs: a virtual environment with the locked packages and, where one is used, a broker.

PYTHON ?= python3
# Most of the time of the tests on a broker is waiting, for leases and sessions to end: so more than there are cores.
PROCESSES ?= 3
BIN := .venv/bin
READY := .venv/ready
PROOF_spine := tests.proof.prove
PROOF_engine := tests.proof.engine.prove
PROOF_signals := tests.proof.signals.prove
PROOF_composites := tests.proof.composites.prove
PROOF_permits := tests.proof.permits.prove
PROOF_schedules := tests.proof.schedules.prove
PROOF_trees := tests.proof.composites.simulate
PROOF_limits := tests.proof.permits.simulate
PROOF_ticks := tests.proof.schedules.simulate

COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --upgrade --quiet

# Runs a command and says how long it took, whether it failed or not.
timed = @start=$$(date +%s); code=0; $(2) || code=$$?; echo "$(1): $$(($$(date +%s) - start)) s"; exit $$code

.DEFAULT_GOAL := help
.PHONY: help demo test broker clients lint types format schemas bench prove up down lock clean

help: ## Say what there is to make
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## Run a workflow that fails, is retried and restarted; then survive a kill in mid-cycle
	$(BIN)/python -m examples.demo.demo
	$(BIN)/python -m tests.proof.demo

test: lint ## Run everything that must hold before a commit: lint, types, layers and all tests, on a real broker
	@$(MAKE) --no-print-directory --jobs=3 types broker clients
	$(call timed,tests that others would disturb,$(BIN)/pytest -m alone)
	$(call timed,tests,$(BIN)/pytest -m "not alone" --durations=15 --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder)

broker: $(READY)
	$(call timed,broker,$(BIN)/python -m tests.support.broker prepare)

clients: $(READY)
	$(call timed,clients,$(BIN)/python -m tests.support.clients)

lint: $(READY) ## Check style, formatting and the layers
	$(call timed,ruff,$(BIN)/ruff check . && $(BIN)/ruff format --check .)
	$(call timed,layers,$(BIN)/lint-imports)

types: $(READY) ## Check types, strictly, in the package, its tests and its benchmarks
	$(call timed,types,$(BIN)/mypy)

format: $(READY) ## Format the code and mend what can be mended without thought
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

schemas: $(READY) ## Generate the Python types from the Avro contracts
	$(BIN)/python -m kapelle.schemas.generate schemas/avsc schemas/kapelle/schemas/contracts.py --released schemas/released

bench: $(READY) ## Run a benchmark: NAME=spine [QUICK=1]; its last line is its figures as JSON
	$(BIN)/python -m benchmarks.$(or $(NAME),spine) $(if $(QUICK),--quick)

prove: $(READY) ## Prove runtime, engine, signals, composite steps, permits and schedules on a real broker under faults; NAME=spine, engine, signals, composites, permits or schedules for one of them; NAME=trees, limits or ticks: 10,000 simulated schedules
	@set -e; for proof in $(foreach name,$(or $(NAME),spine engine signals composites permits schedules),$(or $(PROOF_$(name)),$(error Expected NAME=spine, engine, signals, composites, permits, schedules, trees, limits or ticks, but found $(name)))); do $(BIN)/python -m $$proof; done

up: $(READY) ## Leave a Kafka broker running to work with, and say where it is
	$(BIN)/python -m tests.support.broker up

down: $(READY) ## Stop the broker of `make up`; its data stays until `make clean`
	$(BIN)/python -m tests.support.broker down

lock: $(READY) ## Bring requirements.lock and requirements-faust.lock up to date with pyproject.toml
	$(COMPILE) --group dev --output-file requirements.lock
	$(COMPILE) --extra faust --output-file requirements-faust.lock

clean: ## Remove all that was made: environment, caches, the broker and its data
	@if [ -e $(READY) ]; then $(BIN)/python -m tests.support.broker down; fi
	rm -rf .venv .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements.lock pyproject.toml tools/setup
	@PYTHON=$(PYTHON) tools/setup
