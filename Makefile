# Every target works from a fresh clone: it needs CPython >= 3.11 with venv, and a package index.
PYTHON ?= python3
PY := .venv/bin/python

.PHONY: venv light-venv models demo demo-llamaindex bench bench-sim gpu-check test test-engines test-programs test-others compat-langgraph compat-oldest listed-check lint docs wheel-test clean

venv:
	@$(PYTHON) setup/install.py

light-venv:
	@$(PYTHON) setup/install.py --light

models: venv
	@$(PY) -m accel_local.models

demo: venv models
	@$(PY) examples/demo.py

demo-llamaindex: venv models
	@$(PY) examples/demo_llamaindex.py

# Both need the public data sets: ACCEL_BENCH_DATA names their folder, and what is missing is said.
bench: venv models  # real engines, about 10 minutes on two cores
	@mkdir -p bench-out
	@$(PY) -m bench profile --dtype float32 --out bench-out/profile.json
	@$(PY) -m bench run --engines cpu --profile bench-out/profile.json --requests 2 --out bench-out/cpu
	@$(PY) -m bench report

bench-sim: light-venv  # simulated engines: in virtual time, and a part of it in real time; about 25 minutes
	@$(PY) -m bench run --requests 10 --load 32 --passes --out bench-out/sim
	@$(PY) -m bench run --clock real --apps naive_rag,crag,reflect,chat --requests 2 --out bench-out/sim-real-time
	@$(PY) -m bench report

gpu-check: venv models  # on a CUDA machine: writes bench/gpu-check.json
	@$(PY) -m bench.gpu_check

test: venv models
	@$(PY) -m pytest

# The parts of it. Those of engines, and then of whole programs, benchmarks and backends, take as long as all the others:
# they may run beside.
test-engines: venv models
	@$(PY) -m pytest -m "engines and not long"

test-programs: venv models
	@$(PY) -m pytest -m "not engines and not long" compat_tests bench backends

test-others: venv models
	@$(PY) -m pytest -m "not engines and not long" accel adapters

compat-langgraph:  # LangGraph's own tests on accelerated graphs, about 20 minutes; writes compat_tests/README.md
	@$(PYTHON) setup/install.py --light --compat
	@$(PY) -m compat_tests.upstream --write

OLDEST := .venv-oldest/bin/python
compat-oldest:  # the LangGraph adapter with the oldest versions it supports, about 5 minutes
	@$(PYTHON) -m venv .venv-oldest
	@$(OLDEST) -m pip install --quiet --disable-pip-version-check -r setup/oldest.txt
	@PYTHONPATH=$(CURDIR):$(CURDIR)/adapters:$(CURDIR)/backends $(OLDEST) -m pytest -p no:cacheprovider \
		compat_tests adapters/tests/test_chains.py adapters/tests/test_framework_facts.py adapters/tests/test_early_egress.py \
		$(wildcard adapters/tests/test_core_*.py adapters/tests/test_invariants*.py)

LISTED := .venv-listed/bin/python
listed-check:  # the built-in table against the packages it speaks of, about 5 minutes
	@$(PYTHON) -m venv .venv-listed
	@$(LISTED) -m pip install --quiet --disable-pip-version-check --no-deps -r setup/light.txt -r setup/listed.txt
	@$(LISTED) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@PYTHONPATH=$(CURDIR):$(CURDIR)/adapters:$(CURDIR)/backends $(LISTED) -m pytest -p no:cacheprovider \
		accel/tests/test_listed.py adapters/tests/test_listed_classes.py adapters/tests/test_listed_near.py \
		compat_tests/server/test_compatible_clients.py compat_tests/server/test_warmed_prefixes.py

lint: light-venv
	@$(PY) -m ruff check .
	@$(PY) -m adapters.tests.documents --write build/documents  # the Python of README and docs/, for both checkers
	@$(PY) -m mypy
	@$(PY) -m mypy build/documents
	@$(PY) -m pyright --pythonpath $(PY)
	@.venv/bin/lint-imports

DOCS := .venv-docs/bin/python
docs:  # README and docs/ as a site in build/site, every link inside it checked; less than a minute
	@$(PYTHON) -m venv .venv-docs
	@$(DOCS) -m pip install --quiet --disable-pip-version-check --no-deps -r setup/docs.txt
	@NO_MKDOCS_2_WARNING=1 $(DOCS) -m mkdocs build --strict --quiet

wheel-test: light-venv
	@$(PY) setup/wheel_test.py

clean:
	rm -rf .venv .venv-oldest .venv-listed .venv-docs dist build demo-out bench-out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
