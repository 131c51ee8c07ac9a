# The two commands of a newcomer are `make shell` and `make test`. Both create .venv here when it is missing or stale.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup shell test lint typecheck generate check-generated check clean

help:
	@echo "make shell            set up, then open qmf-shell on an embedded broker and this machine's host agent"
	@echo "make test             set up, then run all tests"
	@echo "make check            lint, types, freshness of generated code, tests: what CI runs"
	@echo "make lint             ruff"
	@echo "make typecheck        mypy --strict"
	@echo "make generate         generate qmf/models from schemas/"
	@echo "make check-generated  fail when qmf/models is stale"
	@echo "make clean            remove .venv and caches"

setup: $(STAMP)

$(STAMP): pyproject.toml scripts/setup.sh scripts/java.sh
	@sh scripts/setup.sh $(VENV)
	@touch $@

shell: $(STAMP)
	@$(BIN)/qmf-shell

test: $(STAMP)
	@sh scripts/java.sh
	$(BIN)/python -m pytest $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: $(STAMP)
	$(BIN)/mypy

generate: $(STAMP)
	$(BIN)/qmf-codegen schemas/*.xml -o qmf/models

check-generated: $(STAMP)
	$(BIN)/qmf-codegen schemas/*.xml -o qmf/models --check

check: lint typecheck check-generated test

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
