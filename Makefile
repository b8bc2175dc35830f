# The two commands of the README are `make demo` and `make test`; each sets up all it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet

.PHONY: help demo test quick stats bench lint lock test-matrix wheel sdist clean

help:
	@echo "make demo    what Sfumato does, in a minute (installs the core and its pictures only)"
	@echo "make test    everything the continuous integration checks"
	@echo "make quick   the inner loop: lint and the fast tests"
	@echo "make stats   long statistical runs"
	@echo "make bench   benchmarks beside other libraries, written to benchmarks/results"
	@echo "make lint    formatting, lint, types and import layers"
	@echo "make lock    pin dependencies again, with hashes (needs uv)"
	@echo "make wheel   build the wheel into dist/"
	@echo "make sdist   build the source distribution into dist/"
	@echo "make test-matrix   the fast tests with the oldest and newest dependencies, on each Python here (needs uv)"

$(VENV)/made:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "Sfumato needs Python 3.11 or newer; this is %d.%d. Try: make PYTHON=python3.12" % v[:2])'
	@echo "==> creating a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/core: $(VENV)/made requirements/core.txt pyproject.toml
	@echo "==> installing the core, pinned with hashes"
	@$(PIP) --require-hashes -r requirements/core.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/test: $(VENV)/core requirements/test.txt
	@echo "==> installing the tools of the tests, pinned with hashes"
	@$(PIP) --require-hashes -r requirements/test.txt
	@touch $@

demo: $(VENV)/core
	@echo "==> the whole story in a minute"
	@$(BIN)/sfumato demo

lint: $(VENV)/test
	@echo "==> lint, format, types, import layers"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

quick: $(VENV)/test
	@echo "==> lint and the fast tests"
	@$(BIN)/ruff check .
	@$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m "not slow and not stats"

test: lint
	@echo "==> all tests, on two processes"
	@$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m "not stats" --durations=10

stats: $(VENV)/test
	@echo "==> long statistical runs"
	@$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m "stats" --durations=10

bench: $(VENV)/core
	@echo "==> benchmarks beside other libraries, in .venv-bench"
	@PYTHON=$(PYTHON) sh benchmarks/install_peers.sh
	@.venv-bench/bin/python -m benchmarks

wheel: $(VENV)/core
	@echo "==> building the wheel"
	@$(BIN)/python -m hatchling build -t wheel

sdist: $(VENV)/core
	@echo "==> building the source distribution"
	@$(BIN)/python -m hatchling build -t sdist

test-matrix:
	@sh requirements/matrix.sh

lock:
	@echo "==> pinning dependencies"
	@$(LOCK) pyproject.toml requirements/build.in --extra plots -o requirements/core.txt
	@$(LOCK) pyproject.toml requirements/build.in --extra test --extra lint -c requirements/core.txt -o requirements/test.txt

clean:
	@rm -rf $(VENV) .venv-bench .venv-bench-local .venv-oldest-* .venv-newest-* dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
