# Every target works from a fresh clone: it needs CPython >= 3.11 with venv, and a package index.
PYTHON ?= python3
PY := .venv/bin/python

.PHONY: venv light-venv models demo test lint wheel-test clean

venv:
	@$(PYTHON) setup/install.py

light-venv:
	@$(PYTHON) setup/install.py --light

models: venv
	@$(PY) -m accel_local.models

demo: venv models
	@$(PY) examples/demo.py

test: venv models
	@$(PY) -m pytest

lint: light-venv
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@.venv/bin/lint-imports

wheel-test: light-venv
	@$(PY) setup/wheel_test.py

clean:
	rm -rf .venv dist build demo-out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
