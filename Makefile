# The two commands a newcomer needs are `make demo` and `make test`; CONTRIBUTING.md lists the rest.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PYTEST := $(BIN)/pytest
ALL_CORES := --numprocesses auto --dist worksteal
# A file's tests share daemons, so they stay in one process. Each file has its own, on ports and in folders of its own.
BY_FILE := --numprocesses auto --maxprocesses 4 --dist loadfile

.PHONY: setup system-packages bridge spank demo demo-live test test-long test-fast bench lint clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       an embedded before/after on a generated fabric (no root, no daemons)"
	@echo "make demo-live  the real loop: ibsim, OpenSM with our plugin, Slurm, the agent"
	@echo "make test       Debian packages, plugin, unit, property, live tests"
	@echo "make test-long  what only looks harder: more examples, larger runs"
	@echo "make test-fast  unit and property tests only; make bench; make lint; make setup"

# The stamps depend on the two pyproject.toml alone, so a second `make demo` does not touch the network.
# The demo needs no linters and no test runner: half the packages, half the wait.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
$(VENV)/.run: pyproject.toml sar_lab/pyproject.toml
	$(PYTHON) -m venv $(VENV) || { echo "On Debian: apt-get install python3-venv"; exit 1; }
	$(PIP) --editable . --editable ./sar_lab
	touch $@

$(VENV)/.all: $(VENV)/.run
	$(PIP) --editable '.[dev]' --editable './sar_lab[papers,replay]'
	touch $@

setup: $(VENV)/.all

system-packages:
	deploy/install-debian-packages

bridge: system-packages
	$(MAKE) -C opensm_bridge

spank: system-packages
	$(MAKE) -C slurm_spank

demo: $(VENV)/.run
	$(BIN)/sar-agent demo

demo-live: $(VENV)/.run bridge
	$(BIN)/sar-agent demo-live

test: setup bridge spank lint
	$(MAKE) -C c_common check
	$(MAKE) -C agent_client check
	$(MAKE) -C opensm_bridge check
	$(MAKE) -C slurm_spank check
	$(MAKE) -C libsar_migrate check
	$(MAKE) -C libsar_key check
	# Without daemons first: after that no daemon waits for a kernel to be compiled.
	SAR_EXAMPLES=$(SHARE) $(PYTEST) -m 'not long' $(ALL_CORES) tests/unit tests/property
	# The machine may be busy with other work, too.
	SAR_PATIENCE=4 SAR_EXAMPLES=$(SHARE) $(PYTEST) -m 'not long' $(BY_FILE) tests/live

# The share of their examples that tests try in `make test`; test-long tries them all, and what is marked long.
SHARE ?= 0.3
test-long: setup bridge spank
	$(PYTEST) -m long $(ALL_CORES) tests/unit
	$(PYTEST) $(ALL_CORES) tests/property
	SAR_PATIENCE=4 $(PYTEST) -m long tests/live
	SAR_PATIENCE=4 $(PYTEST) tests/live/test_simgrid.py

test-fast: setup
	SAR_EXAMPLES=0.1 $(PYTEST) -q -m 'not long' $(ALL_CORES) tests/unit tests/property

bench: setup bridge
	$(BIN)/python -m tests.bench

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:  # numba keeps compiled kernels in __pycache__, by the file they stand in
	rm -rf $(VENV) out
	find sar_agent sar_lab -name __pycache__ -prune -exec rm -rf {} +
	$(MAKE) -C c_common clean
	$(MAKE) -C agent_client clean
	$(MAKE) -C opensm_bridge clean
	$(MAKE) -C slurm_spank clean
	$(MAKE) -C libsar_migrate clean
	$(MAKE) -C libsar_key clean
