# gtrace - see README.md; 'make help' lists the targets.

# ---- options ----------------------------------------------------------------------------------

O       ?= build
PREFIX  ?= /usr/local
PYTHON3 ?= python3
OPT     ?= -O2 -g
ifeq ($(origin CC),default)
CC      := gcc
endif

# ---- toolchain --------------------------------------------------------------------------------

DEPS := build/deps

# 'make deps' fetches headers only where the toolkit's are missing or too old, so they go first.
# CUDA_INCLUDE is the folder of cupti.h; cuda.h may be in another.
CUDA_DIRS    := $(DEPS)/cuda $(CUDA_HOME) $(CUDA_PATH) /usr/local/cuda /usr/local/cuda/extras/CUPTI
find_header   = $(firstword $(foreach d,$(CUDA_DIRS),$(if $(wildcard $(d)/include/$(1)),$(d)/include)))
CUDA_INCLUDE ?= $(call find_header,cupti.h)
CUDA_CPPFLAGS = $(addprefix -isystem ,$(sort $(CUDA_INCLUDE) $(call find_header,cuda.h))) \
                $(if $(CUDA_INCLUDE),,$(error no CUPTI headers here: run 'make deps'))

WARN := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wwrite-strings \
        -Wformat-security -Wpointer-arith -Wundef -Wshadow $(if $(WERROR),-Werror)
# A sanitizer's interceptors and the fortified functions exclude each other.
HARD := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer,-fstack-protector-strong \
        $(if $(findstring -O0,$(OPT)),,-D_FORTIFY_SOURCE=2))
LINK := $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)

ALL_CFLAGS = -std=gnu11 $(OPT) $(WARN) $(HARD) -fvisibility=hidden -fno-strict-aliasing \
             -MMD -MP -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Ilib $(CFLAGS)
INJ_CFLAGS = -fPIC -ftls-model=initial-exec -Iinjection $(CUDA_CPPFLAGS)

# Linked statically: build/gtrace also runs on a machine that has none of them.
ISAL := $(or $(wildcard $(DEPS)/lib/libisal.a),$(filter /%,$(shell $(CC) -print-file-name=libisal.a)))
LIBS  = -l:libuv_a.a $(or $(ISAL),$(error no static libisal.a here: run 'make deps')) \
        -l:libiberty.a -lpthread -ldl -lm
TEST_LIBS = -l:libz.a $(LIBS)

Q   = $(if $(V),,@)
silent := $(findstring s,$(firstword -$(MAKEFLAGS)))
say = $(if $(V)$(silent),,@printf '  %-7s %s\n' '$(1)' '$@';)

# ---- what is built ----------------------------------------------------------------------------

