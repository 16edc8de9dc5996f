# The front door. Every recipe is one line; what it does is in .ci/.
# Variables: JOBS=n (parallel compilers), PRESET=release|dev|asan|tsan|gcc for `build`.
.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-fast lint format fuzz docs install bench clean
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
PRESET ?= release
PREFIX ?= /usr/local
export MUSTER_JOBS := $(JOBS)
export MUSTER_TIDY_ALL := $(ALL)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

setup: ## install what is missing: Debian packages, .venv (MUSTER_NO_APT=1, MUSTER_PIP_ARGS=…)
	@.ci/setup.sh all

build: ## the programs and libmuster_coll.so, into build/release/bin and lib
	@.ci/setup.sh build && .ci/build.sh $(PRESET)

demo: ## pack, train, kill a rank, recover, compare bit by bit, report (SEED=n)
	@.ci/demo.sh $(if $(SEED),--seed $(SEED))

test: ## everything CI runs (LEG="checks asan" runs only those legs, LEG=list names them)
	@.ci/test.py $(LEG)

test-fast: ## the edit loop, 2 to 3 min once built: checks, release build, quick tests
	@.ci/test.py checks release-fast pytest-fast

lint: ## formats, layers, sizes, headers, clang-tidy, ruff, shellcheck, links (ALL=1: tidies all)
	@.ci/test.py checks headers tidy

format: ## rewrite sources in the house format
	@.ci/format.sh

fuzz: ## every fuzz harness over its corpus (SECONDS_EACH=60 TARGET=name)
	@.ci/fuzz.sh $(or $(SECONDS_EACH),60) $(TARGET)

docs: ## check links and run the commands of README and guides as written
	@.ci/test.py docs

install: ## programs, libmuster_coll.so, its header and the pages under PREFIX=/usr/local
	@.ci/install.sh "$(PREFIX)"

bench: ## BAR=S1 measures that bar; without BAR lists the bars and their last figures
	@.ci/bench.py $(BAR)

clean: ## remove build/ and what tests and demo left; .venv stays
	@rm -rf build demo runs .pytest_cache .ruff_cache
