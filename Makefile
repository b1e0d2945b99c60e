# `make help` lists what there is to make. Every target first sets up its own environment.

.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := help
.PHONY: help read lab reproduce test book answers card flips grow plan sizes env lint commands records normalise course bench constraints clean

# ---- what a user gives ---------------------------------------------------------------------------
# The names that each target takes, and those that it cannot do without, with an example.
takes-read      := LAB
takes-lab       := LAB
takes-reproduce := PROFILE ONLY ASK SEED CLUSTER WORKERS
takes-test      := JOBS PYTEST_ADDOPTS
takes-answers   := OUT
takes-card      := MODEL DATA ALL OUT
takes-flips     := A B DATA ALL FAIL_IF MARGIN OUT
takes-grow      := MODEL
takes-plan      := PROFILE PLAN
takes-lint      := JOBS
takes-commands  := DEBIAN
needs-card      := MODEL
needs-flips     := A B
example-card    := make card MODEL=gemma-3-270m
example-flips   := make flips A=gemma-3-270m B=gemma-3-270m~round4
everywhere      := PYTHON TORCH_INDEX

# A value is text: `$(...)` in it is neither make's nor a shell's to run. So it is taken as it was
# written, before make expands anything, and each command reads it from its environment ("$$MODEL").
override given := $(strip $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name))))
$(foreach name,$(given),$(eval override export $(name) := $$(value $(name))))
names := $(sort $(everywhere) $(foreach list,$(filter takes-%,$(.VARIABLES)),$($(list))))
$(foreach name,$(filter-out $(given),$(names)),$(if $(filter-out undefined,$(origin $(name))),$(eval override export $(name) := $$(value $(name)))))

# What is unknown, missing or empty is told before anything is installed or run.
goals := $(or $(MAKECMDGOALS),help)
takes := $(sort $(foreach goal,$(goals),$(takes-$(goal))))
unknown := $(firstword $(filter-out $(takes) $(everywhere),$(given)))
missing = $(firstword $(foreach name,$(needs-$(1)),$(if $(strip $($(name))),,$(name))))
empty := $(firstword $(foreach name,$(filter-out LAB TORCH_INDEX,$(given)),$(if $(strip $($(name))),,$(name))))
$(if $(unknown),$(error make $(goals) takes no $(unknown): it takes $(or $(takes),no value), see `make help`))
$(foreach goal,$(goals),$(if $(call missing,$(goal)),$(error make $(goal) needs $(call missing,$(goal)): $(example-$(goal)))))
$(if $(empty),$(error $(empty) is empty: give it a value, or leave it out))

export PYTHON  ?= python3
export PROFILE ?= laptop
export JOBS    ?= 2

# ---- environment ---------------------------------------------------------------------------------
# An activated conda environment made from environment.yml is used; otherwise .venv is made.
ifeq ($(value CONDA_DEFAULT_ENV),factrobust)
  PY    = "$$CONDA_PREFIX/bin/python"
  READY := build/conda.ready
  HAS_TORCH_OF := $(shell cat "$$CONDA_PREFIX/.torch-index" 2>/dev/null)
else
  PY    = .venv/bin/python
  READY := .venv/.ready
  HAS_TORCH_OF := $(shell cat .venv/.torch-index 2>/dev/null)
endif

# Torch of another index than the one that was named before is installed again.
ifneq ($(origin TORCH_INDEX),undefined)
  ifneq ($(TORCH_INDEX),$(HAS_TORCH_OF))
    $(READY): other-torch
  endif
endif
other-torch:

# Packages are installed without bytecode: Python writes it at the first import, and not at each.
unexport PYTHONDONTWRITEBYTECODE

