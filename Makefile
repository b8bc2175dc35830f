# The two commands of the README are `make demo` and `make test`; each sets up all it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Most modules are never imported; those that are get compiled then, and stay so: tests start many processes.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
unexport PYTHONDONTWRITEBYTECODE
PYTEST := sh tests/halves.sh $(BIN)/python
# Outside the pinned lists: which wheel is right, and where it is, is a matter of the machine.
TORCH := 2.13.0
LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet

.PHONY: help demo test quick stats durations bench docs lint style types tests lock test-matrix release-check wheel sdist clean

help:
	@echo "make demo    what Sfumato does, in a minute (installs the core and its pictures only)"
	@echo "make test    everything the continuous integration checks"
	@echo "make quick   the inner loop: lint and the fast tests"
	@echo "make stats   long statistical runs"
	@echo "make bench   benchmarks beside other libraries, written to benchmarks/results"
	@echo "make docs    this documentation as a site, in build/docs; works without a network once installed"
	@echo "make lint    formatting, lint, types and import layers"
	@echo "make lock    pin dependencies again, with hashes (needs uv)"
	@echo "make wheel   build the wheel into dist/"
	@echo "make sdist   build the source distribution into dist/"
	@echo "make release-check   whether all is ready for a release: changelog, builds, the demo from the wheel; publishes nothing"
	@echo "make durations   measure all tests: which are fast, and which process runs them, follows from it"
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

# The list names all that is needed, so its halves can be installed side by side: PySpark in the one, most others in the
# other. PySpark has no wheel; the one that is made of it here is not compressed, since it is unpacked at once.
$(VENV)/test: $(VENV)/made requirements/core.txt requirements/test.txt requirements/text.txt requirements/wheel.cfg pyproject.toml
	@echo "==> installing the core and the tools of its tests, pinned with hashes"
	@awk '/^[a-z]/ { part = /^setuptools=/ ? "tool" : /^p[sy]/ ? "half1" : "half0" } \
		{ print > ("$(VENV)/" part ".txt") }' requirements/test.txt
	@$(PIP) --no-deps --require-hashes -r $(VENV)/tool.txt
	@$(PIP) --no-deps --require-hashes -r $(VENV)/half0.txt & other=$$!; \
	DIST_EXTRA_CONFIG=$(CURDIR)/requirements/wheel.cfg \
	$(PIP) --no-deps --require-hashes --use-pep517 --no-build-isolation -r $(VENV)/half1.txt && wait $$other
	@$(PIP) --no-deps --no-build-isolation -e .
	@$(PIP) --no-deps torch==$(TORCH) || echo "==> PyTorch could not be installed: the tests of deep learning are skipped"
	@$(PIP) --no-deps -r requirements/text.txt || echo "==> transformers could not be installed: the tests of models of text are skipped"
	@sh tests/page/browser.sh
	@touch $(VENV)/core $@

# What the test list has, too; here without the rest of it.
$(VENV)/docs: $(VENV)/core requirements/docs.txt
	@echo "==> installing what builds the documentation, pinned with hashes"
	@$(PIP) --require-hashes -r requirements/docs.txt
	@touch $@

demo: $(VENV)/core
	@echo "==> the whole story in a minute"
	@$(BIN)/sfumato demo

lint: style types

style: $(VENV)/test
	@echo "==> lint and format"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/test
	@echo "==> types and import layers"
	@$(BIN)/mypy
	@$(BIN)/lint-imports

tests: $(VENV)/test
	@echo "==> all tests, on two processes"
	@$(PYTEST) -m "not stats" --durations=10

test: style
	@$(MAKE) --no-print-directory -j 2 types tests

quick: $(VENV)/test
	@echo "==> lint and the fast tests"
	@$(BIN)/ruff check .
	@$(PYTEST) -m "not slow and not stats"

stats: $(VENV)/test
	@echo "==> long statistical runs"
	@$(PYTEST) -m "stats" --durations=10

durations: $(VENV)/test
	@echo "==> measuring all tests, written to tests/durations.txt"
	@$(PYTEST) -m "not stats" --write-durations

bench: $(VENV)/core
	@echo "==> benchmarks beside other libraries, in .venv-bench"
	@PYTHON=$(PYTHON) sh benchmarks/install_peers.sh
	@.venv-bench/bin/python -m benchmarks
	@.venv-bench/bin/python -m benchmarks.overview

docs: $(VENV)/docs
	@echo "==> building the documentation; warnings are errors"
	@$(BIN)/python -m sphinx -q -W --keep-going -c docs -d build/doctrees . build/docs
	@echo "==> open build/docs/index.html in a browser; it needs no server"

wheel: $(VENV)/core
	@echo "==> building the wheel"
	@$(BIN)/python -m hatchling build -t wheel

sdist: $(VENV)/core
	@echo "==> building the source distribution"
	@$(BIN)/python -m hatchling build -t sdist

release-check: $(VENV)/core
	@echo "==> is it ready for a release? nothing is published"
	@$(BIN)/python requirements/release_check.py

test-matrix:
	@sh requirements/matrix.sh

lock:
	@echo "==> pinning dependencies"
	@$(LOCK) pyproject.toml requirements/build.in --extra plots -o requirements/core.txt
	@$(LOCK) pyproject.toml requirements/build.in --extra test --extra lint -c requirements/core.txt -o requirements/test.txt
	@$(LOCK) pyproject.toml requirements/build.in --extra docs -c requirements/test.txt -o requirements/docs.txt

clean:
	@rm -rf $(VENV) .venv-bench .venv-bench-local .venv-bench-limits .venv-bench-synth .venv-bench-tumult .venv-oldest-* .venv-newest-* dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
