# Every target installs what it needs, and no more: only Python 3.11+ and make have to be there.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PEERS  := benchmarks/.peers
# Not compiled on installation: Python compiles a module when it is first imported, and most never are.
unexport PYTHONDONTWRITEBYTECODE
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

# One stamp per set of packages: the library alone, or with an extra of pyproject.toml.
CORE := $(VENV)/.ready-core
TEST := $(VENV)/.ready-test
SLOW := $(VENV)/.ready-slow
DOCS := $(VENV)/.ready-docs
DEV  := $(VENV)/.ready-dev

.PHONY: help setup train test test-slow test-all faults check format bench bench-peers outside-check \
  docs docs-figures reading-path agents release clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(DEV)  ## a virtual environment with everything, in the tested versions

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(CORE): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e .
	@touch $@

$(VENV)/.ready-%: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[$*]'
	@touch $@

train: RUN := runs/cartpole-$(shell date +%Y%m%d-%H%M%S)
train: $(CORE)  ## train TAL on CartPole until it is solved, and film it: curves.png, play.gif
	$(BIN)/tsallax train CartPole-v1 --stop-at 495 --out $(RUN)
	$(BIN)/tsallax play $(RUN) --best --out $(RUN)/play.gif

test: $(TEST)  ## the default test suite
	$(BIN)/python -m pytest -n 2 --dist loadfile $(OPTIONS)

test-slow: $(SLOW)  ## only the slow tests: kills, Ray, the browser, learning, rarer kinds of run
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow $(OPTIONS)

test-all: test test-slow  ## the default suite, then the slow tests

faults: $(SLOW)  ## hostile files, kills, full disks, nonsense: a table; OPTIONS="PART ... --share 0.1"
	PYTHONPATH=src:tests $(BIN)/python -m support.faults $(OPTIONS)

check: $(DEV)  ## format, lint, types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright

format: $(DEV)  ## format, and fix what can be fixed automatically
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(CORE)  ## speed, as ratios within one run; needs a quiet machine
	$(BIN)/tsallax bench

bench-peers: $(TEST) $(PEERS)/sb3/.ready $(PEERS)/rejax/.ready  ## speed against other libraries
	$(BIN)/python benchmarks/peers/run.py $(OPTIONS)

outside-check: $(TEST) $(PEERS)/sb3/.ready  ## returns against TAL inside Stable-Baselines3, half an hour
	$(BIN)/python benchmarks/outside_check/run.py $(OPTIONS)

$(PEERS)/%/.ready: benchmarks/peers/%.txt
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

docs: $(DOCS)  ## the documentation site, in site/
	$(BIN)/python tools/build_docs.py

docs-figures: $(CORE)  ## the figures of the docs, from results/ and the examples
	$(BIN)/python tools/family.py
	$(BIN)/python tools/result_figures.py
	$(BIN)/python examples/normalisation.py
	$(BIN)/python examples/error_averaging.py

reading-path: $(CORE)  ## how many files one reads to follow TAL from the command to the folder
	$(BIN)/python tools/reading_path.py

agents: $(TEST)  ## train, score and pack the agents that come with the package, an hour
	$(BIN)/python tools/train_agents.py $(OPTIONS)

release: $(DEV)  ## wheel and sdist of this version, in dist/; the changelog must have its date
	@test -z "$$(git status --porcelain)" || { echo "there are changes that are not committed"; exit 1; }
	@version=$$($(BIN)/python -c 'import tsallax; print(tsallax.__version__)'); \
	  grep -Eq "^## \[$$version\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$$" CHANGELOG.md || \
	  { echo "CHANGELOG.md has no heading '## [$$version] - YYYY-MM-DD'"; exit 1; }
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	@ls dist

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) $(PEERS) .pytest_cache .ruff_cache .hypothesis build dist site src/*.egg-info
