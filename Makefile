# Every target sets up what it needs, once; `make` alone explains them.
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
READY  := $(VENV)/.ready
# matplotlib remembers where fonts lie. A memory shared with environments that are gone sends it to other fonts.
export MPLCONFIGDIR := $(CURDIR)/$(VENV)/matplotlib
NICE   := OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false

.DEFAULT_GOAL := help
.PHONY: help setup run book lab test test-package test-notebooks test-emulated bench kernels emulate notebooks docs doctor clean

help:
	@echo "pspin_lite: the p-Spin Glass Network, explained and implemented"
	@echo
	@echo "  make run        execute every notebook in order into a book to read: build/book/index.html"
	@echo "  make test       every test: unit tests, notebooks, lint, format"
	@echo "  make book       the same book from the stored outputs, in seconds"
	@echo "  make lab        open JupyterLab on the notebooks"
	@echo "  make bench      print the performance tables (about a quarter of an hour)"
	@echo "  make kernels    compile every Triton kernel for three GPUs (none is needed) and look at the machine code"
	@echo "  make emulate    execute our kernels for A100 and H100 on the CPU, count, write docs/emulator.md (20 minutes)"
	@echo "  make test-emulated  every test of the kernels, 300 random shapes, bugs and removed barriers, emulated (ten minutes)"
	@echo "  make doctor     what this machine has, and what will run on it"
	@echo
	@echo "  make notebooks  execute the notebooks and store their outputs in notebooks/"
	@echo "  make docs       write docs/equations.md, docs/letters.md and the figures in docs/ anew"
	@echo "  make setup      only create $(VENV) and install everything, pinned"
	@echo "  make clean      remove $(VENV) and build/"
	@echo
	@echo "Each one sets up $(VENV) first if need be. Another Python: make run PYTHON=python3.12"

# Written last, so that an interrupted installation is taken up again.
$(READY): requirements.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found: install Python 3.11 or newer, or name one: make $(MAKECMDGOALS) PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"make: $(PYTHON) is Python {v[0]}.{v[1]}, but 3.11 or newer is needed: make $(MAKECMDGOALS) PYTHON=...")'
	@echo "setting up $(VENV) (once; a few minutes)"
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

setup: $(READY)

run: $(READY)
	@$(PY) notebooks/run.py --out build/notebooks
	@$(PY) docs/book/build.py --executed build/notebooks

book: $(READY)
	@$(PY) docs/book/build.py

notebooks: $(READY)
	@$(PY) notebooks/run.py --store

lab: $(READY)
	@$(PY) -m jupyter trust notebooks/*.ipynb >/dev/null  # live figures are scripts
	@$(PY) -m jupyterlab --ServerApp.root_dir="$(CURDIR)" --LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb \
		$(if $(filter 0,$(shell id -u)),--allow-root)

# Tests and notebook cells side by side, by workers of one thread each: five of them on two cores, because tests wait for
# a process, a browser, a disk or a clock about half of their time. One more worker costs 20 s of computing.
test: $(READY)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(MAKE) --no-print-directory --jobs 2 test-package test-notebooks

test-package: $(READY)
	@$(NICE) $(PY) -m pytest tests -q -n 4 --dist worksteal -p no:nbval

test-notebooks: $(READY)
	@$(NICE) $(PY) -m pytest notebooks -q -n 1 --dist loadfile --nbval --nbval-current-env --nbval-cell-timeout 600 \
		--nbval-sanitize-with notebooks/sanitize.cfg

# What a GPU would run with `pytest -m gpu`, compiled for A100 and H100 and executed on the CPU. On each chip 50 random
# shapes for each of three operators. Triton's compilations are kept in build/triton.
test-emulated: $(READY)
	@for chip in sm_80 sm_90; do \
		PSPIN_CHIP=$$chip PSPIN_EXAMPLES=50 TRITON_CACHE_DIR=$(CURDIR)/build/triton $(NICE) $(PY) -m pytest -q -n 2 \
			--dist worksteal tests/kernels tests/tools/emulator/test_barriers.py || exit 1; \
	done

bench: $(READY)
	@$(PY) -m pspin_lite bench

kernels: $(READY)
	@$(PY) -m pspin_lite kernels --compare-fla

emulate: $(READY)
	@$(PY) -m pspin_lite kernels --executed --write

docs: $(READY)
	@$(PY) -m pspin_lite equations --write
	@$(PY) -m pspin_lite.lessons.figures.architecture

doctor: $(READY)
	@$(PY) -m pspin_lite doctor

clean:
	rm -rf $(VENV) build
