# The speed of the summary's reading, beside Python's json and HTA in the same run, and of the writing.

BENCH_READER := $(O)/bench/bench_reader
BENCH_WRITER := $(O)/bench/bench_writer
BENCH_TRACE  ?= $(or $(GTRACE_CORPUS),../shared)/data/bench/gpt_50steps.pt.trace.json.gz

$(O)/bench/%: tests/bench/%.c $(O)/libgtrace.a
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(ALL_CFLAGS) $(LINK) -o $@ $(filter %.c %.a,$^) $(LIBS)

bench-reader: $(BENCH_READER) $(O)/gtrace ## how fast a trace is read (BENCH_TRACE), beside Python's json and HTA
	$(Q)[ -e $(BENCH_TRACE) ] || { echo 'no $(BENCH_TRACE): set BENCH_TRACE'; exit 1; }
	$(Q)$(BENCH_READER) $(BENCH_TRACE)
	$(Q)$(PYTHON3) tests/bench/reader.py $(O) $(BENCH_TRACE)

bench-writer: $(BENCH_WRITER) ## how fast a million events become a file, and how large it is
	$(Q)$(BENCH_WRITER) $(O)/bench

bench-ranks: $(O)/gtrace ## how long the traces of 1,024 ranks take, and in how much memory
	$(Q)$(PYTHON3) tests/bench/ranks.py $(O)

TORCH_PYTHON ?= $(DEPS)/torch/bin/python
bench-ops: all ## what an operator of torch costs, traced and not (TORCH_PYTHON; 'make torch')
	$(Q)$(PYTHON3) tests/bench/ops.py $(O) $(TORCH_PYTHON)

BENCH_STEP := $(O)/bench/bench_step
bench-step: all $(BENCH_STEP) ## what a step costs that nobody traces: without gtrace, by a schedule, on demand
	$(Q)$(BENCH_STEP)
	$(Q)$(O)/gtrace run -q -n never -o $(O)/bench --wait 999999999 -- $(BENCH_STEP)
	$(Q)$(O)/gtrace run -q -n never -o $(O)/bench --on-demand -- $(BENCH_STEP)

TEST_PROGRAMS += $(BENCH_READER) $(BENCH_WRITER) $(BENCH_STEP)
.PHONY: bench-reader bench-writer bench-ranks bench-ops bench-step
