# SPDX-License-Identifier: MIT
# trainyard: one Makefile, out of tree. `make help` lists the targets.
#
#   libtrainyard        sim + models + search: libc, libm, threads
#   libtrainyard-tools  models/spec + calibrate + reports: cJSON, SQLite, expat
#   trainyard           cli

B ?= build
PREFIX ?= /usr/local
bindir = $(PREFIX)/bin
libdir = $(PREFIX)/lib
includedir = $(PREFIX)/include
datadir = $(PREFIX)/share/trainyard
mandir = $(PREFIX)/share/man
docdir = $(PREFIX)/share/doc/trainyard
pkgconfigdir = $(libdir)/pkgconfig

VERSION := $(shell cat VERSION)
# Bumped on any removal, change of signature or of struct layout; freely before 1.0.
SOVERSION := 0

ifeq ($(origin CC),default)
CC = gcc
endif
CFLAGS ?= -O2 -g
WARN = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
       -Wvla -Wdouble-promotion $(if $(CI),-Werror)
# No contraction and no fast-math: the same bits on every machine and at any thread count.
ALL_CFLAGS = -std=c11 -D_POSIX_C_SOURCE=200809L -ffp-contract=off -fPIC -fvisibility=hidden \
             $(WARN) -I. -Iinclude -DTY_VERSION='"$(VERSION)"' $(CFLAGS) $(SANITIZE)
LINK = $(CC) $(CFLAGS) $(SANITIZE) $(LDFLAGS)

