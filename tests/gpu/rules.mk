# What the bench on a real GPU compares gtrace with; 'make bench' needs a GPU and PyTorch.

GPU_BIN = $(O)/floor.so $(O)/launches $(O)/instructions
TEST_PROGRAMS += $(GPU_BIN)

$(O)/floor.so: tests/gpu/floor.c $(O)/flags
	$(call say,LD) $(CC) $(ALL_CFLAGS) $(CUDA_CPPFLAGS) -fvisibility=default -fPIC -shared $(LINK) \
		-o $@ $< -ldl

# Linked with the simulated libcuda, whose name and symbols are the real one's.
$(O)/launches $(O)/instructions: $(O)/%: tests/gpu/%.c tests/gpu/empty_kernel.h $(O)/simgpu/libcuda.so.1 $(O)/flags
	$(call say,LD) $(CC) $(ALL_CFLAGS) $(CUDA_CPPFLAGS) $(LINK) -o $@ $< -L$(O)/simgpu -l:libcuda.so.1

bench: all $(GPU_BIN) ## measure what tracing costs (needs a GPU and PyTorch), into build/bench
	$(Q)$(PYTHON3) tests/gpu/bench.py $(O)/gtrace $(O)/floor.so $(O)/launches \
		$(O)/instructions $(O)/bench

check-gpu: all test-programs ## check gtrace on a real GPU with PyTorch, into build/check-gpu
	$(Q)$(PYTHON3) tests/gpu/check.py $(O) $(O)/check-gpu

.PHONY: bench check-gpu
