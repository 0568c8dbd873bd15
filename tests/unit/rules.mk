# The NVTX doors alone, under a real client of NVTX's headers, on a stand-in for the core.
NVTX_TESTS = $(addprefix $(O)/tests/,test_inj_nvtx test_inj_nvtx_marks test_inj_nccl)
$(NVTX_TESTS): $(O)/tests/%: tests/unit/%.c tests/unit/inj_standin.c tests/unit/nvtx_rig.h \
		$(addprefix $(O)/pic/injection/,nvtx.o nvtx_functions.o nvtx_names.o nvtx_payload.o nccl.o)
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(INJ_CFLAGS) $(LINK) -o $@ \
		$(filter %.c %.o,$^) -lcmocka -lpthread -ldl

# When CUPTI is on, with a clock of the test's own.
$(O)/tests/test_inj_window: tests/unit/test_inj_window.c tests/unit/in_child.h \
		$(O)/pic/injection/window.o $(O)/libgtrace.a
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(INJ_CFLAGS) $(LINK) -o $@ \
		$(filter %.c %.o %.a,$^) -lcmocka $(TEST_LIBS)

# Clients and the collector, between scripted peers and a recorder that does as it is told.
CLIENT_TESTS = $(addprefix $(O)/tests/,test_client test_client_bad test_client_order \
	test_client_plans test_trigger test_collector)
$(CLIENT_TESTS): $(O)/tests/%: tests/unit/%.c $(addprefix tests/unit/,fake_recorder.c peer.c \
		client_owner.c fake_recorder.h peer.h client_owner.h) $(O)/libgtrace.a
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(LINK) -o $@ $(filter %.c %.a,$^) \
		-lcmocka $(TEST_LIBS)

# Torch's observer, by a library that has torch's names.
FAKE_TORCH = $(O)/tests/fake-torch/libtorch_cpu.so
TEST_PROGRAMS += $(FAKE_TORCH)
$(O)/tests/test_inj_ops $(O)/tests/test_inj_ops_register: $(FAKE_TORCH)

$(O)/tests/test_inj_comms: tests/unit/test_inj_comms.c $(O)/pic/injection/torch_comms.o $(FAKE_TORCH)
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(INJ_CFLAGS) $(LINK) -o $@ \
		$(filter %.c %.o,$^) -lcmocka -ldl

$(FAKE_TORCH): tests/unit/fake_torch.c tests/unit/fake_torch_comms.c \
		$(addprefix tests/unit/,fake_torch.h fake_torch_comms.h)
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -fPIC -shared $(LINK) \
		-Wl,-soname,$(@F) -o $@ $(filter %.c,$^)

# It has the names of Python's functions, which are looked up among those of the process.
$(O)/tests/test_inj_stacks: LINK += -rdynamic

# Torch's allocators: libraries that have torch's names, and calls bound in each way there is.
FAKE_C10 = $(patsubst %,$(O)/tests/fake-c10/%/libc10.so,lazy now no-plt bound)
FAKE_C10_CUDA = $(O)/tests/fake-c10/libc10_cuda.so
TEST_PROGRAMS += $(FAKE_C10) $(FAKE_C10_CUDA)
$(O)/tests/test_inj_library: $(FAKE_C10)
$(O)/tests/test_inj_memory: $(FAKE_C10) $(FAKE_C10_CUDA) $(FAKE_TORCH)

$(O)/tests/fake-c10/lazy/%: BOUND = -Wl,-z,lazy
$(O)/tests/fake-c10/now/%: BOUND = -Wl,-z,relro,-z,now
$(O)/tests/fake-c10/no-plt/%: BOUND = -fno-plt -Wl,-z,relro,-z,now
$(O)/tests/fake-c10/bound/%: BOUND = -Wl,-Bsymbolic-functions
$(FAKE_C10): tests/unit/fake_c10.c tests/unit/fake_c10.h
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -fPIC -shared $(LINK) $(BOUND) \
		-Wl,-soname,$(@F) -o $@ $<

$(FAKE_C10_CUDA): tests/unit/fake_c10_cuda.c tests/unit/fake_c10.h $(O)/tests/fake-c10/lazy/libc10.so
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -fPIC -shared $(LINK) \
		-Wl,-soname,$(@F) -o $@ $(filter %.c %.so,$^)

# The program goes on while a look is not.
$(O)/tests/test_recorder_stall: LINK += -Wl,--wrap=gt_arena_list