CORE_SRC := $(wildcard sim/*.c models/*.c search/*.c)
TOOLS_SRC := $(wildcard models/spec/*.c calibrate/*.c reports/*.c)
CLI_SRC := $(wildcard cli/*.c)
TEST_SRC := $(wildcard tests/*.c)
BENCH_SRC := $(wildcard tests/bench/*.c)
ALONE = tests/closed_loop.t # measures the machine: nothing else may run beside it
FUZZ_SRC := $(wildcard tests/fuzz/*.c)
SCRIPTS := $(sort $(filter-out $(ALONE),$(wildcard tests/*.t)))
# Sorted by name without its end: "h100-sxm" comes before "h100-sxm-96gb".
DATA := $(addsuffix .json,$(sort $(basename $(wildcard data/gpus/*.json data/clusters/*.json \
          data/models/*.json data/profiles/*.json data/rules/*.json data/sites/*.json \
          data/stacks/*.json data/frameworks/*.json data/fabrics/*.json data/runs/fitted.json))))
FORMATTED := $(wildcard $(addsuffix /*.[ch],include sim models models/spec search calibrate \
                                            reports cli tests tests/bench tests/closed_loop tests/fuzz))

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
CORE_OBJ = $(call obj,$(CORE_SRC))
TOOLS_OBJ = $(call obj,$(TOOLS_SRC)) $(B)/obj/builtin.o
# Internal helpers of the core that the tools library needs too. Hidden symbols do not cross a
# library's border, so each library carries its copy; they hold no data.
COMMON_OBJ = $(call obj,sim/arena.c sim/error.c sim/random.c models/fields_use.c models/framework.c search/parallel.c models/pool_spread.c)
CLI_OBJ = $(call obj,$(CLI_SRC))
TESTS = $(patsubst tests/%.c,$(B)/tests/%,$(TEST_SRC))
BENCHES = $(patsubst tests/bench/%.c,$(B)/bench/%,$(BENCH_SRC))
FUZZERS = $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(FUZZ_SRC))

CORE_LIBS = -lm -lpthread
TOOLS_LIBS = -lcjson -lsqlite3 -lexpat -lgsl -lgslcblas -ldl $(CORE_LIBS)

CORE_A = $(B)/libtrainyard.a
TOOLS_A = $(B)/libtrainyard-tools.a
CORE_SO = $(B)/libtrainyard.so.$(SOVERSION)
TOOLS_SO = $(B)/libtrainyard-tools.so.$(SOVERSION)
LIBRARIES = $(CORE_A) $(TOOLS_A) $(B)/libtrainyard.so $(B)/libtrainyard-tools.so
MAN = $(patsubst %,$(B)/man/trainyard-%.1,$(COMMANDS)) $(B)/man/trainyard.1
COMMANDS = predict explain sweep whatif size split export db report show list validate calibrate comm pool monitor detect help version

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: FORCE all no-nvcc help check test test-long check-asan check-tsan check-valgrind fuzz bench golden fabrics profiles man \
        format lint coverage install uninstall dist clean

# CUDA=1: trainyard-measure too, where nvcc is. It takes minutes, so a build asks for it.
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
MEASURE = $(if $(filter 1,$(CUDA)),$(if $(NVCC),$(B)/trainyard-measure,no-nvcc))

all: $(B)/trainyard $(LIBRARIES) $(MEASURE)
no-nvcc:
	@echo 'no nvcc: trainyard-measure, which measures CUDA devices, is not built' >&2

help:
	@echo 'all             program and libraries, in $(B)/ (default)'
	@echo 'check, test     all tests; test-long: the slow ones too'
	@echo 'check-asan      tests under address and undefined-behaviour sanitizers'
	@echo 'check-tsan      tests under the thread sanitizer'
	@echo 'check-valgrind  test programs under valgrind'
	@echo 'coverage        lines the tests reach, by file'
	@echo 'fuzz            each fuzzer for FUZZ_S seconds (default 60); needs clang'
	@echo 'bench           benchmarks as TSV; BENCH=NAME runs one'
	@echo 'golden          rewrites tests/golden/*.out, data/runs/accuracy.json, the README example'
	@echo 'fabrics         rewrites data/fabrics from data/micro/nccl'
	@echo 'profiles        fits the constants of data/profiles, stacks, sites to data/runs'
	@echo 'man             manual pages; format, lint: source style'
	@echo 'install         to $$(DESTDIR)$$(PREFIX), PREFIX=$(PREFIX); uninstall removes all of it'
	@echo 'dist, clean     source archive of HEAD; removes $(B)/'
	@echo 'variables       B CC CFLAGS LDFLAGS PREFIX DESTDIR; CI=1 makes warnings errors,'
	@echo '                CUDA=1 builds trainyard-measure (NVCC, CUDA_ARCHS)'

# ---- objects ---------------------------------------------------------------------------------
# Says which Debian packages are missing, all at once, instead of a compiler error.
$(B)/needs.ok: tools/needs.sh
	@mkdir -p $(@D)
	@sh tools/needs.sh "$(CC)" && touch $@

$(B)/obj/%.o: %.c | $(B)/needs.ok
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

# Recompiled whenever the version or this file changes: it reports both.
$(B)/obj/cli/cmd_version.o: Makefile VERSION
$(B)/obj/cli/cmd_version.o: ALL_CFLAGS += -DTY_BUILD_FLAGS='"$(CFLAGS) $(SANITIZE)"' \
    -DTY_BUILD_LIBRARIES='"cJSON $(shell pkg-config --modversion libcjson), SQLite \
$(shell pkg-config --modversion sqlite3), expat $(shell pkg-config --modversion expat)"'

# Kernels that are measured, not predicted with: all that the compiler can do.
$(B)/obj/calibrate/cpu_kernels.o: ALL_CFLAGS += -O3 -ffast-math $(if $(SANITIZE),,-DCPU_KERNEL_CLONES)

# The data files travel inside the tools library: no path to look up, nothing to lose.
$(B)/builtin.c: tools/embed.sh $(DATA) $(B)/data.list
	@mkdir -p $(@D)
	sh tools/embed.sh $(DATA) > $@
# Changes when a file comes or goes.
$(B)/data.list: FORCE
	@mkdir -p $(@D)
	@echo '$(DATA)' | cmp -s - $@ || echo '$(DATA)' > $@
FORCE:
$(B)/obj/builtin.o: $(B)/builtin.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@

# ---- libraries and program -------------------------------------------------------------------
# Static archives: one relocatable object in which internal names are local, so that a planner's
# own arena_get cannot collide with ours. The tests link the plain archives in $(B)/internal.
$(B)/internal/core.a: $(CORE_OBJ)
	@mkdir -p $(@D); rm -f $@
	ar rcs $@ $^
$(B)/internal/tools.a: $(TOOLS_OBJ)
	@mkdir -p $(@D); rm -f $@
	ar rcs $@ $^
$(CORE_A): $(CORE_OBJ)
	ld -r -o $(B)/core.o $^
	objcopy --localize-hidden $(B)/core.o
	rm -f $@; ar rcs $@ $(B)/core.o
$(TOOLS_A): $(TOOLS_OBJ) $(COMMON_OBJ)
	ld -r -o $(B)/tools.o $^
	objcopy --localize-hidden $(B)/tools.o
	rm -f $@; ar rcs $@ $(B)/tools.o

# --no-undefined: the linker itself refuses a core that reaches beyond libc, libm and threads.
comma := ,
SO_FLAGS = -shared -Wl,-soname,$(@F),--version-script,trainyard.map$(if $(SANITIZE),,$(comma)--no-undefined)
$(CORE_SO): $(CORE_OBJ) trainyard.map
	$(LINK) $(SO_FLAGS) -o $@ $(CORE_OBJ) $(CORE_LIBS)
$(TOOLS_SO): $(TOOLS_OBJ) $(COMMON_OBJ) $(CORE_SO) trainyard.map
	$(LINK) $(SO_FLAGS) -o $@ $(TOOLS_OBJ) $(COMMON_OBJ) $(CORE_SO) $(TOOLS_LIBS)
$(B)/libtrainyard.so: $(CORE_SO)
	ln -sf $(<F) $@
$(B)/libtrainyard-tools.so: $(TOOLS_SO)
	ln -sf $(<F) $@

$(B)/trainyard: $(CLI_OBJ) $(TOOLS_A) $(CORE_A)
	$(LINK) -o $@ $^ $(TOOLS_LIBS)

# Of its own: CUDA, cuBLAS and NCCL, and nothing under the GPL. Runs on the architectures below and, by
# the last one's intermediate code, on later ones.
CUDA_ARCHS ?= 80 90 100
CUDA_LAST = $(lastword $(CUDA_ARCHS))
NVCC_FLAGS = -std=c++17 -O2 -I. -DTY_VERSION='"$(VERSION)"' -Xcompiler -Wall,-Wextra$(if $(CI),$(comma)-Werror) \
    $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a)$(comma)code=sm_$(a)) \
    -gencode arch=compute_$(CUDA_LAST),code=compute_$(CUDA_LAST)
CUDA_OBJ = $(patsubst calibrate/device/%.cu,$(B)/obj/device/%.o,$(wildcard calibrate/device/*.cu))
$(B)/obj/device/%.o: calibrate/device/%.cu calibrate/device/device.h
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) -c $< -o $@
$(B)/trainyard-measure: $(CUDA_OBJ)
	$(NVCC) -o $@ $^ -lcublas -lcublasLt -lnccl -ldl

# ---- tests -----------------------------------------------------------------------------------
$(B)/tests/%: $(B)/obj/tests/%.o $(B)/internal/tools.a $(B)/internal/core.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(TOOLS_LIBS)
$(B)/bench/%: $(B)/obj/tests/bench/%.o $(B)/internal/tools.a $(B)/internal/core.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(TOOLS_LIBS)

# Trained for real by tests/closed_loop.t, after its step time was predicted.
$(B)/closed_loop/gpt: $(B)/obj/tests/closed_loop/gpt.o $(B)/internal/tools.a $(B)/internal/core.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(TOOLS_LIBS)

PROVE = B=$(B) CC="$(CC)" SANITIZE="$(SANITIZE)" VERSION=$(VERSION) prove -j2
check test: all man $(TESTS) $(B)/closed_loop/gpt
	$(PROVE) --exec '' $(TESTS) $(SCRIPTS)
	$(PROVE) $(ALONE)
test-long: all man $(TESTS) $(B)/closed_loop/gpt $(B)/fit_profiles
	TRAINYARD_LONG=1 $(PROVE) --exec '' $(TESTS) $(SCRIPTS)
	TRAINYARD_LONG=1 $(PROVE) $(ALONE)
check-asan:
	$(MAKE) B=$(B)-asan CFLAGS='-O1 -g -fno-omit-frame-pointer' \
	    SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=all' check
check-tsan:
	$(MAKE) B=$(B)-tsan CFLAGS='-O1 -g' SANITIZE=-fsanitize=thread check
check-valgrind: all $(TESTS)
	$(PROVE) --exec 'valgrind -q --leak-check=full --error-exitcode=99' $(TESTS)
# data/fabrics out of data/micro/nccl.
fabrics: $(B)/trainyard
	$(B)/trainyard calibrate import --json data/micro/nccl/*.csv | perl tools/fabrics.pl data/fabrics
golden: all
	GOLDEN=1 B=$(B) sh tests/golden.t
	GOLDEN=1 B=$(B) perl tests/validate.t
	GOLDEN=1 B=$(B) sh tests/readme.t

# Everything with clang's coverage feedback; each fuzzer starts from data/ and the inputs kept in
# tests/fuzz/corpus/NAME, and leaves a crashing input in the folder it ran in.
FUZZ_S ?= 60
FUZZ_CC ?= clang
FUZZ_FLAGS = -fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZ_OBJ = $(patsubst %.c,$(B)/fuzz/obj/%.o,$(CORE_SRC) $(TOOLS_SRC)) $(B)/fuzz/obj/builtin.o
$(B)/fuzz/obj/%.o: %.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(ALL_CFLAGS) -O1 -w $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@
$(B)/fuzz/obj/builtin.o: $(B)/builtin.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(ALL_CFLAGS) -w $(FUZZ_FLAGS) -c $< -o $@
$(B)/fuzz/%: $(B)/fuzz/obj/tests/fuzz/%.o $(FUZZ_OBJ)
	$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $^ $(TOOLS_LIBS)
fuzz: $(FUZZERS)
	set -e; for f in $(FUZZERS); do \
	    mkdir -p $$f.corpus; \
	    ./$$f -max_total_time=$(FUZZ_S) -timeout=10 -rss_limit_mb=4096 -verbosity=0 \
	        -artifact_prefix=$$f- $$f.corpus \
	        $$(find tests/fuzz/corpus/$$(basename $$f) data -type d 2>/dev/null); \
	    echo "$$f: no crash in $(FUZZ_S) s"; done

bench: $(if $(BENCH),$(B)/bench/$(BENCH),$(BENCHES)) $(B)/trainyard
	@set -e; for b in $(filter $(B)/bench/%,$^); do ./$$b; done

coverage:
	$(MAKE) B=$(B)-coverage CFLAGS='-O0 -g' SANITIZE=--coverage check
	@cd $(B)-coverage && find obj -path obj/tests -prune -o -name '*.gcno' -print | \
	    while read -r f; do gcov -n "$${f%.gcno}.o" -o "$$(dirname "$$f")" 2>/dev/null; done | \
	    awk -F"'" '/^File/ {file = $$2} /^Lines executed/ && file ~ /\.c$$/ && !seen[file]++ \
	        {print $$0, file}' | sed 's/^Lines executed://; s/% of /% of\t/; s/ \//\t\//' | sort -n

# ---- fitted constants ------------------------------------------------------------------------
# From the published runs: two minutes of a processor. Build the program again after it.
$(B)/fit_profiles: $(B)/obj/tools/fit_profiles.o $(B)/internal/tools.a $(B)/internal/core.a
	$(LINK) -o $@ $^ $(TOOLS_LIBS)
profiles: $(B)/fit_profiles
	$(B)/fit_profiles data/runs/published.csv data

# ---- manual, style ---------------------------------------------------------------------------
man: $(MAN)
$(B)/man/trainyard.1: man/trainyard.1
	@mkdir -p $(@D)
	cp $< $@
$(B)/man/trainyard-%.1: $(B)/trainyard
	@mkdir -p $(@D)
	$(B)/trainyard help --man $* > $@

format:
	clang-format -i $(FORMATTED)
lint: man
	clang-format --dry-run -Werror $(FORMATTED)
	mandoc -T lint -W warning $(MAN)

# ---- install ---------------------------------------------------------------------------------
define CORE_PC
prefix=$(PREFIX)
libdir=$(libdir)
includedir=$(includedir)

Name: trainyard
Description: Predicts how fast large models train on a GPU cluster
Version: $(VERSION)
Libs: -L$${libdir} -ltrainyard
Libs.private: -lm -lpthread
Cflags: -I$${includedir}
endef
define TOOLS_PC
prefix=$(PREFIX)
libdir=$(libdir)
includedir=$(includedir)

Name: trainyard-tools
Description: Specification files, results database and reports of trainyard
Version: $(VERSION)
Requires: trainyard
Requires.private: sqlite3 libcjson expat gsl
Libs: -L$${libdir} -ltrainyard-tools
Cflags: -I$${includedir}
endef
export CORE_PC TOOLS_PC
$(B)/trainyard.pc: Makefile VERSION
	@echo "$$CORE_PC" > $@
$(B)/trainyard-tools.pc: Makefile VERSION
	@echo "$$TOOLS_PC" > $@

EXAMPLES := $(wildcard examples/*)
HEADERS := $(wildcard include/*.h)
D = $(DESTDIR)
# What make install writes, and all that make uninstall has to remove.
INSTALLED = $(bindir)/trainyard $(bindir)/trainyard-measure \
    $(addprefix $(libdir)/,$(notdir $(LIBRARIES) $(CORE_SO) $(TOOLS_SO))) \
    $(addprefix $(includedir)/,$(notdir $(HEADERS))) \
    $(pkgconfigdir)/trainyard.pc $(pkgconfigdir)/trainyard-tools.pc \
    $(addprefix $(mandir)/man1/,$(notdir $(MAN))) \
    $(patsubst data/%,$(datadir)/%,$(DATA)) \
    $(addprefix $(docdir)/,LICENSE CHANGELOG.md README.md $(EXAMPLES))

# The prefix goes into the .pc files, so they are made anew at every install.
install: all man
	@rm -f $(B)/trainyard.pc $(B)/trainyard-tools.pc
	@$(MAKE) -s $(B)/trainyard.pc $(B)/trainyard-tools.pc
	install -d $(sort $(addprefix $(D),$(dir $(INSTALLED))))
	install -m 755 $(B)/trainyard $(if $(filter-out no-nvcc,$(MEASURE)),$(MEASURE)) $(D)$(bindir)
	install -m 644 $(CORE_A) $(TOOLS_A) $(D)$(libdir)
	install -m 755 $(CORE_SO) $(TOOLS_SO) $(D)$(libdir)
	ln -sf $(notdir $(CORE_SO)) $(D)$(libdir)/libtrainyard.so
	ln -sf $(notdir $(TOOLS_SO)) $(D)$(libdir)/libtrainyard-tools.so
	install -m 644 $(HEADERS) $(D)$(includedir)
	install -m 644 $(B)/trainyard.pc $(B)/trainyard-tools.pc $(D)$(pkgconfigdir)
	install -m 644 $(MAN) $(D)$(mandir)/man1
	set -e; for f in $(patsubst data/%,%,$(DATA)); do \
	    install -m 644 data/$$f $(D)$(datadir)/$$f; done
	install -m 644 LICENSE CHANGELOG.md README.md $(D)$(docdir)
	install -m 644 $(EXAMPLES) $(D)$(docdir)/examples

# Folders go too, up to the first that still holds something.
uninstall:
	rm -f $(addprefix $(D),$(INSTALLED))
	-@rmdir -p --ignore-fail-on-non-empty $(sort $(addprefix $(D),$(dir $(INSTALLED)))) \
	    2>/dev/null || true

dist:
	@mkdir -p $(B)
	git archive --prefix=trainyard-$(VERSION)/ -o $(B)/trainyard-$(VERSION).tar.gz HEAD

clean:
	rm -rf $(B) $(B)-asan $(B)-tsan $(B)-coverage

-include $(shell find $(B)/obj $(B)/fuzz/obj -name '*.d' 2>/dev/null)
