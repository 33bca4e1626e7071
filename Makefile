# SPDX-License-Identifier: Apache-2.0
# A short front of CMake's presets (CMakePresets.json): the work is in tools/.
PREFIX ?= /usr/local
DESTDIR ?=
BUILD = build/release

.PHONY: all build demo check check-all fuzz bench lint format install clean help
all: build

help:
	@echo "make            build the library and the command, in $(BUILD)"
	@echo "make demo       record the example server and print the report"
	@echo "make check      everything that must hold: tests, sanitizers, fuzzing, lint, installation"
	@echo "make fuzz       look for inputs that no check has seen: FUZZ_S=60 seconds for each target"
	@echo "make check-all  the tests of CPython, bash and git, without weft and under weft run: each must have the same result; Parca, Pyroscope, OTLP; Ruby 3.3"
	@echo "make bench      measure, into build/bench.json"
	@echo "make lint       formatting, shell scripts, static analysis, man pages"
	@echo "make format     reformat the sources"
	@echo "make install    PREFIX=$(PREFIX), DESTDIR is honoured"
	@echo "make clean      remove build/"

# What a user gets, without the tests, whose fixtures need more than the build group of tools/bootstrap installs.
build:
	@tools/bootstrap build
	@tools/bootstrap viewer || echo "make: going on without the page of weft view"
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target product

demo:
	@tools/bootstrap demo
	@$(MAKE) --no-print-directory build
	@tools/demo

check:
	@tools/bootstrap check
	@tools/check

fuzz:
	@tools/bootstrap check
	@FUZZ_SEED=0 FUZZ_S=$(or $(FUZZ_S),60) tools/check fuzz

check-all:
	@tools/bootstrap suites
	@$(MAKE) --no-print-directory build
	@test/suites/run.py
	@test/servers/run.py build/release || [ $$? = 77 ]
	@test/ruby/run.py build/release || [ $$? = 77 ]

bench:
	@tools/bootstrap bench
	@$(MAKE) --no-print-directory build
	@cmake --build --preset release --target bench/all truth_programs e2e_ship_program
	@tools/bench

lint:
	@tools/bootstrap check
	@tools/lint

format:
	@tools/bootstrap check
	@tools/lint --fix

install: build
	DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)"

clean:
	rm -rf build
