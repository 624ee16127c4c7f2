# The few commands of daily work. Builds live in build/<preset>; see CMakePresets.json.
#   make test TESTS='chan'    only the tests whose name matches
#   make asan LABEL=quick     one run of each test instead of all
#   make stress SECONDS=300   what runs for a minute a case under fire, for five
#   make test JOBS=4          two tests at a time (timing tests then disturb each other)
PREFIX ?= /usr/local
TESTS ?= .
LABEL ?=
SECONDS ?= 60
JOBS ?= 2
DEPS := scripts/install-deps.sh
BUILD = cmake --preset $(1) && cmake --build --preset $(1)
CTEST = ctest --preset $(1) -j $(JOBS) -R '$(TESTS)' $(if $(LABEL),-L '$(LABEL)')

.PHONY: run test test-web viewer stress bench install asan tsan tidy format clean

run:
	@$(DEPS) build
	@$(call BUILD,release) --target demo
	@build/release/examples/demo
	@build/release/examples/demo trace build/demo.trace
	@cmake --build --preset release --target gofer_tool >build/gofer_tool.log 2>&1 \
	  && build/release/tools/gofer trace view build/demo.trace -o build/demo.html \
	  || echo "build/demo.trace: a trace; go tool trace shows it (gofer trace view needs libcli11-dev and zlib1g-dev)"

test:
	@$(DEPS) build test
	@$(call BUILD,check)
	@$(call CTEST,check)

# The page of gofer trace view, in Debian's Chromium.
test-web:
	@$(DEPS) build test web
	@$(call BUILD,check) --target gofer_tool trace_synthesise
	@cd tools/view && npm run --silent check && bash test/bundle.sh
	@cd tools/view && GOFER=$(CURDIR)/build/check/tools/gofer SYNTHESISE=$(CURDIR)/build/check/tools/trace_synthesise \
	  npm run --silent test

# Bundles the page anew, after a change in tools/view.
viewer:
	@$(DEPS) web
	@cd tools/view && npm run --silent check && npm run --silent build

stress:
	@$(DEPS) build test
	@$(call BUILD,check)
	@GOFER_STRESS_SECONDS=$(SECONDS) ctest --preset check -C stress -L stress -R '$(TESTS)'

asan:
	@$(DEPS) build test
	@$(call BUILD,asan)
	@$(call CTEST,asan)

tsan:
	@$(DEPS) build test clang
	@$(call BUILD,tsan)
	@$(call CTEST,tsan)

bench:
	@$(DEPS) build bench
	@$(call BUILD,release) --target gofer_bench
	@python3 bench/run.py --build build/release

install:
	@$(DEPS) build
	@$(call BUILD,release)
	@cmake --install build/release --prefix '$(PREFIX)'

tidy:
	@$(DEPS) build test clang tidy
	@cmake --preset clang
	@run-clang-tidy -quiet -j 2 -p build/clang '/(src|tests|examples|bench)/.*\.cc$$'

format:
	@$(DEPS) format
	@find include src tests examples bench tools -name '*.h' -o -name '*.cc' 2>/dev/null | xargs -r clang-format -i

clean:
	@rm -rf build
