# What a release promises, and what checks it: wheels, compilers, machines, files for others' tools, instruction counts.

.PHONY: test-wheels test-clang

# The wheel of Python 3.12 is audited, installed and used on 3.12 and 3.13, if these are on this machine.
test-wheels: $(VENV)/installed $(VENV)/tools-test
	LABELWOOD_WHEELS=1 $(BIN)/python -m pytest -n 0 -rs tests/release/test_wheels.py $(ARGS)

# The kernels compiled by Debian's Clang, warnings as errors, and the tests that reach them.
CLANGXX ?= clang++-16
BUILD_clang = -C cmake.define.CMAKE_CXX_COMPILER=$(CLANGXX) -C cmake.define.LABELWOOD_WERROR=ON
KERNEL_TESTS := tests/core tests/golden tests/packed tests/text tests/methods tests/test_sparse.py
test-clang: build/clang-compiler build/clang/installed $(VENV)/tools-test
	PYTHONPATH=build/clang/site $(BIN)/python -m pytest -n 0 $(KERNEL_TESTS) $(ARGS)

build/clang-compiler:
	command -v $(CLANGXX) > /dev/null || apt-get install --yes --no-install-recommends clang-16
	mkdir -p build && touch $@

# Files that other tools read, checked by those tools' linters.
.PHONY: check-release coverage bench bench-compare bench-record
check-release: $(VENV)/installed $(VENV)/tools-release $(VENV)/tools-test
	$(BIN)/repo-review .
	$(BIN)/zizmor --offline --quiet --min-severity medium .github/workflows
	$(BIN)/hadolint deploy/Containerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.readthedocs .readthedocs.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec deploy/compose.yaml
	$(BIN)/kubernetes-validate --strict --quiet deploy/kubernetes.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/validate-pyproject pyproject.toml
	! command -v systemd-analyze > /dev/null || systemd-analyze verify --man=no deploy/labelwood.service
	$(BIN)/python -m pytest -n 0 -q tests/release/test_files.py

# Lines and branches that the tests reach, as pages in build/coverage.
coverage: $(VENV)/installed $(VENV)/tools-test $(VENV)/tools-coverage
	$(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report=term --cov-report=html:build/coverage tests $(ARGS)

# Instructions of train, batch, single, load, encode and learn, by callgrind; see benchmarks/instructions/count.py.
bench: $(VENV)/installed
	$(BIN)/python benchmarks/instructions/count.py

bench-record: $(VENV)/installed
	$(BIN)/python benchmarks/instructions/count.py --record

# Against another revision, built here: make bench-compare BASE=main
BASE ?= HEAD~1
bench-compare: $(VENV)/installed
	rm -rf build/bench && mkdir -p build/bench && git archive $(BASE) --prefix=source/ | tar -x -C build/bench
	$(PIP) install --no-build-isolation --no-deps --target build/bench/site build/bench/source
	$(BIN)/python benchmarks/instructions/count.py --base $(abspath build/bench/site)
