# Each target works on a fresh clone: it makes .venv itself. Python >= 3.11 is all it needs.
PYTHON ?= python3
VENV   ?= .venv
RUN    := $(VENV)/bin/python
PYTEST  = OMP_NUM_THREADS=1 $(RUN) -m pytest tests -n auto --maxprocesses 4 --dist loadfile
SEEDS  ?= 1
RUNS   ?= runs
JOBS   ?= 2
comma  := ,
space  := $(subst ,, )
SEED_LIST := $(subst $(space),$(comma),$(shell seq 0 $$(( $(SEEDS) - 1 ))))

.PHONY: study test unit lint bench clean

study: $(VENV)/.installed ## the five designs on the embedded default: train, score, compare
	$(RUN) train.py sweep=paper seed=$(SEED_LIST) runs_dir=$(RUNS)
	@echo "Scoring, $(JOBS) runs at a time, each before and after training."
	@ls -d $(RUNS)/embedded/*-*/seed=* | xargs -P $(JOBS) -I{} \
	    $(RUN) evaluate.py run={} benchmark=docs untrained=also threads=1 progress=false
	$(RUN) -m analysis scores=$(RUNS)/embedded/scores out=$(RUNS)/embedded/tables/all_pairs > /dev/null
	$(RUN) -m analysis scores=$(RUNS)/embedded/scores out=$(RUNS)/embedded/tables against=eos-causal
	$(RUN) -m analysis.control $(RUNS)/embedded > $(RUNS)/embedded/tables/control.md
	@echo
	@echo "Open $(RUNS)/embedded/tables/table.md (each design against Model 1; table.tex for the paper),"
	@echo "     $(RUNS)/embedded/tables/control.md (the audit: what differs beside pooler and attention),"
	@echo "     $(RUNS)/embedded/tables/all_pairs/table.md (all pairs), and manifest.json in any run folder of $(RUNS)/embedded/."

test: unit ## all tests, offline: the unit tests, then those that start processes or train whole runs
	$(PYTEST) -m slow

unit: $(VENV)/.installed ## the unit tests alone
	$(PYTEST) -m "not slow"

lint: $(VENV)/.installed ## style and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

bench: $(VENV)/.installed ## speed and exactness, printed with ratios
	$(RUN) -m benchmarks.invariance

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python >= 3.11 is needed; give PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --constraint constraints.txt ".[dev]"
	touch $@
