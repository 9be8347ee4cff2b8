# Every target builds what it needs from a fresh checkout with Python 3.11+, make and a C++20 compiler.
PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SITE = $(shell $(BIN)/python -c "import sysconfig; print(sysconfig.get_path('platlib'))")/labelwood
SOURCES := pyproject.toml CMakeLists.txt README.md $(shell find src -type f -not -name '*.pyc' -not -name _core.pyi)

.PHONY: check-odr walks docs experiments experiments-quick demo test test-adapters test-annif test-browser test-crash test-embeddings test-fuzz test-model check format clean install versus test-ray
.DELETE_ON_ERROR:

demo: $(VENV)/installed
	$(BIN)/labelwood demo

test: $(VENV)/installed $(VENV)/tools-test
	$(BIN)/python -m pytest -n $(WORKERS) --doctest-modules --ignore-glob='*/adapters/_[ar]*.py' --pyargs labelwood tests $(ARGS)

# Tests of the adapters with the real tools from PyPI, in two environments.
ADAPTERS := build/adapters
test-adapters: $(ADAPTERS)/main/installed $(ADAPTERS)/annif/installed
	$(ADAPTERS)/main/bin/python -m pytest --doctest-modules --ignore-glob='*/_annif.py' --pyargs labelwood.adapters tests/adapters tests/estimator/test_sklearn.py $(ARGS)
	$(ADAPTERS)/annif/bin/python -m pytest tests/adapters/test_annif.py tests/adapters/test_annif_metrics.py tests/adapters/test_annif_parity.py tests/adapters/test_integrations.py $(ARGS)

# Kill the service 200 times under load and check that no acknowledged example is lost; KILLS=20 for a shorter run.
KILLS ?= 200
test-crash: $(VENV)/installed $(VENV)/tools-test
	LABELWOOD_KILLS=$(KILLS) $(BIN)/python -m pytest -n 0 tests/serve/test_crash.py $(ARGS)

# Random sequences of requests, restarts, kills, faults and power cuts against a plain model of the service's state.
SEQUENCES ?= 2000
MODEL_SEED ?= 0
test-model: $(VENV)/installed $(VENV)/tools-test
	LABELWOOD_SEQUENCES=$(SEQUENCES) LABELWOOD_MODEL_SEED=$(MODEL_SEED) $(BIN)/python -m pytest -n 0 tests/serve/model $(ARGS)

# Thousands of requests generated from the service's OpenAPI description.
test-fuzz: $(VENV)/installed $(VENV)/tools-test $(VENV)/tools-fuzz
	$(BIN)/python -m pytest -n 0 -rs tests/serve/http/test_fuzz.py $(ARGS)

# Training and prediction on local Ray clusters of two and three nodes. Ray writes below HOME.
RAY := build/ray
test-ray: $(RAY)/installed
	HOME=$(abspath $(RAY)/home) $(RAY)/bin/python -m pytest -n 0 -rs tests/executors $(ARGS)

# Sentence embeddings by real models, in an environment of their own: MiniLM-L6, and a model of model2vec.
EMBEDDINGS := build/embeddings
test-embeddings: $(EMBEDDINGS)/installed
	$(EMBEDDINGS)/bin/python -m pytest -n 0 -rs tests/text/test_sentence_models.py $(ARGS)

# Annif, in its own environment: Labelwood's backends beside omikuji's, and a Labelwood service behind its http backend.
test-annif: $(VENV)/installed $(VENV)/tools-test $(ADAPTERS)/annif/installed
	LABELWOOD_ANNIF=$(abspath $(ADAPTERS)/annif/bin/annif) $(BIN)/python -m pytest -n 0 -rs tests/serve/http/test_annif_api.py $(ARGS)
	$(ADAPTERS)/annif/bin/python -m pytest -n 0 -rs tests/adapters/test_annif.py tests/adapters/test_annif_metrics.py tests/adapters/test_annif_parity.py $(ARGS)

# The web pages of `labelwood tree` and of the service in a real browser: Debian's chromium, driven by Playwright.
test-browser: $(VENV)/installed $(VENV)/tools-test $(VENV)/tools-browser
	command -v chromium > /dev/null || apt-get install --yes --no-install-recommends chromium
	$(BIN)/python -m pytest -rs tests/browser $(ARGS)

check: $(VENV)/installed $(VENV)/tools-check check-odr
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run --Werror $(shell find src/core fuzz -name '*.?pp')
	$(BIN)/codespell src tests docs notebook benchmarks fuzz tools *.md
	cp $(SITE)/_core.pyi src/labelwood/_core.pyi && $(BIN)/mypy
	$(BIN)/lint-imports

