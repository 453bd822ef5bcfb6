# make run | test | gpu | fuzz | pairs | neon | install PREFIX=... | deb | wheel | wheel-test | reference | asan | tsan | bench | clean
# JOBS=N limits the parallel compilations; SINTER_SKIP_SETUP=1 installs no packages.
JOBS ?= $(shell nproc)
TEST_JOBS ?= 2
PREFIX ?= /usr/local

configure = CXX="$${CXX:-$$(scripts/setup.sh --compiler)}" cmake --preset $(1)
build = cmake --build $(1) -j $(JOBS)
ctest = ctest --test-dir $(1) --output-on-failure --no-tests=error -j $(TEST_JOBS) -LE '^(slow|gpu|neon)$$' --timeout 600
cases = awk '/^\[  PASSED  \]/ { n += $$4 } END { print n + 0 " test cases passed in the suites above" }' \
	$(1)/Testing/Temporary/LastTest.log

pairs = awk '/^(pairs|chains): [1-9]/ { kind = $$1; n = $$2; sub(/.* ran on /, ""); sub(/, .*/, ""); total[kind " on " $$0] += n } \
	END { for (which in total) print which ": " total[which] }' $(1)/Testing/Temporary/LastTest.log | sort

.PHONY: run test gpu fuzz pairs neon build install deb wheel wheel-test reference asan tsan bench clean setup

# The bundled model in every mode, eager against compiled.
run: build
	build/bin/sinter demo

# The library, the command and the plugin; the tests are built by `make test`.
build: setup
	$(call configure,release)
	$(call build,build) --target product

test: setup
	$(call configure,release)
	$(call build,build)
	$(call ctest,build)
	@$(call cases,build)

# Ten thousand random programs under compile(), in two processes; CONTRIBUTING.md tells how to choose others.
fuzz: setup
	$(call configure,release)
	$(call build,build) --target test_fuzz_slow
	ctest --test-dir build --verbose --no-tests=error -j $(TEST_JOBS) -L '^slow$$' -R '^fuzz_slow'

# Every op's result into every kind of consumer, on every instruction set, with both compilers, and on a GPU where there is one;
# SINTER_PAIRS_SEED and SINTER_PAIRS_ONE_OF take a part of them.
pairs: setup
	$(call configure,release)
	$(call build,build) --target test_pairs_slow test_pairs_gpu
	ctest --test-dir build --output-on-failure --no-tests=error -j $(TEST_JOBS) -R '^pairs_slow' --timeout 7200
	@$(call pairs,build)
	SINTER_PAIRS_ONE_OF=$${SINTER_PAIRS_ONE_OF:-4} ctest --test-dir build --output-on-failure --no-tests=error -j $(TEST_JOBS) -R '^pairs_gpu' --timeout 7200
	@$(call pairs,build)

# What needs an NVIDIA GPU; on a machine without one every case is skipped.
gpu: setup
	$(call configure,release)
	$(call build,build)
	ctest --test-dir build --output-on-failure --no-tests=error -j 2 -L '^gpu$$' --timeout 1200

# Kernels, GEMM and the loader cross-compiled for AArch64 and run under qemu-user (g++-aarch64-linux-gnu, qemu-user).
neon: setup
	$(call configure,release)
	JOBS=$(JOBS) ctest --test-dir build --verbose --no-tests=error -L '^neon$$'

install: build
	cmake --install build --prefix "$(PREFIX)"

# build/package/sinter_VERSION_ARCHITECTURE.deb; scripts/check_deb.sh tries it.
deb: build
	cpack --config build/CPackConfig.cmake -G DEB -B build/package

# build/wheel/sinter-VERSION-cp39-abi3-….whl, for Python 3.9 on.
version = $(shell awk '/^project/ { print $$3 }' CMakeLists.txt)
wheel: setup
	$(call configure,release)
	$(call build,build) --target sinter_python
	scripts/make_wheel.py build/python build/wheel $(version)

# The backend beside torch, by an interpreter that has torch 2.9 or newer: make wheel-test PYTHON=….
PYTHON ?= python3
wheel-test: wheel
	rm -rf build/wheel/installed && mkdir -p build/wheel/installed
	$(PYTHON) -m zipfile -e build/wheel/sinter-*.whl build/wheel/installed
	PYTHONPATH=build/wheel/installed $(PYTHON) -m unittest discover -v -s tests/python -p 'torch_*_test.py'

# docs/reference, from the public headers and the registry.
reference: setup
	$(call configure,release)
	$(call build,build) --target sinter_cli
	rm -rf docs/reference
	build/bin/sinter ops --reference docs/reference

asan: setup
	$(call configure,asan)
	$(call build,build/asan)
	$(call ctest,build/asan)
	@$(call cases,build/asan)

# Without address randomisation: ThreadSanitizer's shadow memory does not fit every layout.
tsan: setup
	$(call configure,tsan)
	$(call build,build/tsan)
	setarch -R $(call ctest,build/tsan)
	@$(call cases,build/tsan)

bench: setup
	$(call configure,release)
	$(call build,build) --target benches
	@find build/bench -maxdepth 1 -type f -executable

setup:
	@scripts/setup.sh

clean:
	rm -rf build
