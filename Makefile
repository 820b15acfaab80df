# Every target makes .venv first; it is rebuilt only when pyproject.toml or constraints.txt change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_STAMP := $(VENV)/.installed-bench
DISTILL_STAMP := $(VENV)/.installed-distill
CLIENTS := build/clients
CLIENTS_STAMP := $(CLIENTS)/.installed
CLIENTS_FROM := tests/clients/requirements.txt tests/clients/constraints.txt tests/clients/node/package.json
UV := $(shell command -v uv 2>/dev/null)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

FUZZ_MINUTES ?= 10
TEST_WORKERS ?= 2

.PHONY: demo test test-browser test-distill test-clients test-agents fuzz lint serve bench fit clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    measure standard, fast and spark on a real model, and what each can do; prints tables, writes report.html"
	@echo "make test    lint, type checks and tests"
	@echo "make test-distill  the tests of training, which need PyTorch (installed for it)"
	@echo "make test-clients  other clients (Node SDKs, LiteLLM, LangChain, llm) against the real server, in a build folder"
	@echo "make test-agents  Claude Code and Codex CLI, which come from npm, against the real server"
	@echo "make test-browser  the report's page in Chromium (installed for it, unless the system has one)"
	@echo "make fuzz    made-up requests and clients that misbehave, for FUZZ_MINUTES (10)"
	@echo "make serve   serve the demo model on http://127.0.0.1:8000"
	@echo "make bench   headway beside its peers, same machine, same model"
	@echo "make fit     fit the planner to measured points (GPU_SPEED_CSV=FILE) and print how well it predicts them"
	@echo "make lint    ruff and mypy alone"

# make_venv: $(1) is its folder. into: what installs into that of folder $(1). install: $(1) is the extra to install headway with.
ifeq ($(UV),)
make_venv = $(PYTHON) -m venv $(1) && $(1)/bin/python -m pip install -q --upgrade pip
into = $(1)/bin/python -m pip install -q
else
make_venv = $(UV) venv -q --allow-existing --python $(PYTHON) $(1)
into = $(UV) pip install -q --python $(1)/bin/python
endif
install = $(call into,$(VENV)) -c constraints.txt -e '.[$(1)]' -e models/smollm2-spark

$(STAMP): pyproject.toml constraints.txt models/smollm2-spark/pyproject.toml
	$(call make_venv,$(VENV))
	$(call install,dev)
	@touch $@

$(BENCH_STAMP): $(STAMP)
	$(call install,bench)
	@touch $@

$(DISTILL_STAMP): $(STAMP)
	$(call install,distill)
	@touch $@

# The clients' requirements are theirs alone. Without npm the Node SDKs are left out.
$(CLIENTS_STAMP): $(CLIENTS_FROM)
	mkdir -p $(CLIENTS)/node
	$(call make_venv,$(CLIENTS)/venv)
	$(call into,$(CLIENTS)/venv) -c tests/clients/constraints.txt -r tests/clients/requirements.txt
	cp tests/clients/node/package.json $(CLIENTS)/node
	if command -v npm >/dev/null; then npm install --no-fund --no-audit --no-package-lock --prefix $(CLIENTS)/node; fi
	@touch $@

demo: $(STAMP)
	$(BIN)/headway pull smollm2
	$(BIN)/headway compare --json out.json
	$(call into,$(VENV)) --no-deps -c constraints.txt bfcl-eval
	$(BIN)/headway compare --quick --json capability.json --report report.html

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# A file of tests runs in one worker: what it shares, it starts once.
test: lint
	$(BIN)/pytest -n $(TEST_WORKERS) --dist loadfile -m "not alone"
	$(BIN)/pytest -m alone

test-distill: $(DISTILL_STAMP)
	$(BIN)/pytest tests/distill

test-browser: $(STAMP)
	$(call into,$(VENV)) -c constraints.txt playwright
	command -v chromium || command -v google-chrome || $(BIN)/playwright install chromium-headless-shell
	mkdir -p build/browser
	HEADWAY_TEST_BROWSER=build/browser $(BIN)/pytest tests/compare/page/test_browser.py

test-clients: $(STAMP) $(CLIENTS_STAMP)
	HEADWAY_TEST_CLIENTS=$(CLIENTS) $(BIN)/pytest tests/clients

test-agents: $(STAMP)
	HEADWAY_TEST_AGENTS=1 $(BIN)/pytest tests/clients/test_agents.py

fuzz: $(STAMP)
	PYTHONPATH=$(CURDIR)/tests $(BIN)/python -m fuzz $(FUZZ_MINUTES)

serve: $(STAMP)
	$(BIN)/headway serve smollm2 --spark smollm2-spark

bench: $(BENCH_STAMP)
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/compose.py

fit: $(STAMP)
	$(BIN)/python -m headway.plan.accuracy "$(GPU_SPEED_CSV)"

clean:
	rm -rf $(VENV) build dist