# The one-definition rule: a link with -flto compares the definitions of all files. Ninja compiles what changed.
check-odr: $(VENV)/build-tools
	$(BIN)/cmake -S . -B build/odr -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DPython_EXECUTABLE=$(abspath $(BIN)/python) \
	  -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-flto=auto -Werror=odr -Werror=lto-type-mismatch" > /dev/null
	$(BIN)/cmake --build build/odr --target _core

# Files that four walks through the code open, and their turns back; see docs/develop/architecture.md.
walks: build/walks/installed build/walks/recorder.so
	LD_PRELOAD=$(abspath build/walks/recorder.so) PYTHONPATH=build/walks/site $(BIN)/python tools/walks.py $(ARGS)

build/walks/recorder.so: tools/walks_recorder.c
	mkdir -p $(@D)
	$(CC) -O2 -Wall -Wextra -shared -fPIC -pthread -o $@ $<

format: $(VENV)/tools-check
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only .
	$(BIN)/clang-format -i $(shell find src/core fuzz -name '*.?pp')

install: $(VENV)/installed

# Compare Labelwood with its peers; see benchmarks/versus/README.md.
THREADS ?= 1,2
ROUNDS ?= 3
versus: $(VENV)/installed
	$(if $(DATA),,$(error versus: DATA must be a folder with train.txt[.xz] and test.txt[.xz]))
	$(BIN)/python benchmarks/versus/versus.py $(DATA) --threads $(THREADS) --peers "$(PEERS)" --rounds $(ROUNDS) $(ARGS)

# The tables and figures of the papers, from ../shared/data or LABELWOOD_DATA; see notebook/papers.md.
experiments: $(VENV)/installed
	$(BIN)/python -m experiments.run --workers $(WORKERS) $(ARGS)

experiments-quick: $(VENV)/installed
	$(BIN)/python -m experiments.run --quick --workers $(WORKERS) $(ARGS)

# Build the documentation site in build/site; a broken link or anchor is an error. --quiet would hide the warnings from --strict.
docs: $(VENV)/installed $(VENV)/tools-docs
	rm -rf build/gallery && $(BIN)/python tools/gallery.py build/gallery
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/build-tools: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --upgrade 'pip>=25.1'
	$(PIP) install --group build
	touch $@

# The build directory is kept, so that a reinstall after an edit compiles only what changed.
$(VENV)/installed: $(VENV)/build-tools $(SOURCES)
	$(PIP) install --no-build-isolation -C cmake.define.LABELWOOD_WERROR=ON '.[plots,serve]'
	touch $@

$(VENV)/tools-%: pyproject.toml $(VENV)/build-tools
	$(PIP) install --group $*
	touch $@

$(ADAPTERS)/wheel/built: $(VENV)/build-tools $(SOURCES)
	rm -rf $(ADAPTERS)/wheel
	$(PIP) wheel --no-build-isolation --no-deps --wheel-dir $(ADAPTERS)/wheel .
	touch $@

$(ADAPTERS)/main/installed: EXTRAS := river,mlflow,hub
$(ADAPTERS)/annif/installed: EXTRAS := annif
$(ADAPTERS)/%/installed: $(ADAPTERS)/wheel/built
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --quiet install --upgrade 'pip>=25.1'
	wheel=$$(echo $(ADAPTERS)/wheel/*.whl) && \
	$(@D)/bin/python -m pip --quiet install --group test --group adapters-$* "$$wheel[$(EXTRAS)]" && \
	$(@D)/bin/python -m pip --quiet install --force-reinstall --no-deps "$$wheel"
	touch $@

$(RAY)/installed: $(ADAPTERS)/wheel/built
	test -x $(RAY)/bin/python || $(PYTHON) -m venv $(RAY)
	mkdir -p $(RAY)/home
	$(RAY)/bin/python -m pip --quiet install --upgrade 'pip>=25.1'
	wheel=$$(echo $(ADAPTERS)/wheel/*.whl) && \
	$(RAY)/bin/python -m pip --quiet install --group test "$$wheel[ray]" && \
	$(RAY)/bin/python -m pip --quiet install --force-reinstall --no-deps "$$wheel"
	touch $@

$(EMBEDDINGS)/installed: $(ADAPTERS)/wheel/built
	test -x $(EMBEDDINGS)/bin/python || $(PYTHON) -m venv $(EMBEDDINGS)
	$(EMBEDDINGS)/bin/python -m pip --quiet install --upgrade 'pip>=25.1'
	wheel=$$(echo $(ADAPTERS)/wheel/*.whl) && \
	$(EMBEDDINGS)/bin/python -m pip --quiet install --group test --group embeddings "$$wheel[embeddings]" && \
	$(EMBEDDINGS)/bin/python -m pip --quiet install --force-reinstall --no-deps "$$wheel"
	touch $@

include tools/reliability.mk
include tools/release.mk

clean:
	rm -rf build $(VENV)
