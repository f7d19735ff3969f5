# The two commands a newcomer needs are `make demo` and `make test`; CONTRIBUTING.md lists the rest.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PYTEST := $(BIN)/pytest
ALL_CORES := --numprocesses auto --dist worksteal
# Tests that share a daemon run in one process (tests/live/conftest.py). All others start their own, on their own ports and in
# their own folders. They wait more than they compute, so there are six processes on two cores, too.
BY_DAEMON := --numprocesses 6 --dist loadgroup
# Each command of a venv without bytecode compiles a thousand modules, 3 s of a processor; pip compiles none here.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: venv setup system-packages browser bridge spank deb rpm dist pyz test-packages demo demo-live test test-live test-long test-fast fuzz bench site lint check-c clean release
.DEFAULT_GOAL := help

help:
	@echo "make demo       routes before and after, on a generated fabric (no root, no daemons)"
	@echo "make demo-live  the whole loop: OpenSM with our plugin, Slurm, the agent, real MPI over real packets (as root)"
	@echo "make test       install Debian packages, build the C parts, run unit, property and live tests (as root)"
	@echo "make test-long  the same tests with more examples and larger runs"
	@echo "make fuzz       the C parts' readers under libFuzzer (clang); FUZZ_SECONDS for each, 600"
	@echo "make deb        Debian packages in out/packages; make rpm; make dist (wheels and sdists); make pyz (one file); make release TAG=v0.2.0"
	@echo "make test-fast  unit and property tests only; make bench; make lint; make site; make venv (the commands only); make setup"

# The stamps depend on the two pyproject.toml alone, so a second `make demo` does not touch the network.
# The demo needs neither linters nor a test runner, so it installs half the packages.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --use-pep517
$(VENV)/.run: pyproject.toml sar_lab/pyproject.toml
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -c 'import ensurepip' 2> /dev/null || echo "On Debian: apt-get install python3-venv"; exit 1; }
	$(PIP) --editable .
	$(if $(filter demo,$(MAKECMDGOALS)),$(AHEAD) &) $(if $(filter venv,$(MAKECMDGOALS)),$(COMPILE) &) \
		$(PIP) --editable ./sar_lab $(if $(filter venv,$(MAKECMDGOALS)),&& wait)
	touch $@

$(VENV)/.all: $(VENV)/.run
	$(PIP) --editable '.[dev]' --editable './sar_lab[emulate,papers,replay]'
	touch $@

$(VENV)/.emulate: $(VENV)/.run
	$(PIP) --editable './sar_lab[emulate]'
	touch $@

# The commands alone, without linters and test runners: what assess and demo need.
# An assessment compiles the kernels, so that the first one of the user need not; it begins before sar-lab is installed.
EXAMPLES := docs/examples
COMPILE = $(BIN)/python -c 'from sar_agent import cli; from sar_lab.commands import register; register(cli.app); cli.main()' \
	assess --fabric $(EXAMPLES)/cluster.ibnetdiscover --jobs $(EXAMPLES)/squeue.txt --out $(VENV)/assess > $(VENV)/assess.log 2>&1
venv: $(VENV)/.run
	test -e $(VENV)/assess || $(COMPILE)

setup: $(VENV)/.all

# For developers: daemons that the live tests start. Building the C parts needs their own headers only.
system-packages:
	tests/install-debian-packages

# The live page is tested in a browser where there is one.
browser:
	tests/install-debian-packages chromium chromium-driver || echo "The test of the live page is skipped: no Chromium."

bridge:
	$(MAKE) -C opensm_bridge

spank:
	$(MAKE) -C slurm_spank

# The longest part of a first demo begins before sar-lab is installed; the demo waits for what is not done by then.
AHEAD = $(BIN)/python -c 'from sar_lab.assess.compile_ahead import compile_parts; compile_parts(("sar-plus",))' > $(VENV)/ahead.log 2>&1
demo: $(VENV)/.run
	$(BIN)/sar-agent demo

