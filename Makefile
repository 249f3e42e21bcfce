# casemill: everything a newcomer needs. `make build-dataset` and `make test` set up what is missing.

# One pipeline (PIPELINE=medrounds), or every one in pipelines/.
PIPELINE ?= $(patsubst pipelines/%.toml,%,$(wildcard pipelines/*.toml))
# Raw files, one folder per source; the sample without it.
RAW ?= data/sample
# Work, cache and releases.
DATA ?= data
# Name of the release.
VERSION ?= 0.1.0
# How models are used: off, live, record or replay.
LLM ?= off
# Options of every build, for example BUILD_FLAGS="--jobs 1 --budget 5".
BUILD_FLAGS ?=

TARGET := $(or $(CARGO_TARGET_DIR),target)
CASEMILL := $(TARGET)/release/casemill
CARGO_HOME_BIN := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin

.DEFAULT_GOAL := help
.PHONY: help setup build install build-dataset stage release test check-llm bench schemas

help:
	@echo 'make build-dataset [PIPELINE=medrounds] [RAW=DIR] [VERSION=1.0.0] [LLM=live]   build and freeze; records in quarantine are left out and listed'
	@echo 'make release VERSION=1.0.0 [PIPELINE=…] [RAW=DIR]                   the same, but records in quarantine stop it'
	@echo 'make stage PIPELINE=medrounds NODE=extract_slots                    run one node again, and what depends on it'
	@echo 'make test      all tests'
	@echo 'make check-llm a small real model on this machine: record, replay, the same bytes'
	@echo 'make bench     the numbers'
	@echo 'make install   casemill into $(CARGO_HOME_BIN)'

setup:
	@scripts/setup.sh

build: setup
	cargo build --release --locked

# cargo's own folder for binaries is on the PATH of everyone who has cargo.
install: build
	@mkdir -p '$(CARGO_HOME_BIN)'
	@install -m 755 '$(CASEMILL)' '$(CARGO_HOME_BIN)/casemill'

build-dataset: install
	@for pipeline in $(PIPELINE); do \
	  $(CASEMILL) build $$pipeline --raw '$(RAW)' --data '$(DATA)' --llm '$(LLM)' $(BUILD_FLAGS); code=$$?; \
	  if [ $$code -ne 0 ] && [ $$code -ne 4 ]; then exit $$code; fi; \
	  $(CASEMILL) freeze $$pipeline --raw '$(RAW)' --data '$(DATA)' --llm '$(LLM)' --version '$(VERSION)' --allow-quarantine || exit $$?; \
	done

release: install
	@for pipeline in $(PIPELINE); do \
	  $(CASEMILL) build $$pipeline --raw '$(RAW)' --data '$(DATA)' --llm '$(LLM)' $(BUILD_FLAGS) || exit $$?; \
	  $(CASEMILL) freeze $$pipeline --raw '$(RAW)' --data '$(DATA)' --llm '$(LLM)' --version '$(VERSION)' || exit $$?; \
	  $(CASEMILL) verify '$(DATA)/release/'$$pipeline'-$(VERSION)' || exit $$?; \
	done

stage: install
	@test -n '$(NODE)' || { echo 'make stage needs NODE=…; casemill plan $(PIPELINE) lists them'; exit 2; }
	$(CASEMILL) build $(PIPELINE) --raw '$(RAW)' --data '$(DATA)' --llm '$(LLM)' --force '$(NODE)' $(BUILD_FLAGS)

# The readers' test needs Python with pyarrow, polars and duckdb; it gets an environment of its own.
test: setup
	scripts/test-python.sh '$(TARGET)/python'
	CASEMILL_REQUIRE_PYTHON=1 CASEMILL_TEST_PYTHON='$(abspath $(TARGET))/python/bin/python' cargo test --release --locked

# The server and its weights come from the Python package registry, into a folder of their own.
check-llm: build
	scripts/check-llm.sh '$(CASEMILL)' '$(TARGET)/check-llm'

bench: setup
	cargo bench --locked

schemas: build
	$(CASEMILL) schema --write
