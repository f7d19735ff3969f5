# The two commands a newcomer needs are `make demo` and `make test`; CONTRIBUTING.md lists the rest.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export MPLBACKEND = Agg

.PHONY: setup system-packages bridge demo demo-live test test-fast bench lint clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       an embedded before/after on a generated fabric (no root, no daemons)"
	@echo "make demo-live  the real loop: ibsim, OpenSM with our plugin, Slurm, the agent"
	@echo "make test       everything: Debian packages, plugin, unit, property, live tests"
	@echo "make test-fast  unit and property tests only; make bench; make lint; make setup"

# The stamp depends on pyproject.toml alone, so a second `make demo` does not touch the network.
$(VENV)/.stamp: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

setup: $(VENV)/.stamp

system-packages:
	deploy/install-debian-packages

bridge: system-packages
	$(MAKE) -C opensm_bridge

demo: setup
	$(BIN)/sar-agent demo

demo-live: setup bridge
	$(BIN)/sar-agent demo-live

test: setup bridge lint
	$(MAKE) -C opensm_bridge check
	$(BIN)/pytest

test-fast: setup
	$(BIN)/pytest -q tests/unit tests/property

bench: setup bridge
	$(BIN)/python -m tests.bench

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) out
	$(MAKE) -C opensm_bridge clean