demo-live: $(VENV)/.emulate system-packages
	$(MAKE) bridge spank
	$(MAKE) -C opensm_bridge build/libumad_timeouts.so
	SAR_PLUGIN=$(CURDIR)/opensm_bridge/build/libsarbridge.so SAR_SPANK=$(CURDIR)/slurm_spank/build/sar_spank.so \
		SAR_UMAD_TIMEOUTS=$(CURDIR)/opensm_bridge/build/libumad_timeouts.so $(BIN)/sar-lab emulate --live --out out/demo-live

C_PARTS := libs/common libs/client libs/migrate libs/key opensm_bridge slurm_spank
check-c: $(C_PARTS:%=check-%)
$(C_PARTS:%=check-%): check-%: bridge spank
	$(MAKE) -C $* check

# What the C parts read from others, under libFuzzer; `check-c` feeds them their seeds without clang.
FUZZED := libs/client opensm_bridge slurm_spank
fuzz: bridge spank
	$(foreach part,$(FUZZED),$(MAKE) -C $(part) fuzz &&) true

test: setup system-packages browser
	$(MAKE) --jobs=$$(nproc) --output-sync=target check-c
	# Tests without daemons run first: they compile the kernels that a daemon would else wait for.
	SAR_EXAMPLES=$(SHARE) $(PYTEST) -m 'not long' $(ALL_CORES) tests/unit tests/property
	# Live tests wait more than they compute, so the linters run beside them.
	$(MAKE) --jobs=2 lint test-live

# SAR_PATIENCE multiplies every time limit: the machine may be busy with other work.
test-live:
	SAR_PATIENCE=4 SAR_EXAMPLES=$(SHARE) $(PYTEST) -m 'not long' $(BY_DAEMON) tests/live

# The share of their examples that tests try in `make test`. `make test-long` tries all, and runs the tests marked `long`.
SHARE ?= 0.3
test-long: setup system-packages
	$(MAKE) bridge spank
	$(PYTEST) -m long $(ALL_CORES) tests/unit
	$(BIN)/sar-lab lab run all --check --judge --out out/lab
	$(PYTEST) $(ALL_CORES) tests/property
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/bounds SAR_EXAMPLES=0.3 $(PYTEST) -m 'not long' $(ALL_CORES) tests/property
	if command -v clang; then $(MAKE) fuzz; else echo "No fuzzing: there is no clang."; fi
	SAR_PATIENCE=4 $(PYTEST) -m long tests/live
	SAR_PATIENCE=4 $(PYTEST) tests/live/test_simgrid.py

test-fast: setup
	SAR_EXAMPLES=0.1 $(PYTEST) -q -m 'not long' $(ALL_CORES) tests/unit tests/property

bench: setup system-packages
	$(MAKE) bridge
	$(BIN)/python -m tests.bench

# Packages of this commit, for this machine's distribution, in out/packages (deploy/packages/README.md).
deb rpm dist pyz:
	deploy/packages/build $@ out/packages
# All that is published of a tag, from a clean clone: make release TAG=v0.2.0 [SUITES="bookworm trixie"] (docs/release.md).
release:
	deploy/packages/release $(TAG) out/release $(SUITES)
# Installs, runs, upgrades and removes them in fresh roots of Debian 12 and 13 (as root).
test-packages:
	tests/distros/packages bookworm trixie
	tests/distros/single-file bookworm
	tests/distros/image bookworm out/packages/bookworm/sar-agent_*.deb

# The pages as a static site: out/site/site/index.html. A broken link is an error.
site: setup
	$(BIN)/python docs/site/build.py out/site

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:  # numba keeps compiled kernels in __pycache__, beside the source file
	rm -rf $(VENV) out build sar_lab/build
	find sar_agent sar_lab -name __pycache__ -prune -exec rm -rf {} +
	$(foreach part,$(C_PARTS),$(MAKE) -C $(part) clean &&) true
