# The simulated GPU: stand-ins for libcuda, libcudart and libcupti, and programs that use them.
# 'make simgpu' builds them into $(O)/simgpu; run anything with LD_LIBRARY_PATH=$(O)/simgpu.

SIMGPU   = $(O)/simgpu
SIM_LIBS = $(SIMGPU)/libcuda.so.1 $(SIMGPU)/libcudart.so.13 $(SIMGPU)/libcupti.so.13
# A stand-in for Nsight Systems: its command, and the library that it injects.
SIM_NSYS = $(addprefix $(SIMGPU)/nsys/,nsys libToolsInjection64.so libToolsInjectionProxy64.so)
SIM_BIN  = $(SIMGPU)/train $(SIMGPU)/train-ptds $(SIMGPU)/conform
SIM_NAMES = $(SIMGPU)/include/cupti_driver_names.h $(SIMGPU)/include/cupti_runtime_names.h

SIM_TRAIN_OBJ  = $(addprefix $(SIMGPU)/obj/,train_nccl.o train_options.o train_profiler.o train_ranges.o truth.o)
SIM_CUDA_OBJ   = $(addprefix $(SIMGPU)/obj/,device.o faults.o graph.o launch.o memory.o stream.o submit.o)
SIM_CUDART_OBJ = $(SIMGPU)/obj/cudart.o
SIM_CUPTI_OBJ  = $(addprefix $(SIMGPU)/obj/,cupti_activity.o cupti_buffer.o cupti_callback.o cupti_record.o)

# The headers declare the entry points without a visibility; the version scripts choose them.
SIM_CFLAGS = $(filter-out -fvisibility=hidden,$(ALL_CFLAGS)) -Itests/simgpu -I$(SIMGPU)/include \
             $(CUDA_CPPFLAGS)
# -Bsymbolic: a test may hide an entry point that the library itself uses.
SIM_LD     = $(CC) -shared $(LINK) -Wl,-Bsymbolic -Wl,-rpath,'$$ORIGIN'

ifneq ($(CUDA_INCLUDE),)
TEST_PROGRAMS += $(SIM_LIBS) $(SIM_BIN) $(SIM_NSYS)
simgpu: $(SIM_LIBS) $(SIM_BIN) $(SIM_NSYS) ## build the simulated GPU and its sample programs
else
simgpu:
	@echo 'simgpu: no CUDA headers, not built'
endif

# Dynamic thread-local storage looks like a race to the thread sanitizer when a thread ends.
$(SIMGPU)/obj/%.o: tests/simgpu/%.c $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC) $(CC) $(SIM_CFLAGS) -fPIC -ftls-model=initial-exec -c -o $@ $<

# The real names of the callback ids, from the real headers.
$(SIMGPU)/include/cupti_%_names.h: $(CUDA_INCLUDE)/cupti_%_cbid.h
	@mkdir -p $(@D)
	$(call say,GEN) sed -n \
		's/^ *CUPTI_[A-Z]*_TRACE_CBID_\([A-Za-z_0-9]*\) *= *\([0-9][0-9]*\),*.*/[\2] = "\1",/p' \
		$< | grep -v 'INVALID\|SIZE\|FORCE_INT' > $@

$(SIMGPU)/obj/cupti_callback.o: $(SIM_NAMES)

$(SIMGPU)/libcuda.so.1: $(SIM_CUDA_OBJ) tests/simgpu/libcuda.map tests/simgpu/rules.mk
	$(call say,LD) $(SIM_LD) -Wl,-soname,libcuda.so.1 -Wl,--version-script=tests/simgpu/libcuda.map \
		-o $@ $(SIM_CUDA_OBJ) -lpthread -ldl && ln -sf libcuda.so.1 $(SIMGPU)/libcuda.so

$(SIMGPU)/libcudart.so.13: $(SIM_CUDART_OBJ) $(SIMGPU)/libcuda.so.1 tests/simgpu/libcudart.map \
                          tests/simgpu/rules.mk
	$(call say,LD) $(SIM_LD) -Wl,-soname,libcudart.so.13 \
		-Wl,--version-script=tests/simgpu/libcudart.map -o $@ $(SIM_CUDART_OBJ) \
		$(SIMGPU)/libcuda.so.1 && ln -sf libcudart.so.13 $(SIMGPU)/libcudart.so

$(SIMGPU)/libcupti.so.13: $(SIM_CUPTI_OBJ) $(SIMGPU)/libcuda.so.1 tests/simgpu/libcupti.map \
                         tests/simgpu/rules.mk
	$(call say,LD) $(SIM_LD) -Wl,-soname,libcupti.so.13 \
		-Wl,--version-script=tests/simgpu/libcupti.map -o $@ $(SIM_CUPTI_OBJ) \
		$(SIMGPU)/libcuda.so.1 -lpthread && ln -sf libcupti.so.13 $(SIMGPU)/libcupti.so

$(SIMGPU)/nsys/libToolsInjection64.so: $(SIMGPU)/obj/nsys_injection.o
	@mkdir -p $(@D)
	$(call say,LD) $(CC) -shared $(LINK) -o $@ $< -lpthread -ldl

$(SIMGPU)/nsys/libToolsInjectionProxy64.so: $(SIMGPU)/obj/nsys_proxy.o
	@mkdir -p $(@D)
	$(call say,LD) $(CC) -shared $(LINK) -o $@ $<

$(SIMGPU)/nsys/nsys: tests/simgpu/nsys
	@mkdir -p $(@D)
	$(call say,COPY) cp $< $@

# Linked by soname only, so that they run on the real libraries as well. The second one calls the
# entry points of the per-thread default stream (_ptsz, _ptds).
$(SIMGPU)/obj/train-ptds.o: tests/simgpu/train.c $(O)/flags
	$(call say,CC) $(CC) $(SIM_CFLAGS) -DCUDA_API_PER_THREAD_DEFAULT_STREAM -c -o $@ $<

$(SIMGPU)/train $(SIMGPU)/train-ptds: $(SIM_TRAIN_OBJ)
$(SIM_BIN): $(SIMGPU)/%: $(SIMGPU)/obj/%.o $(SIM_LIBS)
	$(call say,LD) $(CC) $(LINK) -o $@ $(filter %.o,$^) $(SIMGPU)/libcudart.so.13 \
		$(SIMGPU)/libcuda.so.1 $(if $(findstring conform,$@),$(SIMGPU)/libcupti.so.13) \
		-lpthread -ldl

-include $(wildcard $(SIMGPU)/obj/*.d)
.PHONY: simgpu
