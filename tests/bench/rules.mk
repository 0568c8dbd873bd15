# The reading speed of the summary, beside Python's json in the same run.

BENCH_READER := $(O)/bench/bench_reader
BENCH_TRACE  ?= $(or $(GTRACE_CORPUS),../shared)/data/bench/gpt_50steps.pt.trace.json.gz

$(BENCH_READER): tests/bench/bench_reader.c $(O)/libgtrace.a
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(ALL_CFLAGS) $(LINK) -o $@ $(filter %.c %.a,$^) $(LIBS)

bench-reader: $(BENCH_READER) ## how fast a trace is read (BENCH_TRACE), beside Python's json
	$(Q)[ -e $(BENCH_TRACE) ] || { echo 'no $(BENCH_TRACE): set BENCH_TRACE'; exit 1; }
	$(Q)$(BENCH_READER) $(BENCH_TRACE)
	$(Q)$(PYTHON3) -c 'import gzip, json, resource, sys, time; \
		json.load(gzip.open(sys.argv[1])); \
		print("%-8s %7.1f ms  %29s %6d KiB peak" % ("json.load", time.process_time() * 1e3, "", \
		resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))' $(BENCH_TRACE)

TEST_PROGRAMS += $(BENCH_READER)
.PHONY: bench-reader
