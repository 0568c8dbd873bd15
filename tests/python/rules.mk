# A stand-in for the injection library, with the real fall-back into Python, for the tests of the
# Python hook and of gtrace.h. A sanitizer would have to be loaded by Python first, so it has none.
FAKE_INJECTION = $(O)/tests/libfake-inject.so
TEST_PROGRAMS += $(FAKE_INJECTION)

$(FAKE_INJECTION): tests/python/fake_injection.c injection/python.c injection/inject.h lib/env.h
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(filter-out -MMD -MP $(HARD),$(ALL_CFLAGS)) $(INJ_CFLAGS) -shared -o $@ \
		$(filter %.c,$^) -lpthread -ldl

# Real torch for tests/python/test_torch*.py, of one pinned version. Others by hand:
# GTRACE_TEST_TORCH names their Pythons. Debian's python3-torch (1.13) is used where it is installed:
# with what it needs it takes 640 MB of the system, and has no Kineto to be compared with.
TORCH_VERSION ?= 2.11.0
torch: ## install PyTorch (TORCH_VERSION) and frameworks from PyPI for the tests: 4.4 GB
	$(Q)tests/python/install-torch $(TORCH_VERSION)

.PHONY: torch
