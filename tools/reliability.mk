# What looks for crashes, races, leaks and lost data: sanitizer builds, fuzzing, faults, the soak. See docs/develop/testing.md.

.PHONY: test-asan test-tsan

# Builds of the package besides the one in $(VENV); PYTHONPATH puts them before it.
BUILD_asan := -C cmake.define.LABELWOOD_SANITIZE=address,undefined
BUILD_tsan := -C cmake.define.LABELWOOD_SANITIZE=thread
# In DWARF 5, addr2line confuses the file of a function with the file that includes it.
BUILD_walks := -C cmake.build-type=Debug -C cmake.define.CMAKE_CXX_FLAGS="-g1 -gdwarf-4 -finstrument-functions \
  -finstrument-functions-exclude-file-list=/usr/,site-packages"
build/%/installed: $(VENV)/installed
	$(PIP) install --no-build-isolation --no-deps --upgrade --target build/$*/site \
	  -C build-dir=build/$*/cmake $(BUILD_$*) -C install.strip=false .
	touch $@

# The interpreter is not instrumented, so the sanitizer's run-time library must be preloaded. Leak detection is off: it
# would report the interpreter's own leaks.
CXX ?= g++
LIBRARY = $(shell $(CXX) -print-file-name=$(1))
ASAN = LD_PRELOAD="$(call LIBRARY,libasan.so) $(call LIBRARY,libstdc++.so)" PYTHONPATH=build/asan/site \
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:exitcode=99 UBSAN_OPTIONS=print_stacktrace=1:exitcode=99 $(BIN)/python
TSAN = LD_PRELOAD="$(call LIBRARY,libtsan.so) $(call LIBRARY,libstdc++.so)" PYTHONPATH=build/tsan/site \
  TSAN_OPTIONS=halt_on_error=1:suppressions=tools/tsan.supp setarch -R $(BIN)/python

# pytest's capture by file descriptor would lose a report: the sanitizer ends the process.
test-asan: build/asan/installed $(VENV)/tools-test
	$(ASAN) -m pytest -n 0 --capture=sys tests/core tests/text tests/data tests/methods tests/storage tests/packed \
	  tests/test_sparse.py $(ARGS)

test-tsan: build/tsan/installed $(VENV)/tools-test
	$(TSAN) -m pytest -n 0 --capture=sys tests/threads $(ARGS)

# `make fuzz MINUTES=5` divides the time among the targets; counts and findings go to build/fuzz/*.json.
MINUTES ?= 30
SEED ?= 0
FUZZED := parsers models logs arguments bodies imports
.PHONY: fuzz fuzz-guided $(FUZZED:%=fuzz-%)
fuzz: fuzz-guided $(FUZZED:%=fuzz-%)
SHARE = $$(python3 -c "print($(MINUTES) / 7)")

$(FUZZED:%=fuzz-%): fuzz-%: build/asan/installed $(VENV)/tools-test
	mkdir -p build/fuzz
	$(ASAN) fuzz/run.py $* --seed $(SEED) --out build/fuzz/$*-$(SEED).json $(if $(COUNT),--count $(COUNT),--minutes $(SHARE))

# Coverage-guided fuzzing: libFuzzer needs clang. Inputs that reach new code are kept in build/fuzz/grown.
CLANG ?= clang++
fuzz-guided: build/fuzz/rows
	mkdir -p build/fuzz/grown
	seconds=$$(python3 -c "print(round($(MINUTES) * 60 / 7))") && build/fuzz/rows -max_total_time=$$seconds -print_final_stats=1 -artifact_prefix=build/fuzz/ -dict=fuzz/rows.dict \
	  build/fuzz/grown fuzz/corpus 2>&1 | tee build/fuzz/guided.log | grep -v NEW
	grep -q 'Done [0-9]* runs' build/fuzz/guided.log

build/fuzz/rows: fuzz/rows_fuzzer.cpp $(shell find src/core -name "*.hpp")
	mkdir -p build/fuzz
	$(CLANG) -std=c++20 -O1 -g1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -D_GLIBCXX_ASSERTIONS \
	  -Isrc/core -o $@ fuzz/rows_fuzzer.cpp -pthread

# Pinned packages with hashes: `make locked` installs them into a new $(VENV), `make lock` updates tools/dev.lock.
.PHONY: lock locked sbom audit test-sdist wheels
GROUPS_LOCKED := build check test fuzz
lock: $(VENV)/tools-supply
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --upgrade \
	  --default-index https://pypi.org/simple --extra plots --extra serve $(GROUPS_LOCKED:%=--group %) pyproject.toml \
	  --quiet --output-file tools/dev.lock

locked: $(VENV)/bin/python
	$(PIP) install --require-hashes --requirement tools/dev.lock
	touch $(VENV)/build-tools $(GROUPS_LOCKED:%=$(VENV)/tools-%)

sbom: $(VENV)/installed $(VENV)/tools-supply
	mkdir -p build
	test -x build/user/bin/python || $(PYTHON) -m venv build/user
	build/user/bin/python -m pip --quiet install 'numpy>=1.26' 'scipy>=1.11' 'scikit-learn>=1.6'
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --of JSON -o build/sbom.json build/user/bin/python

audit: $(VENV)/tools-supply
	$(BIN)/pip-audit --disable-pip --requirement tools/dev.lock

# Install from the source distribution as a user does: pip unpacks and compiles it without the files of this checkout.
test-sdist: $(VENV)/tools-supply
	rm -rf build/sdist && mkdir -p build/sdist
	$(BIN)/python -m build --sdist --outdir build/sdist .
	$(PYTHON) -m venv build/sdist/venv
	build/sdist/venv/bin/python -m pip --quiet install build/sdist/*.tar.gz
	cd build/sdist && venv/bin/labelwood --version && venv/bin/python -c "import labelwood; labelwood.LinearTree(n_jobs=1).fit([[1, 0], [0, 1]], [['a'], ['b']])"

wheels: $(VENV)/tools-supply
	$(BIN)/cibuildwheel --output-dir build/wheels

# A long run of learning, suggesting, saving and serving; fails if a prediction is wrong or memory grows.
.PHONY: soak
soak: $(VENV)/installed
	$(BIN)/python tools/soak.py --minutes $(MINUTES)

# Data larger than 2 GB; needs 12 GB of memory and 5 GB of disk.
.PHONY: test-large
test-large: $(VENV)/installed $(VENV)/tools-test
	LABELWOOD_LARGE=1 $(BIN)/python -m pytest -n 0 tests/large $(ARGS)
