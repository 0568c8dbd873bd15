# The NVTX door alone, under a real client of NVTX's headers; the test stands in for the rest of
# the injection.
$(O)/tests/test_inj_nvtx: tests/unit/test_inj_nvtx.c \
		$(addprefix $(O)/pic/injection/,nvtx.o nvtx_names.o)
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(ALL_CFLAGS) $(INJ_CFLAGS) $(LINK) -o $@ $(filter %.c %.o,$^) -lcmocka \
		-lpthread -ldl
