# SPDX-License-Identifier: MIT
# trainyard: one Makefile, out of tree. `make help` lists the targets.
#
#   libtrainyard        sim + models + search: libc, libm, threads
#   libtrainyard-tools  models/spec + calibrate + reports: cJSON, SQLite, GSL
#   trainyard           cli

B ?= build
PREFIX ?= /usr/local
bindir = $(PREFIX)/bin
libdir = $(PREFIX)/lib
includedir = $(PREFIX)/include
datadir = $(PREFIX)/share/trainyard
mandir = $(PREFIX)/share/man

VERSION := $(shell cat VERSION)
SOVERSION := 0

CC = gcc
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
DATA := $(sort $(wildcard data/gpus/*.json data/clusters/*.json data/models/*.json \
                          data/profiles/*.json data/stacks/*.json))

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
CORE_OBJ = $(call obj,$(CORE_SRC))
TOOLS_OBJ = $(call obj,$(TOOLS_SRC)) $(B)/obj/builtin.o
CLI_OBJ = $(call obj,$(CLI_SRC))
TESTS = $(patsubst tests/%.c,$(B)/tests/%,$(TEST_SRC))
BENCHES = $(patsubst tests/bench/%.c,$(B)/bench/%,$(BENCH_SRC))

CORE_LIBS = -lm -lpthread
TOOLS_LIBS = -lcjson -lsqlite3 -lgsl -lgslcblas $(CORE_LIBS)

CORE_A = $(B)/libtrainyard.a
TOOLS_A = $(B)/libtrainyard-tools.a
CORE_SO = $(B)/libtrainyard.so.$(SOVERSION)
TOOLS_SO = $(B)/libtrainyard-tools.so.$(SOVERSION)

.PHONY: all help check test clean
all: $(B)/trainyard $(CORE_A) $(TOOLS_A) $(B)/libtrainyard.so $(B)/libtrainyard-tools.so

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

# The data files travel inside the tools library: no path to look up, nothing to lose.
$(B)/builtin.c: tools/embed.sh $(DATA)
	@mkdir -p $(@D)
	sh tools/embed.sh $(DATA) > $@
$(B)/obj/builtin.o: $(B)/builtin.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@

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
$(TOOLS_A): $(TOOLS_OBJ)
	ld -r -o $(B)/tools.o $^
	objcopy --localize-hidden $(B)/tools.o
	rm -f $@; ar rcs $@ $(B)/tools.o

$(CORE_SO): $(CORE_OBJ) trainyard.map
	$(LINK) -shared -Wl,-soname,$(@F),--version-script,trainyard.map$(if $(SANITIZE),,$(comma)--no-undefined) \
	    -o $@ $(CORE_OBJ) $(CORE_LIBS)
$(TOOLS_SO): $(TOOLS_OBJ) $(CORE_SO) trainyard.map
	$(LINK) -shared -Wl,-soname,$(@F),--version-script,trainyard.map$(if $(SANITIZE),,$(comma)--no-undefined) \
	    -o $@ $(TOOLS_OBJ) $(CORE_SO) $(TOOLS_LIBS)
comma := ,
$(B)/libtrainyard.so: $(CORE_SO)
	ln -sf $(<F) $@
$(B)/libtrainyard-tools.so: $(TOOLS_SO)
	ln -sf $(<F) $@

$(B)/trainyard: $(CLI_OBJ) $(TOOLS_A) $(CORE_A)
	$(LINK) -o $@ $^ $(TOOLS_LIBS)

# ---- tests -----------------------------------------------------------------------------------
$(B)/tests/%: $(B)/obj/tests/%.o $(B)/internal/tools.a $(B)/internal/core.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(TOOLS_LIBS)
$(B)/bench/%: $(B)/obj/tests/bench/%.o $(B)/internal/tools.a $(B)/internal/core.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(TOOLS_LIBS)

check test: all $(TESTS)
	B=$(B) CC="$(CC)" prove -j2 --exec '' $(TESTS) $(wildcard tests/*.t)

clean:
	rm -rf $(B)

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
