# gtrace - see README.md; 'make help' lists the targets.
#
# V=1 shows commands, O=DIR builds elsewhere, SAN=address,undefined or SAN=thread adds a sanitizer.

O       ?= build
PREFIX  ?= /usr/local
CC      ?= gcc
PYTHON3 ?= python3

# ---- toolchain ------------------------------------------------------------------------------

CUDA_INCLUDE ?= $(firstword $(wildcard $(foreach d,$(CUDA_HOME) $(CUDA_PATH) /usr/local/cuda build/deps/cuda,\
                $(if $(wildcard $(d)/include/cupti.h),$(d)/include)) \
                $(patsubst %/cupti.h,%,$(wildcard /usr/local/cuda/extras/CUPTI/include/cupti.h))))

WARN    = -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wwrite-strings \
          -Wformat-security -Wpointer-arith -Wundef -Wshadow
OPT    ?= -O2 -g
CPPF    = -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Ilib
CFLAGS ?=
ALL_CFLAGS = -std=gnu11 $(OPT) $(WARN) -fvisibility=hidden -fno-strict-aliasing -MMD -MP $(CPPF) $(CFLAGS)
ifneq ($(SAN),)
ALL_CFLAGS += -fsanitize=$(SAN) -fno-omit-frame-pointer
SANLD   = -fsanitize=$(SAN)
else
ALL_CFLAGS += $(if $(findstring -O0,$(OPT)),,-D_FORTIFY_SOURCE=2) -fstack-protector-strong
endif
ifeq ($(WERROR),1)
ALL_CFLAGS += -Werror
endif

# Linked statically, so that build/gtrace runs on a machine that has none of them.
STATIC_LIBS = -l:libuv_a.a -l:libisal.a -l:libz.a -l:libiberty.a
LIBS        = $(STATIC_LIBS) -lpthread -ldl -lm

Q = $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' '$(1)' '$(2)';)

# ---- sources --------------------------------------------------------------------------------

# What the injection shares with the library: no allocation, no I/O, no libuv.
SHARED_SRC = lib/schedule.c
LIB_SRC    = $(sort $(wildcard lib/*.c))
CMD_SRC    = $(sort $(wildcard cmd/*.c))
INJ_SRC    = $(sort $(wildcard injection/*.c)) $(SHARED_SRC)
UNIT_SRC   = $(sort $(wildcard tests/unit/test_*.c))

LIB_OBJ = $(LIB_SRC:%.c=$(O)/obj/%.o)
CMD_OBJ = $(CMD_SRC:%.c=$(O)/obj/%.o)
INJ_OBJ = $(INJ_SRC:%.c=$(O)/pic/%.o)
UNIT_BIN = $(UNIT_SRC:tests/unit/%.c=$(O)/tests/%)

all: $(O)/gtrace $(O)/libgtrace-inject.so $(O)/python/sitecustomize.py ## build gtrace and its injection library

$(O)/libgtrace.a: $(LIB_OBJ)
	$(call say,AR,$@) rm -f $@ && $(AR) rcs $@ $^

$(O)/gtrace: $(CMD_OBJ) $(O)/libgtrace.a
	$(call say,LD,$@) $(CC) $(SANLD) $(LDFLAGS) -o $@ $^ $(LIBS)

$(O)/libgtrace-inject.so: $(INJ_OBJ) injection/inject.map
	$(call say,LD,$@) $(CC) -shared $(SANLD) $(LDFLAGS) -Wl,-soname,libgtrace-inject.so \
		-Wl,-z,nodelete -Wl,-z,now $(if $(SAN),,-Wl,-z,defs) -Wl,--version-script=injection/inject.map \
		-o $@ $(INJ_OBJ) -lpthread -ldl

$(O)/python/%.py: injection/python/%.py
	@mkdir -p $(@D)
	$(call say,COPY,$@) cp $< $@

$(O)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(ALL_CFLAGS) -c -o $@ $<

$(O)/pic/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(ALL_CFLAGS) -fPIC -ftls-model=initial-exec $(if $(CUDA_INCLUDE),-isystem $(CUDA_INCLUDE)) -c -o $@ $<

$(O)/tests/%: tests/unit/%.c $(O)/libgtrace.a
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(ALL_CFLAGS) $(SANLD) -o $@ $< $(O)/libgtrace.a -lcmocka $(LIBS)

unit: $(UNIT_BIN) ## run the unit tests
	$(Q)set -e; for t in $(UNIT_BIN); do $$t; done

clean: ## remove what was built
	rm -rf $(O)

help: ## this list
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

.PHONY: all unit clean help
.DELETE_ON_ERROR:
-include $(shell find $(O) -name '*.d' 2>/dev/null)
