# A stand-in for the injection library, with the real fall-back into Python, for the tests of the
# Python hook and of gtrace.h. A sanitizer would have to be loaded by Python first, so it has none.
FAKE_INJECTION = $(O)/tests/libfake-inject.so
TEST_PROGRAMS += $(FAKE_INJECTION)

$(FAKE_INJECTION): tests/python/fake_injection.c injection/python.c injection/inject.h lib/env.h
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(filter-out -MMD -MP $(HARD),$(ALL_CFLAGS)) $(INJ_CFLAGS) -shared -o $@ \
		$(filter %.c,$^) -lpthread -ldl

# Real torch for tests/python/test_torch_ops.py: 5 GB with CUDA's libraries, which it needs even on
# the CPU; so it is not a part of 'make deps'.
TORCH_VERSION ?= 2.11.0
torch: $(DEPS)/torch/$(TORCH_VERSION) ## install PyTorch (TORCH_VERSION) for the tests of its operators

$(DEPS)/torch/%:
	$(Q)$(PYTHON3) -m venv $(DEPS)/torch && $(DEPS)/torch/bin/pip install -q torch==$* numpy && touch $@

.PHONY: torch