NO_WHEELS := contourpy, numpy, PyYAML, scipy and torch have no wheels for it yet at the versions in constraints.txt
define CHECK_PYTHON
@command -v -- "$$PYTHON" >/dev/null || { echo "There is no program '$$PYTHON': make PYTHON=/path/to/python3.12 TARGET" >&2; exit 1; }
@"$$PYTHON" -c 'import sys; v = sys.version_info; (3, 11) <= v < (3, 15) or sys.exit("factrobust needs Python 3.11 to 3.14, and " + sys.executable + " is " + sys.version.split()[0] + (" ($(NO_WHEELS))" if v > (3, 15) else "") + ": make PYTHON=/path/to/python3.12 TARGET")'
endef

.venv/.ready: pyproject.toml constraints.txt install.py
	$(CHECK_PYTHON)
	@"$$PYTHON" install.py .venv models
	@touch $@

build/conda.ready: pyproject.toml constraints.txt install.py
	@$(PY) install.py "$$CONDA_PREFIX" models
	@touch $@

# Without torch, transformers and weights: every notebook opens, runs from the records and draws.
.venv-read/.ready: pyproject.toml constraints.txt install.py
	$(CHECK_PYTHON)
	@"$$PYTHON" install.py .venv-read read
	@touch $@

build/book.ready: $(READY)
	@$(PY) install.py "$$($(PY) -c 'import sys; print(sys.prefix)')" book
	@touch $@

# ---- targets -------------------------------------------------------------------------------------
##@ To read, to learn and to rerun the study

# At the root, so that pictures show and links lead on; with a browser or without, it opens the first notebook.
LAB_HERE = -m jupyterlab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/notebooks/0-start-here.ipynb $$LAB

read: .venv-read/.ready ## JupyterLab on the first notebook, to read and to learn with: no models (LAB='--no-browser')
	@set -f; .venv-read/bin/python $(LAB_HERE)

lab: $(READY) ## the same with the models, to ask in your own words
	@set -f; $(PY) $(LAB_HERE)

reproduce: $(READY) ## every notebook, figure and table anew from recorded answers, of which a share is asked again (ASK=0.004)
	@$(PY) -m factrobust.reproduce --profile="$$PROFILE" $${ONLY:+--only="$$ONLY"} $${ASK:+--ask="$$ASK"} \
	  $${SEED:+--seed="$$SEED"} $${CLUSTER:+--cluster="$$CLUSTER"} $${WORKERS:+--workers="$$WORKERS"}

test: $(READY) ## every test, and every notebook against the outputs and figures' data that git holds
	@echo "[test] unit tests on the real small models, the notebooks on recorded answers: some minutes"
	@# A file's tests stay together: they share models, and a notebook's cells a kernel.
	@# In the order in which conftest.py collects them, the longest first, and not those of most tests
	@# first: a file of two long tests at the end would leave the other processes nothing to do.
	@OMP_NUM_THREADS=1 $(PY) -m pytest -n "$$JOBS" --dist loadfile --no-loadscope-reorder

book: build/book.ready ## all notebooks, the course and pages that move as a folder for a browser: build/book/html
	@$(PY) book/build.py

answers: $(READY) ## every recorded question and answer, as parquet and CSV: build/answers
	@$(PY) -m factrobust.command answers $${OUT:+--out="$$OUT"}

##@ For models and facts of yours

card: $(READY) ## what a model knows and what makes it lose that (MODEL=gemma-3-270m DATA=mine.csv): build/cards
	@$(PY) -m factrobust.command card $${DATA:+--data="$$DATA"} $(if $(filter-out 0,$(ALL)),--all) $${OUT:+--out="$$OUT"} -- "$$MODEL"

flips: $(READY) ## which facts other forms of a model lost (A=base.gguf B='q8.gguf lora/' FAIL_IF='lost>0.05' MARGIN=0.02): build/flips
	@set -f; $(PY) -m factrobust.command flips $${DATA:+--data="$$DATA"} $(if $(filter-out 0,$(ALL)),--all) $${FAIL_IF:+--fail-if="$$FAIL_IF"} \
	  $${MARGIN:+--margin="$$MARGIN"} $${OUT:+--out="$$OUT"} -- "$$A" $$B

