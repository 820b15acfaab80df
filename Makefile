# Every target makes .venv first; it is rebuilt only when pyproject.toml or constraints.txt change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_STAMP := $(VENV)/.installed-bench
DISTILL_STAMP := $(VENV)/.installed-distill
UV := $(shell command -v uv 2>/dev/null)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

FUZZ_MINUTES ?= 10

.PHONY: demo test test-distill test-agents fuzz lint serve bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    measure standard and fast on a real model and print the table"
	@echo "make test    lint, type checks and tests"
	@echo "make test-distill  the tests of training, which need PyTorch (installed for it)"
	@echo "make test-agents  Claude Code and Codex CLI, which come from npm, against the real server"
	@echo "make fuzz    made-up requests and clients that misbehave, for FUZZ_MINUTES (10)"
	@echo "make serve   serve the demo model on http://127.0.0.1:8000"
	@echo "make bench   headway beside its peers, same machine, same model"
	@echo "make lint    ruff and mypy alone"

# $(1): the extra to install headway with
ifeq ($(UV),)
make_venv = $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install -q --upgrade pip
install = $(BIN)/python -m pip install -q -c constraints.txt -e '.[$(1)]'
else
make_venv = $(UV) venv -q --allow-existing --python $(PYTHON) $(VENV)
install = $(UV) pip install -q --python $(BIN)/python -c constraints.txt -e '.[$(1)]'
endif

$(STAMP): pyproject.toml constraints.txt
	$(make_venv)
	$(call install,dev)
	@touch $@

$(BENCH_STAMP): $(STAMP)
	$(call install,bench)
	@touch $@

$(DISTILL_STAMP): $(STAMP)
	$(call install,distill)
	@touch $@

demo: $(STAMP)
	$(BIN)/headway pull smollm2
	$(BIN)/headway compare --json out.json

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest

test-distill: $(DISTILL_STAMP)
	$(BIN)/pytest tests/distill

test-agents: $(STAMP)
	HEADWAY_TEST_AGENTS=1 $(BIN)/pytest tests/clients/test_agents.py

fuzz: $(STAMP)
	PYTHONPATH=$(CURDIR)/tests $(BIN)/python -m fuzz $(FUZZ_MINUTES)

serve: $(STAMP)
	$(BIN)/headway serve smollm2

bench: $(BENCH_STAMP)
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/compose.py

clean:
	rm -rf $(VENV) build dist
