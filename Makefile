# The commands of a newcomer are `make shell`, `make test` and `make web`. They create .venv here when it is missing or stale.

VENV := .venv
BIN := $(VENV)/bin

# What a command needs is installed when it is first used: the extra `standard` for the shell, `web` for the web console,
# `dev` for tests and for the rest. Where `dev` is installed, nothing else has to be.
STAMP := $(VENV)/.installed-dev
stamp_for = $(if $(wildcard $(STAMP)),$(STAMP),$(VENV)/.installed-$(1))

# Tests run in several processes; tests/support/scheduling.py says which in which.
PYTEST := $(BIN)/python -m pytest -n $(or $(WORKERS),auto)

.PHONY: help setup shell web test quick soak contract foreign docs lint typecheck generate check-generated check clean

help:
	@echo "make shell            set up, then open qmf-shell on an embedded broker and this machine's host agent"
	@echo "make web              set up, then serve the same to a browser: qmf-web"
	@echo "make test             set up, then run the tests, several at a time; those of make soak are left out"
	@echo "make quick            the tests of a quarter of a second or less, without Spark; VENV=... PYTHON=... for another interpreter"
	@echo "make soak             the tests that take minutes: random kills, several Sparks, many more invented values"
	@echo "make contract         the tests of every broker, on the embedded one, Artemis and RabbitMQ, which it installs"
	@echo "make foreign          the broker's tests with clients of others: qpid-jms, rhea, proton C++, four of MQTT, and the lake with DuckDB's Delta reader; it installs them"
	@echo "make check            lint, types, freshness of generated code, tests"
	@echo "make docs             run the pages of the documentation, and write into them what they print now"
	@echo "make lint             ruff"
	@echo "make typecheck        mypy --strict"
	@echo "make generate         generate qmf/models from schemas/"
	@echo "make check-generated  fail when qmf/models is stale"
	@echo "make clean            remove .venv and caches"

setup: $(STAMP)

$(VENV)/.installed-%: pyproject.toml scripts/setup.sh scripts/java.sh scripts/build_hook.py scripts/c_extensions.py $(shell find qmf -name '*.[ch]')
	@sh scripts/setup.sh $(VENV) $*
	@touch $@

shell: $(call stamp_for,standard)
	@$(BIN)/qmf-shell

web: $(call stamp_for,web)
	@$(BIN)/qmf-web

test: $(STAMP)
	@sh scripts/java.sh
	$(PYTEST) -m "not soak" $(ARGS)

quick: $(STAMP)
	$(PYTEST) -m "not soak and not slow" $(ARGS)

soak: $(STAMP)
	@sh scripts/java.sh
	$(PYTEST) -m "soak or hypothesis" --hypothesis-profile soak $(ARGS)

contract: $(STAMP)
	$(BIN)/python -m scripts.brokers $(BIN)/python -m scripts.contract

foreign: $(STAMP)
	$(BIN)/python -m scripts.foreign $(BIN)/python -m pytest -q tests/broker/foreign tests/pipeline/lake/test_delta_lake_engines.py $(ARGS)

docs: $(STAMP)
	@sh scripts/java.sh
	QMF_DOCS_REFRESH=1 $(PYTEST) tests/docs $(ARGS)

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
	find qmf -name '*.so' -delete
	rm -rf $(VENV) .venv-* .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
