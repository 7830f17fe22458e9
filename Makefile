# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: help demo test test-slow test-exact test-elsewhere site notebooks matrix wheel faults bench bench-large lint format clean evidence evidence-quick photoshift photoshift-quick mutants
.DEFAULT_GOAL := help

help:
	@echo "make demo    finetune a small CLIP four ways on embedded data and show what each one forgets"
	@echo "make test    lint, types and every test; builds the site and runs the cells of the notebooks"
	@echo "make test-slow  tests that build C++, measure memory or play two machines; minutes, best on an idle one"
	@echo "make test-exact  comparisons of two ways to compute, with other instructions of the processor and two threads"
	@echo "make test-elsewhere  tests of paths and commands in a folder with a space, as another user, with LC_ALL=C"
	@echo "make site    build the documentation into build/site; fails on a broken link or anchor"
	@echo "make notebooks  run the notebooks in kernels of their own; a minute or two"
	@echo "make matrix  fast tests on each PYTHONS and TORCHES, in environments of their own; downloads gigabytes"
	@echo "make wheel   build the wheel and try it in an environment of its own, outside this folder; minutes"
	@echo "make faults  inject faults (kills, full disks, damaged files, bad data), count what survives; half an hour"
	@echo "make mutants apply deliberate breakages one by one; the tests must catch each of them; half an hour"
	@echo "make bench   time training against released-style code; 20 minutes on two idle cores"
	@echo "make evidence-quick  test the paper's claims on emoji, in a quarter of an hour; make evidence: in four hours"
	@echo "make photoshift-quick  the same on photographs, with real towers; 84 runs; make photoshift: 989 runs"
	@echo "make format  let ruff format the code"

# Without bytecode every process that the tests start would compile the package anew. Empty means: write it.
export PYTHONDONTWRITEBYTECODE =

# Commands are run as modules: a script names its interpreter in one line, which a folder with a space cuts in two.
RUN := $(BIN)/python -m
# The last two commands let `import open_clip` work beside a CPU torch; see the file that is copied.
SITE = "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
$(VENV)/ready: pyproject.toml constraints.txt tracer/models/torchvision_compat.py
	$(PYTHON) -m venv $(VENV)
	$(RUN) pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,docs,notebooks,dev]'
	@cp tracer/models/torchvision_compat.py $(SITE)/torchvision_compat.py
	@echo 'import torchvision_compat' > $(SITE)/torchvision_compat.pth
	@touch $@

demo: $(VENV)/ready
	$(RUN) tracer demo

# Finished runs are not run again, so both can be stopped and started.
evidence-quick: $(VENV)/ready
	$(RUN) tracer evidence quick --out runs/emojishift-quick
	$(RUN) tracer report runs/emojishift-quick/runs --out runs/emojishift-quick/report.html

evidence: $(VENV)/ready
	$(RUN) tracer evidence part --results studies/emojishift/results/part.json --verdicts docs/evidence.md
	$(RUN) tracer report runs/emojishift/runs --out runs/emojishift/report.html

# Packages and models are cached; finished runs are not run again.
PHOTOS := $(RUN) studies.photoshift
photoshift-quick: $(VENV)/ready
	$(PHOTOS) study --scale quick
	$(PHOTOS) page --results runs/photoshift/quick.json --out runs/photoshift/quick.md

photoshift: $(VENV)/ready
	$(PHOTOS) study --scale full variants lengths knowledge carot --results studies/photoshift/results/photoshift.json
	$(PHOTOS) page --results studies/photoshift/results/photoshift.json --out docs/photoshift.md

# A few inputs of each scenario are part of `make test-slow`.
faults: $(VENV)/ready
	$(RUN) studies.faults --out studies/faults/results/faults.json --page docs/reliability.md  # --go-on: what is missing

# That each mutant still applies is part of `make test`.
mutants: $(VENV)/ready
	$(RUN) studies.mutants --out studies/mutants/results/mutants.json --page docs/reliability.md

BENCH_FILES := --results studies/bench/results/results.json --out docs/benchmarks.md
bench: $(VENV)/ready
	$(RUN) tracer bench --models ViT-B-16 RN50 --only steps teacher --rounds 3 $(BENCH_FILES)
	$(RUN) tracer bench --models ViT-L-14 --batch 4 --only overhead --rounds 2 $(BENCH_FILES)
	$(RUN) tracer bench --models ViT-B-16 --only head chunks data sizes --rounds 3 $(BENCH_FILES)
	$(RUN) tracer bench --models ViT-B-32 --only growth eval --rounds 3 $(BENCH_FILES)
	$(RUN) tracer bench --models ViT-B-16 RN50 --only memory $(BENCH_FILES)
	$(RUN) tracer bench --models EfficientNet-Lite0-MiniLM --batch 64 --only texts convolutions --rounds 2 $(BENCH_FILES)
	$(RUN) tracer bench --models RN50 --only convolutions --rounds 2 $(BENCH_FILES)

# Batch 256 of ViT-B-16 in 6 GiB: ten minutes or more for one number.
bench-large: $(VENV)/ready
	$(RUN) tracer bench --models ViT-B-16 --only large $(BENCH_FILES)

lint: $(VENV)/ready
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) pyrefly check --summary=none

test: lint
	$(RUN) pytest -n 2 --dist worksteal

test-slow: $(VENV)/ready
	$(RUN) pytest -m slow

# What PyTorch computes with; `native` is left to PyTorch. Threads that wait leave the cores to others.
test-exact: $(VENV)/ready
	for threads in 1 2; do for instructions in default avx2 native; do \
	  echo "$$instructions, $$threads threads"; \
	  [ $$instructions = native ] || export ATEN_CPU_CAPABILITY=$$instructions; \
	  OMP_WAIT_POLICY=passive TEST_THREADS=$$threads $(RUN) pytest -n 2 --dist worksteal -m 'exact and not slow' || exit 1; unset ATEN_CPU_CAPABILITY; \
	done; done

test-elsewhere: $(VENV)/ready
	.ci/elsewhere

site: $(VENV)/ready
	NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --strict  # not --quiet, which hides warnings from --strict

NOTEBOOKS := $(sort $(wildcard notebooks/*.ipynb))
notebooks: $(VENV)/ready
	for each in $(NOTEBOOKS); do OMP_NUM_THREADS=2 $(RUN) jupyter execute $$each || exit 1; done

# The oldest and newest supported versions; the interpreters must be installed.
PYTHONS ?= python3.11 python3.13
TORCHES ?= 2.6.0 2.13.0
matrix:
	for python in $(PYTHONS); do for torch in $(TORCHES); do .ci/matrix $$python $$torch || exit 1; done; done

wheel:
	PYTHON=$(PYTHON) .ci/wheel

format: $(VENV)/ready
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

clean:
	rm -rf $(VENV) runs build dist .pytest_cache .ruff_cache
