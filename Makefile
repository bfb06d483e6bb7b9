# Everything is set up by the targets themselves; python3 and make are all that is needed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers

.PHONY: demo test bench bench-peers bench-peers-quick reproduce reproduce-quick check-killed check-report format clean

demo: $(VENV)/.installed
	$(BIN)/thresher demo

test: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/tree.py --check
	$(BIN)/pytest -n 2 --dist worksteal

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/sparse_speed.py
	$(BIN)/python benchmarks/matrix_speed.py

# Other people's methods on the same rows, in a virtual environment of their own. It may be interrupted, and goes on where it was.
bench-peers: $(PEERS)/.installed
	$(PEERS)/bin/python benchmarks/peers run $(ARGS)

bench-peers-quick: $(PEERS)/.installed
	$(PEERS)/bin/python benchmarks/peers run --quick

# The paper's figures and tables, in build/reproduction/full/report.html. An interrupted run continues where it stopped.
reproduce: $(VENV)/.installed
	$(BIN)/python -m reproduction

reproduce-quick: $(VENV)/.installed
	$(BIN)/python -m reproduction --quick
	$(BIN)/pytest checks/test_quick_reproduction.py

# Runs of the command that are killed at random moments and resumed, compared byte by byte with one that is not.
check-killed: $(VENV)/.installed
	$(BIN)/python benchmarks/killed_runs.py --runs 20

# The saved report, the quick one and the page of a model in a headless Chromium, which is installed if need be (Debian, as root).
check-report: $(VENV)/.installed
	command -v chromium >/dev/null || { apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[browser]'
	$(BIN)/pytest checks/test_report_in_browser.py

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cli,plot,test]'
	touch $@

$(PEERS)/.installed: pyproject.toml benchmarks/peers/requirements.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/peers/requirements.txt
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

clean:
	rm -rf $(VENV) $(PEERS) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests reproduction -name __pycache__ -type d -exec rm -rf {} +
