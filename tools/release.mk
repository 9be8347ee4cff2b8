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

# The wheel of aarch64: compiled by Debian's cross compiler, used under qemu with Debian's Python and PyPI's wheels. Tests
# that start a Python for each instruction set of x86-64 are left out.
.PHONY: test-aarch64
AARCH64 := build/aarch64
ARM_DEBIAN := python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libpython3.11-dev libc6 libgcc-s1 libstdc++6 \
  zlib1g libexpat1 libssl3 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 libcrypt1 libuuid1
ARM_PYPI = --target $(AARCH64)/site --upgrade --python-version 3.11 --only-binary=:all: \
  $(patsubst %,--platform %_aarch64,linux manylinux2014 manylinux_2_26 manylinux_2_27 manylinux_2_28)
test-aarch64: $(AARCH64)/site/labelwood
	$(AARCH64)/python -m pytest -n 0 --timeout 0 -k "not every_instruction_set" \
	  tests/golden tests/packed tests/test_sparse.py tests/core $(ARGS)

$(AARCH64)/python:
	dpkg --add-architecture arm64 && apt-get --quiet update
	apt-get install --yes --no-install-recommends g++-aarch64-linux-gnu qemu-user
	mkdir -p $(AARCH64)/debs && chmod 777 $(AARCH64)/debs
	cd $(AARCH64)/debs && apt-get download --quiet $(ARM_DEBIAN:%=%:arm64)
	for package in $(AARCH64)/debs/*.deb; do dpkg -x $$package $(AARCH64)/root; done
	printf '#!/bin/sh\nexec qemu-aarch64 -L %s -E PYTHONPATH=%s %s/usr/bin/python3.11 "$$@"\n' \
	  $(abspath $(AARCH64))/root $(abspath $(AARCH64))/site $(abspath $(AARCH64))/root > $@ && chmod +x $@

$(AARCH64)/site/labelwood: $(AARCH64)/python $(VENV)/build-tools $(SOURCES)
	rm -rf $(AARCH64)/wheel $@
	_PYTHON_HOST_PLATFORM=linux-aarch64 SETUPTOOLS_EXT_SUFFIX=.cpython-311-aarch64-linux-gnu.so \
	  $(PIP) wheel --no-build-isolation --no-deps --wheel-dir $(AARCH64)/wheel -C build-dir=$(AARCH64)/cmake \
	  -C cmake.define.LABELWOOD_WERROR=ON -C cmake.define.CMAKE_SYSTEM_NAME=Linux -C cmake.define.CMAKE_SYSTEM_PROCESSOR=aarch64 \
	  -C cmake.define.CMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
	  -C cmake.define.CMAKE_CXX_FLAGS="-idirafter $(abspath $(AARCH64))/root/usr/include" \
	  -C cmake.define.Python_INCLUDE_DIR=$(abspath $(AARCH64))/root/usr/include/python3.11 .
	$(PIP) install $(ARM_PYPI) --group test $(AARCH64)/wheel/*.whl
	touch $@

# Files that other tools read, checked by those tools' linters. actionlint is on neither PyPI nor Debian: it runs where it
# is installed, as in the workflow; tests/release/test_workflows.py checks what it would check first.
.PHONY: check-release coverage bench bench-compare bench-record
check-release: $(VENV)/installed $(VENV)/tools-release $(VENV)/tools-test build/debian/usr/bin/promtool build/debian/systemd-analyze
	$(BIN)/repo-review .
	$(BIN)/zizmor --offline --quiet --min-severity medium .github/workflows
	! command -v actionlint > /dev/null || actionlint
	$(BIN)/hadolint deploy/Containerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/idea.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.readthedocs .readthedocs.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec deploy/compose.yaml
	$(BIN)/kubernetes-validate --strict --quiet deploy/kubernetes.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/validate-pyproject pyproject.toml
	build/debian/usr/bin/promtool check rules --lint-fatal deploy/labelwood.rules.yml
	build/debian/usr/bin/promtool check config --syntax-only deploy/prometheus.yml
	sed 's|/opt/labelwood/bin/|$(abspath $(BIN))/|' deploy/labelwood.service > build/labelwood.service
	systemd-analyze verify --man=no build/labelwood.service 2>&1 | tee -a /dev/stderr | (! grep -q labelwood.service)
	$(BIN)/python -m pytest -n 0 -q -rs tests/release/test_files.py tests/release/test_workflows.py

# promtool is part of Debian's server, which is unpacked, not installed.
build/debian/usr/bin/promtool:
	mkdir -p build/debian && chmod 777 build/debian
	cd build/debian && apt-get download --quiet prometheus && dpkg -x prometheus_*.deb . && rm prometheus_*.deb

build/debian/systemd-analyze:
	command -v systemd-analyze > /dev/null || apt-get install --yes --no-install-recommends systemd
	mkdir -p build/debian && touch $@

# Lines and branches that the tests reach, as pages in build/coverage.
coverage: $(VENV)/installed $(VENV)/tools-test $(VENV)/tools-coverage
	$(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report=term --cov-report=html:build/coverage tests $(ARGS)

# Instructions of train, batch, single, load, encode and learn, by callgrind; see benchmarks/instructions/count.py.
VALGRIND = command -v valgrind > /dev/null || apt-get install --yes --no-install-recommends valgrind
bench: $(VENV)/installed
	$(VALGRIND)
	$(BIN)/python benchmarks/instructions/count.py

bench-record: $(VENV)/installed
	$(VALGRIND)
	$(BIN)/python benchmarks/instructions/count.py --record

# The guard fails on a copy of the package whose search is done twice.
.PHONY: test-guard
test-guard: $(VENV)/installed $(VENV)/tools-test
	$(VALGRIND)
	LABELWOOD_GUARD=1 $(BIN)/python -m pytest -n 0 -s tests/benchmarks/test_instructions.py $(ARGS)

# Against another revision, built here: make bench-compare BASE=main
BASE ?= HEAD~1
bench-compare: $(VENV)/installed
	$(VALGRIND)
	rm -rf build/bench && mkdir -p build/bench && git archive $(BASE) --prefix=source/ | tar -x -C build/bench
	$(PIP) install --no-build-isolation --no-deps --target build/bench/site build/bench/source
	$(BIN)/python benchmarks/instructions/count.py --base $(abspath build/bench/site)
