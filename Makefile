# make setup  installs a pinned CPU environment into .venv
# make demo   runs the main line on the demo data, ending in a report
# make build  builds training data from the demo's questions and corpus
# make test   lint, types and the tests that fit in 25 minutes on 2 cores
# make test-all  all tests that need no GPU
# make bench  speed beside the published way, bare loops and bare vLLM; on an otherwise idle machine

PYTHON ?= python3
BIN := .venv/bin
RUN ?= demo

.PHONY: setup demo build test test-all bench lint clean

setup: .venv/ready

# torch first, and alone: the lock files leave out what it brings along, so that a CPU build takes no CUDA packages.
.venv/ready: cluster/cpu.txt cluster/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 setup")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q torch==2.13.0
	$(BIN)/python -m pip install -q setuptools==78.1.1 wheel ninja==1.13.2 packaging==26.4 py-cpuinfo==9.0.0 numpy==2.3.5
	DS_BUILD_OPS=0 $(BIN)/python -m pip install -q --no-deps --no-build-isolation -r cluster/cpu.txt
	$(BIN)/python -m pip install -q --no-deps -r cluster/dev.txt
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@

demo: setup
	$(BIN)/python -m jobs.prepare data=demo run=$(RUN)
	$(BIN)/python -m jobs.respond model=smollm2 engine=cpu prompt=auto prompt.shots=1 sampling.max_tokens=64 run=$(RUN)
	$(BIN)/python -m jobs.evaluate judge/entails=lexical run=$(RUN)

build: setup
	$(BIN)/python -m jobs.prepare data=demo_build run=build
	$(BIN)/python -m jobs.curate run=build judge/embed=minilm_l6 judge/complete=smollm2 "exclude=[package://trust/demo/em.jsonl,package://trust/demo/em5.jsonl,package://trust/demo/cm.jsonl]" clustering.method=hdbscan clustering.min_cluster_size=4 clustering.noise=keep draw.at_least=1
	$(BIN)/python -m jobs.retrieve from_run=build from_table=seeds run=build-found retriever=rrf judge/embed=minilm_l6 corpus.path=package://trust/demo/corpus.jsonl k=20
	$(BIN)/python -m jobs.label from_run=build-found run=build-labelled judge/entails=lexical
	$(BIN)/python -m jobs.recombine run=build-labelled variants.answerable=2 variants.unanswerable=1
	$(BIN)/python -m jobs.positives run=build-labelled judge/entails=lexical judge/complete=smollm2 writing.tries=1 max_failed=1
	$(BIN)/python -m jobs.positives from_run=build-labelled from_table=oracle run=build-oracle judge/entails=lexical judge/complete=smollm2 writing.tries=1 max_failed=1
	$(BIN)/python -m jobs.respond from_run=build-labelled from_table=variants run=build-answers model=smollm2 sampling.max_tokens=48
	$(BIN)/python -m jobs.negatives run=build-answers judge/entails=lexical
	$(BIN)/python -m jobs.pair positives_run=build-labelled errors_run=build-answers sft_run=build-oracle run=build-pairs

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -m "not slow and not gpu"

test-all: lint
	$(BIN)/python -m pytest -m "not gpu"

bench: setup
	$(BIN)/python -m tests.bench.judge
	$(BIN)/python -m tests.bench.judge --size base
	$(BIN)/python -m tests.bench.evaluate
	$(BIN)/python -m tests.bench.respond

clean:
	rm -rf runs .pytest_cache .ruff_cache .mypy_cache