grow: $(READY) ## teach a model the invented town (MODEL=FOLDER), or train those of data/world/ anew (MODEL=world-s: this one)
	@$(PY) data/grow_models.py $${MODEL:+"$$MODEL"}

plan: $(READY) ## what a profile would ask of each model: calls, tokens, GPUs, hours, disk, dollars (PROFILE=paper)
	@set -f; $(PY) -m factrobust.reproduce.plan --profile="$$PROFILE" $$PLAN

sizes: $(READY) ## install two larger models, Qwen2.5-Coder 0.5B and 1.5B (1.6 GB), to ask them yourself
	@$(PY) install.py "$$($(PY) -c 'import sys; print(sys.prefix)')" sizes

##@ For maintainers

env: $(READY) ## only set up the environment

lint: $(READY) ## ruff, mypy, whether the notebooks are in canonical form, and how large and dense all is
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check
	@$(PY) -m mypy --num-workers "$$JOBS"
	@find notebooks -name '*.ipynb' -not -path '*/.ipynb_checkpoints/*' -exec $(PY) -m factrobust.reproduce.notebook --check {} +
	@$(PY) tests/thinness.py

commands: $(READY) ## what README says can be run, in a fresh clone (DEBIAN=FOLDER: set up, rerun and tested in that Debian)
	@$(PY) tests/commands.py $${DEBIAN:+"$$DEBIAN"}

records: $(READY) ## rewrite data/records from the answers that `make reproduce` collected
	@$(PY) data/export_records.py

normalise: $(READY) ## bring notebooks that were saved in JupyterLab into canonical form
	@find notebooks -name '*.ipynb' -not -path '*/.ipynb_checkpoints/*' -exec $(PY) -m factrobust.reproduce.notebook {} +

course: $(READY) ## make the course's notebooks anew of notebooks/course/exercises, and what the playground shows
	@$(PY) notebooks/course/build.py

bench: $(READY) ## benchmarks: costs as ratios, measured in one run
	@for file in benchmarks/*.py; do echo "[bench] $$file"; $(PY) "$$file" || exit 1; done

# The local part of torch's version (+cpu) is no pin.
constraints: ## resolve pyproject.toml anew and pin every package in constraints.txt
	$(CHECK_PYTHON)
	rm -rf build/resolved
	"$$PYTHON" install.py build/resolved newest
	{ grep '^#' constraints.txt; build/resolved/bin/python -m pip freeze --exclude-editable | sed 's/+.*//'; } > build/constraints.txt
	mv build/constraints.txt constraints.txt

clean: ## remove what can be made again in minutes; the models' answers (build/records) stay
	rm -rf build/seconds build/running build/failed build/nbval build/ipython build/resolved build/pip
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis

help:
	@echo "make ..."
	@sed -n -e 's/^##@ \(.*\)/\n\1\n/p' -e 's/^\([a-z]*\):.*## /\1|/p' Makefile | \
	  while IFS='|' read -r name what; do case "$$what" in "") echo "$$name";; *) printf '  %-11s %s\n' "$$name" "$$what";; esac; done
	@echo
	@echo "Values: PROFILE=smoke ONLY=1.2 (or 1-decoding, or 'notebooks/1-*'): with these parameters, these notebooks alone"
	@echo "        ASK=1: all answers are asked again; ASK=0: none; SEED=5: which are drawn"
	@echo "        CLUSTER=local WORKERS=2, or CLUSTER=tcp://scheduler:8786: models on Dask workers"
	@echo "        ALL=1: a card or flips ask all facts of DATA, not a sample"
	@echo "        OUT=FOLDER: where a card, flips or the answers are written"
	@echo "        LAB='--allow-root --no-browser': options of JupyterLab"
	@echo "        PLAN='--gpus 8 --gpu-memory 80 --tflops 200 --bandwidth 2000': your GPUs, and what one achieves"
	@echo "        JOBS=4 PYTHON=python3.12 TORCH_INDEX=https://download.pytorch.org/whl/cu130"