# What the injection shares with the library: no allocation, no I/O, no libuv.
SHARED_SRC := lib/cupti_search.c lib/rank.c lib/schedule.c
LIB_SRC    := $(sort $(wildcard lib/*.c))
CMD_SRC    := $(sort $(wildcard cmd/*.c))
INJ_SRC    := $(sort $(wildcard injection/*.c)) $(SHARED_SRC)
PY_SRC     := $(sort $(wildcard injection/python/*.py))
UNIT_SRC   := $(sort $(wildcard tests/unit/test_*.c))
FUZZ_SRC   := $(sort $(wildcard tests/fuzz/fuzz_*.c))

LIB_OBJ    := $(LIB_SRC:%.c=$(O)/obj/%.o)
CMD_OBJ    := $(CMD_SRC:%.c=$(O)/obj/%.o)
INJ_OBJ    := $(INJ_SRC:%.c=$(O)/pic/%.o)
PY_OUT     := $(PY_SRC:injection/%=$(O)/%)
UNIT_BIN   := $(UNIT_SRC:tests/unit/%.c=$(O)/tests/%)
REPLAY_BIN := $(FUZZ_SRC:tests/fuzz/fuzz_%.c=$(O)/replay/%)
FUZZ_BIN   := $(FUZZ_SRC:tests/fuzz/fuzz_%.c=$(O)/fuzz/%)

all: $(O)/gtrace $(O)/libgtrace-inject.so $(PY_OUT) ## build gtrace and its injection library

$(O)/libgtrace.a: $(LIB_OBJ)
	$(call say,AR) rm -f $@ && $(AR) rcs $@ $^

$(O)/gtrace: $(CMD_OBJ) $(O)/libgtrace.a
	$(call say,LD) $(CC) $(LINK) -o $@ $^ $(LIBS)

$(O)/libgtrace-inject.so: $(INJ_OBJ) injection/inject.map
	$(call say,LD) $(CC) -shared $(LINK) -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-z,now \
		$(if $(SAN),,-Wl,-z,defs) -Wl,--version-script=injection/inject.map \
		-o $@ $(INJ_OBJ) -lpthread -ldl

$(O)/python/%.py: injection/python/%.py
	@mkdir -p $(@D)
	$(call say,COPY) cp $< $@

$(O)/obj/%.o: %.c $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC) $(CC) $(ALL_CFLAGS) -c -o $@ $<

$(O)/pic/%.o: %.c $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC) $(CC) $(ALL_CFLAGS) $(INJ_CFLAGS) -c -o $@ $<

# Rewritten only when the flags change, which rebuilds everything.
$(O)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CFLAGS) $(INJ_CFLAGS) $(LINK) $(TEST_LIBS)' | cmp -s - $@ || \
		echo '$(CC) $(ALL_CFLAGS) $(INJ_CFLAGS) $(LINK) $(TEST_LIBS)' >$@

deps: ## install what is missing to build, test and run the demo
	$(Q).ci/deps

# ---- tests ------------------------------------------------------------------------------------

# Parts of the injection are tested as tests/unit/test_inj_NAME.c, linked with its objects.
$(O)/tests/test_inj_%: tests/unit/test_inj_%.c $(INJ_OBJ) $(O)/libgtrace.a
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(ALL_CFLAGS) $(INJ_CFLAGS) $(LINK) -o $@ $< $(filter %.o %.a,$^) \
		-lcmocka $(TEST_LIBS)

$(O)/tests/%: tests/unit/%.c $(O)/libgtrace.a
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(ALL_CFLAGS) $(LINK) -o $@ $< $(filter %.a,$^) -lcmocka $(TEST_LIBS)

unit: $(UNIT_BIN) ## run the unit tests
	$(Q)failed=; for t in $(UNIT_BIN); do $$t || failed="$$failed $$t"; done; \
		[ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# A fuzz target is tests/fuzz/fuzz_NAME.c with LLVMFuzzerTestOneInput(); its corpus is
# tests/fuzz/corpus/NAME/. The replay program runs it over files, without a fuzzer.
$(O)/replay/%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(O)/libgtrace.a
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(ALL_CFLAGS) $(LINK) -o $@ $< tests/fuzz/replay.c $(filter %.a,$^) $(TEST_LIBS)

replay: $(REPLAY_BIN) ## run every fuzz target over its corpus
	$(Q)set -e; for t in $(REPLAY_BIN); do $$t tests/fuzz/corpus/$${t##*/}; done

FUZZ_SECONDS ?= 600
$(O)/fuzz/%: tests/fuzz/fuzz_%.c $(LIB_SRC) FORCE
	@mkdir -p $(@D)
	$(call say,FUZZ) clang $(filter-out -MMD -MP,$(ALL_CFLAGS)) -fsanitize=fuzzer,address,undefined \
		-o $@ $< $(LIB_SRC) $(TEST_LIBS)

# Where there are real traces ($$GTRACE_CORPUS), what reads traces begins with parts of them, too.
fuzz: $(FUZZ_BIN) ## fuzz each target for FUZZ_SECONDS (600), new inputs in build/fuzz/corpus
	$(Q)mkdir -p $(O)/fuzz/seeds && $(PYTHON3) tests/fuzz/seeds.py $(O)/fuzz/seeds
	$(Q)set -e; for t in $(FUZZ_BIN); do n=$${t##*/}; mkdir -p $(O)/fuzz/corpus/$$n; \
		case $$n in summary|check|json) kind=text;; gz) kind=gz;; *) kind=none;; esac; \
		$$t -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 \
			-artifact_prefix=$(O)/fuzz/$$n- $(O)/fuzz/corpus/$$n tests/fuzz/corpus/$$n \
			$$(find $(O)/fuzz/seeds -name $$kind); done

