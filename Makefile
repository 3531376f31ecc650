# Foliot. `make` alone prints what can be made.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
SECONDS ?= 600
TOOLS := .venv/.installed
export PYTHONDONTWRITEBYTECODE =  # hundreds of processes start here: none is to compile Foliot for itself

.DEFAULT_GOAL := help
.PHONY: help up test check fuzz oracles hours keys bench bench-peers soak chaos mutants schedulers simulate wrk lock sdk format clean

help:  ## print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: $(TOOLS)  ## run Foliot here: database, API, scheduler, worker (Ctrl-C stops it)
	@$(BIN)/foliot up $(APP)

test: $(TOOLS) wrk  ## every proof in its short form (under 15 minutes on 2 cores)
	@$(BIN)/python -m compileall -q -j 2 src chaos
	$(BIN)/pytest -n 4 --dist worksteal --durations 12 --durations-min 8 $(ARGS)

check: $(TOOLS)  ## formatting, lint, types, import contracts, nothing committed that must not be
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/tree.py

fuzz: CASES ?= 20000
fuzz: $(TOOLS)  ## 20,000 calls that schemathesis makes from the OpenAPI document: no 5xx, no answer it does not know (CASES=2400)
	@folder=$$(mktemp -d); CASES=$(CASES) FUZZED=$$folder $(BIN)/pytest -n 2 -s tests/api/test_fuzz.py $(ARGS); came=$$?; \
		PYTHONPATH=. $(BIN)/python tests/api/fuzzed.py $$folder $(CASES); exit $$came

oracles: $(TOOLS)  ## 100,000 questions about cron, in 39 zones and 20 years: two readings that share nothing with ours agree with it
	FOLIOT_TEST_ORACLES=full $(BIN)/pytest -n 2 tests/domain/test_oracles.py

hours: $(TOOLS)  ## tests of what fires as if each began when an hour does: a quarter of an hour (ARGS=tests/services/test_fire.py)
	PYTHONPATH=.:tests $(BIN)/python tests/hours.py $(or $(ARGS),tests/services tests/store tests/api tests/sdk tests/cli)

keys: KEYS ?= 100000
keys: $(TOOLS)  ## 100,000 keys with a limit of 1, three runs each: never two at once, always in order, nobody left behind (KEYS=1000)
	FOLIOT_TEST_KEYS=$(KEYS) $(BIN)/pytest -n 0 --timeout 3600 tests/services/test_admission.py -k of_many_keys $(ARGS)

bench: $(TOOLS) wrk  ## measure throughput, latency and lateness beside the raw floor (ARGS="--seconds 5 --only drain")
	$(BIN)/foliot bench $(ARGS)

bench-peers: SECONDS =
bench-peers: $(TOOLS)  ## measure Foliot beside its peers, resumable (ONLY=pgqueuer SECONDS=2 RUNS=2000 REPEATS=1 FRESH=1)
	@ONLY="$(ONLY)" SECONDS="$(SECONDS)" RUNS="$(RUNS)" REPEATS="$(REPEATS)" MINUTES="$(MINUTES)" FRESH="$(FRESH)" \
		$(BIN)/python -m bench.peers

soak: $(TOOLS)  ## 10,000 runs/s for 10 minutes: does anything grow that should not (SECONDS=5: a look, HOURS=1)
	$(BIN)/foliot bench --only soak --seconds $(if $(HOURS),$(shell awk 'BEGIN {print 3600 * $(HOURS)}'),$(SECONDS)) $(ARGS)

chaos: $(TOOLS)  ## break everything for 10 minutes and prove that nothing is lost (SECONDS=60, SEED=7, HOURS=8)
	@$(BIN)/python -m chaos --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(if $(HOURS),--hours $(HOURS)) $(ARGS)

mutants: $(TOOLS)  ## break Foliot's own safeguards one by one: chaos must notice each; goes on where it was ended (ONLY=fence-off, SEED=7, PROCESSES=2)
	@$(BIN)/python -m chaos.mutants $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY),--kept) \
		$(if $(PROCESSES),--processes $(PROCESSES)) $(ARGS)

schedulers: SECONDS = 300
schedulers: $(TOOLS)  ## kill, stop and cut off three schedulers for 5 minutes at 1,000 fires/s, then look at every instant (SECONDS=30, SEED=7)
	@$(BIN)/python -m chaos.schedulers --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(ARGS)

simulate: $(TOOLS)  ## 10,000 seeds of Foliot in virtual time, over a real database; goes on where it was ended (SEEDS=200, FIRST=1, SEED=7: that one again)
	@$(BIN)/python -m chaos.simulation $(if $(SEED),,--kept) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(FIRST),--first $(FIRST)) \
		$(if $(SEED),--seed $(SEED)) $(ARGS)

sdk: $(TOOLS)  ## write the client that waits (sdk/client) from the one for the event loop (sdk/aio)
	$(BIN)/python tests/sdk/twin.py

format: $(TOOLS) sdk  ## let ruff format and fix what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

wrk:  ## what makes the load of `bench --only submissions`, which is skipped where it cannot be had
	@command -v wrk >/dev/null || apt-get install --yes -qq wrk >/dev/null 2>&1 \
		|| { apt-get update -qq && apt-get install --yes -qq wrk; } >/dev/null 2>&1 \
		|| echo "wrk is missing and could not be installed: what needs it is skipped"

lock: $(TOOLS)  ## resolve the dependencies anew into requirements.lock
	UV_PYTHON_DOWNLOADS=never $(BIN)/uv export --quiet --upgrade --format requirements-txt --no-emit-project --all-groups \
		--no-header --no-annotate --output-file requirements.lock
	rm -f uv.lock

clean:  ## remove the tools, caches and build output (data in .foliot stays)
	rm -rf .venv dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .grimp_cache
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

$(TOOLS): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Foliot needs Python 3.11 or newer on the PATH (or: make PYTHON=/path/to/python)"; exit 1; }
	@echo "preparing .venv with $$($(PYTHON) --version) (once, about half a minute)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
