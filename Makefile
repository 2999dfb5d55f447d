# Every target sets up what it needs: only Python 3.11+ and make have to be there.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PEERS  := benchmarks/.peers

.PHONY: help setup train test test-slow faults check format bench bench-peers docs docs-figures clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(READY)  ## a virtual environment with the tested versions

$(READY): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

train: $(READY)  ## train TAL on CartPole for a minute or two, and say where the picture is
	$(BIN)/tsallax train CartPole-v1 --algo tal --q 2 --seeds 2 --steps 20000 \
	  --out runs/cartpole-tal-$$(date +%Y%m%d-%H%M%S)

test: $(READY)  ## the default test suite (slow tests left out)
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-slow: $(READY)  ## learning runs and long studies only
	$(BIN)/python -m pytest -m slow

faults: $(READY)  ## kills, full disks, damaged files, nonsense: a table, in under half an hour
	$(BIN)/python tests/faults.py

check: $(READY)  ## format, lint, types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright

format: $(READY)  ## format and mend what can be mended
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(READY)  ## speed, as ratios in one run; wants a quiet machine
	$(BIN)/tsallax bench

bench-peers: $(READY) $(PEERS)/sb3/.ready $(PEERS)/rejax/.ready  ## speed against other libraries
	$(BIN)/python benchmarks/peers/run.py $(OPTIONS)

$(PEERS)/%/.ready: benchmarks/peers/%.txt
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

docs: $(READY)  ## the documentation site, in site/
	$(BIN)/python tools/build_docs.py

docs-figures: $(READY)  ## the figures of the docs, from results/ and the examples
	$(BIN)/python tools/family.py
	$(BIN)/python tools/result_figures.py
	$(BIN)/python examples/normalisation.py
	$(BIN)/python examples/error_averaging.py

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) $(PEERS) .pytest_cache .ruff_cache .hypothesis build site src/*.egg-info
