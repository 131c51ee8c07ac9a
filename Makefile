# The two commands of a newcomer are `make shell` and `make test`. Both create .venv here when it is missing or stale.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup shell test test-pipeline lint typecheck generate check-generated check clean

help:
	@echo "make shell            set up, then open qmf-shell on an embedded broker and this machine's host agent"
	@echo "make test             set up, then run all tests"
	@echo "make test-pipeline    install Spark, then run the pipeline's types and tests (needs Java 17 or newer)"
	@echo "make check            lint, types, freshness of generated code, tests: what CI runs"
	@echo "make lint             ruff"
	@echo "make typecheck        mypy --strict"
	@echo "make generate         generate qmf/models from schemas/"
	@echo "make check-generated  fail when qmf/models is stale"
	@echo "make clean            remove .venv and caches"

setup: $(STAMP)

$(STAMP): pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh $(VENV)
	@touch $@

shell: $(STAMP)
	@$(BIN)/qmf-shell

test: $(STAMP)
	$(BIN)/python -m pytest $(ARGS)

test-pipeline: $(STAMP)
	@command -v java >/dev/null || { echo "Spark needs Java 17 or newer: sudo apt-get install openjdk-17-jre-headless" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,pipeline]'
	$(BIN)/mypy --exclude '^$$' qmf/pipeline tests/pipeline
	$(BIN)/python -m pytest tests/pipeline $(ARGS)

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
