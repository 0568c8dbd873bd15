# The NVTX door alone, under a real client of NVTX's headers, on a stand-in for the core.
$(O)/tests/test_inj_nvtx: tests/unit/test_inj_nvtx.c tests/unit/inj_standin.c \
		$(addprefix $(O)/pic/injection/,nvtx.o nvtx_names.o)
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(INJ_CFLAGS) $(LINK) -o $@ \
		$(filter %.c %.o,$^) -lcmocka -lpthread -ldl
