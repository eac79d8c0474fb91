# `make` prints what there is.
PORT ?= 8000
PART ?=
PYTHON ?=
ARGS ?=
export PYTHON
# Without compiled files every start takes twice as long.
unexport PYTHONDONTWRITEBYTECODE
PY := .venv/bin/python
COMPILE = .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header $(ARGS)

.DEFAULT_GOAL := help
.PHONY: help setup dev run serve worker test test-all agents check services bench snapshot format lock screenshots clean

help:  ## Print this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup:  ## Make the environment for running (.venv)
	@bin/setup run

dev:
	@bin/setup dev

run: setup  ## Run evalhub on this machine with its examples (PORT=8000, ONCE=1 exits after the summary)
	@$(PY) manage.py up --port $(PORT) $(if $(ONCE),--once)

serve: setup  ## Serve the pages only, for work on them
	@$(PY) manage.py migrate -v0 && EVALHUB_DEBUG=yes $(PY) manage.py runserver $(PORT)

worker: setup  ## Start one worker, against EVALHUB_BROKER_URL or the embedded broker of a running evalhub
	@$(PY) -m celery --app evalhub worker --pool threads --loglevel INFO

test: dev  ## Run what a change needs (ARGS="-k name", ARGS=runs/compare for one room)
	@$(PY) -m tests.all $(ARGS)

test-all: dev  ## Run all that this machine can run, or PART=postgresql, slow, simulations, faults, agents, sample
	@$(PY) -m tests.parts $(PART) $(ARGS)

agents: dev  ## Install six agents and MCP's SDKs for PART=agents (npm, 2 GB)
	@bin/agents

check: dev  ## Lint, types, templates, migrations, lock files, tests collected
	@$(PY) -m tests.checks

services:  ## Install a browser, PostgreSQL, Redis and a sandbox for the tests (Debian)
	@bin/services

bench: dev  ## Measure what docs/performance.md promises
	@$(PY) -m tests.bench $(ARGS)

snapshot: dev  ## Write the OpenAPI document and the JSON Schemas that the tests compare with
	@$(PY) manage.py export_openapi > docs/openapi.json
	@$(PY) -m tests.schema_files

screenshots: dev  ## Draw every page for docs/tour.md
	@DJANGO_SETTINGS_MODULE=evalhub.settings $(PY) -m tests.tour
	@EVALHUB_SCREENSHOTS=docs/images $(PY) -m pytest -q tests/real_agents/test_page.py

format: dev  ## Format the code
	@$(PY) -m ruff check --fix --quiet . ; $(PY) -m ruff format --quiet .

lock: dev  ## Resolve pyproject.toml and requirements-dev.in into the lock files
	@$(COMPILE) -o requirements.lock pyproject.toml
	@$(COMPILE) -o requirements-dev.lock pyproject.toml requirements-dev.in

clean:  ## Remove what runs and tests have left (never var/)
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis artifacts staticroot