# Parts of the tests that are built (the simulated GPU, its sample programs) bring their own rules
# and add to TEST_PROGRAMS.
TEST_PROGRAMS := $(UNIT_BIN) $(REPLAY_BIN)
include $(wildcard tests/*/rules.mk)

test-programs: $(TEST_PROGRAMS)

CHECK = $(Q)+$(MAKE) --no-print-directory all test-programs && tests/check -O $(O)

# Where PyTorch cannot be had the tests that need it are skipped. NO_TORCH=1 does not ask for it.
check: deps ## run all tests; the last line is their sum
	$(Q)tests/python/install-torch $(TORCH_VERSION) || true
	$(CHECK)

cli e2e corpus hta asan tsan: ## one layer of the tests (see tests/check)
	$(CHECK) $@

lint: ## hold the tree's rules: layers, symbols, warnings, format, spelling, manual
	$(Q)tests/lint

demo: deps ## trace a training program on the GPU, or the simulated one, into build/demo
	$(Q)+$(MAKE) --no-print-directory all test-programs && tests/demo $(O)

# ---- the rest ---------------------------------------------------------------------------------

DEST    = $(DESTDIR)$(PREFIX)
C_FILES = $(wildcard lib/*.[ch] cmd/*.[ch] injection/*.[ch] tests/*/*.[ch])

format: ## format the C sources
	$(Q)clang-format -i $(C_FILES)

format-check: ## fail when 'make format' would change something
	$(Q)clang-format --dry-run -Werror $(C_FILES)

coverage: ## lines that the unit, replay and end-to-end tests reach, by file (gcov)
	$(Q)+$(MAKE) --no-print-directory O=$(O)/coverage OPT='-O0 -g' CFLAGS=--coverage LDFLAGS=--coverage \
		all test-programs
	$(Q)find $(O)/coverage -name '*.gcda' -delete
	$(Q)tests/check -O $(O)/coverage unit replay e2e
	$(Q)cd $(O)/coverage && gcov -n $$(find obj pic -name '*.gcda') 2>/dev/null | awk -F"[':% ]" \
		'/^File/ { file = $$3 } \
		/^Lines/ && file ~ /^(lib|cmd|injection)\/.*\.c$$/ { \
			if ($$3 >= best[file]) { best[file] = $$3; lines[file] = $$6 } \
			file = "" } \
		END { for (f in best) { printf "%6.2f %% of %5d  %s\n", best[f], lines[f], f | "sort -n"; \
				reached += best[f] * lines[f]; total += lines[f] } \
			close("sort -n"); printf "%6.2f %% of %5d  in all\n", reached / total, total }'

install: all ## install below $(DESTDIR)$(PREFIX)
	install -d $(DEST)/bin $(DEST)/lib/gtrace/python $(DEST)/include
	install -m 755 $(O)/gtrace $(DEST)/bin
	install -m 755 $(O)/libgtrace-inject.so $(DEST)/lib/gtrace
	install -m 644 $(PY_OUT) $(DEST)/lib/gtrace/python
	install -m 644 lib/gtrace.h $(DEST)/include
	install -D -m 644 cmd/completion/gtrace.bash $(DEST)/share/bash-completion/completions/gtrace
	install -D -m 644 cmd/completion/_gtrace $(DEST)/share/zsh/site-functions/_gtrace
	set -e; for page in man/*.[1-8]; do s=$${page##*.}; \
		install -D -m 644 $$page $(DEST)/share/man/man$$s/$${page##*/}; done

dist: ## tarballs for Linux with glibc 2.28 or later, x86-64 and aarch64, into build/dist
	$(Q)+.ci/dist $(O)/dist

uninstall: ## remove what 'make install' installed
	rm -f $(DEST)/bin/gtrace $(DEST)/include/gtrace.h
	rm -f $(DEST)/share/bash-completion/completions/gtrace $(DEST)/share/zsh/site-functions/_gtrace
	rm -rf $(DEST)/lib/gtrace
	for page in man/*.[1-8]; do rm -f $(DEST)/share/man/man$${page##*.}/$${page##*/}; done

clean: ## remove what was built, but not what 'make deps' fetched
	$(Q)[ ! -d $(O) ] || find $(O) -mindepth 1 -maxdepth 1 ! -name deps -exec rm -rf {} +

help: ## this list
	@sed -n 's/^\([a-z][a-z0-9 -]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 36
	@echo '  V=1 shows commands; O=DIR builds there; WERROR=1; CC=clang; OPT=-O0; CFLAGS=, LDFLAGS=;'
	@echo '  SAN=address,undefined or SAN=thread; PREFIX=, DESTDIR= for install'

.PHONY: FORCE all deps unit replay fuzz test-programs check cli e2e corpus hta asan tsan lint demo \
        format format-check coverage install dist uninstall clean help
.DELETE_ON_ERROR:
-include $(LIB_OBJ:.o=.d) $(CMD_OBJ:.o=.d) $(INJ_OBJ:.o=.d) $(UNIT_BIN:=.d) $(REPLAY_BIN:=.d)
