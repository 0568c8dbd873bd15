/*
 * check.h - is a trace whole and sound? What is lost, damaged or contradictory in it, and what the
 * usual readers of traces stumble over.
 */
#ifndef GT_CHECK_H
#define GT_CHECK_H

#include "base.h"
#include "buf.h"
#include "err.h"
#include "gz_reader.h"
#include "summary.h"
#include "trace_copy.h"
#include "trace_reader.h"

/*
 * The rules: name, code, whether a breach is an error (something is lost or makes no sense, or
 * strict JSON readers refuse the file) or a warning, whether it is one only for traces of PyTorch's
 * profiler and those that look like them, text. HTA, TraceLens and TB (torch_tb_profiler) are
 * readers; what each of them wants was tried with each (gtrace-check.1).
 */
#define GT_CHECK_RULES(X)                                                                          \
	X(C_TRUNC, "C-TRUNC", true, false, "the file ends too early")                              \
	X(C_GZIP, "C-GZIP", true, false, "the compressed data is damaged")                         \
	X(C_CRC, "C-CRC", true, false, "the checksum or length of the compressed data is wrong")   \
	X(C_TAIL, "C-TAIL", true, false, "bytes follow the compressed data")                       \
	X(C_MEMBER, "C-MEMBER", false, false,                                                      \
	  "more than one gzip member: Chrome and speedscope read only the first")                  \
	X(C_NAME, "C-NAME", false, false,                                                          \
	  "readers that go by the name want .gz for gzip and .json for plain JSON")                \
	X(C_PTNAME, "C-PTNAME", false, true, "TB finds only names with .pt.trace.json")            \
	X(C_BOM, "C-BOM", true, false, "a byte order mark stands before the JSON")                 \
	X(C_UTF8, "C-UTF8", true, false, "strings that are not UTF-8")                             \
	X(J_SYNTAX, "J-SYNTAX", true, false, "text that is not JSON")                              \
	X(J_OPEN, "J-OPEN", false, false,                                                          \
	  "the array is not closed, which the format allows and JSON does not")                    \
	X(J_TAIL, "J-TAIL", true, false, "text follows the trace")                                 \
	X(J_CTRL, "J-CTRL", true, false, "raw control characters in strings")                      \
	X(J_CONST, "J-CONST", true, false, "NaN, Infinity or another word in place of a value")    \
	X(J_HUGE, "J-HUGE", true, false, "numbers beyond a double")                                \
	X(J_DEPTH, "J-DEPTH", true, false, "nested deeper than readers go")                        \
	X(J_DUP, "J-DUP", false, false,                                                            \
	  "the same key twice in an event or its args: the last one counts")                       \
	X(J_SURR, "J-SURR", false, false, "escaped surrogates: Perfetto refuses the file")         \
	X(T_OBJECT, "T-OBJECT", false, false,                                                      \
	  "a bare array of events: HTA, TraceLens and TB want an object")                          \
	X(T_EVENTS, "T-EVENTS", false, false, "no events")                                         \
	X(T_TWICE, "T-TWICE", true, false,                                                         \
	  "traceEvents is there twice: other readers use the last")                                \
	X(T_UNIT, "T-UNIT", false, false,                                                          \
	  "displayTimeUnit is neither ms nor ns: Chrome refuses it")                               \
	X(T_DIST, "T-DIST", true, false, "the rank is no number below the world size")             \
	X(T_RANK, "T-RANK", false, false,                                                          \
	  "HTA takes rank 0: it wants a blank between key and number, before traceEvents")         \
	X(T_DEVICE, "T-DEVICE", false, true,                                                       \
	  "GPUs that deviceProperties does not list, or not well")                                 \
	X(T_GTRACE, "T-GTRACE", true, false, "the gtrace member is no object")                     \
	X(T_LOST, "T-LOST", true, false, "its writer says that the trace is not complete")         \
	X(T_DROP, "T-DROP", true, false, "records were dropped or unusable while tracing")         \
	X(T_DOUBT, "T-DOUBT", false, false, "warnings of its writer")                              \
	X(E_OBJECT, "E-OBJECT", false, false, "empty events: TraceLens and TB fail")               \
	X(E_PH, "E-PH", false, true,                                                               \
	  "phases other than X M s f i C: TraceLens fails on pairs of B and E")                    \
	X(E_NAME, "E-NAME", false, false, "slices without a name: HTA, TraceLens and TB fail")     \
	X(E_CAT, "E-CAT", false, true, "slices without a category: TB fails")                      \
	X(E_CATOLD, "E-CATOLD", false, true,                                                       \
	  "categories of PyTorch up to 1.11: TraceLens sees no kernel")                            \
	X(E_TS, "E-TS", true, false, "events without a readable time")                             \
	X(E_DUR, "E-DUR", true, false, "slices without a duration, or with a negative one")        \
	X(E_STR, "E-STR", false, false, "times in quotes: HTA, TraceLens and TB fail")             \
	X(E_RANGE, "E-RANGE", false, false,                                                        \
	  "times below 0, or beyond 2^43 us, where a double loses nanoseconds")                    \
	X(E_ARGS, "E-ARGS", false, false, "args that are no object: TraceLens and TB fail")        \
	X(E_NOARGS, "E-NOARGS", false, true, "slices without args: TraceLens and TB fail")         \
	X(E_PID, "E-PID", false, true, "pid missing or below 0: Perfetto takes it for 0")          \
	X(E_TID, "E-TID", false, true, "tid missing or below 0: Perfetto takes it for 0")          \
	X(E_INST, "E-INST", false, false, "counters without a value")                              \
	X(E_TID0, "E-TID0", false, false,                                                          \
	  "tid 0 beside a tid that is the pid: Perfetto shows both as one thread")                 \
	X(E_ESC, "E-ESC", false, false, "control characters in names")                             \
	X(M_NAME, "M-NAME", false, true,                                                           \
	  "metadata other than names and sort orders: TraceLens fails")                            \
	X(M_ARGS, "M-ARGS", false, true, "metadata without its pid or args: TraceLens fails")      \
	X(G_NONE, "G-NONE", false, true, "no GPU work: HTA and TraceLens have nothing to do")      \
	X(G_PID, "G-PID", false, true, "GPU work whose pid is not args.device, 0 to 63: TB fails") \
	X(G_TID, "G-TID", false, true, "GPU work without a stream: HTA does not count it")         \
	X(G_CORR, "G-CORR", false, true, "GPU work without a correlation: no launch can be found") \
	X(G_NUM, "G-NUM", false, true, "numbers of GPU work in quotes: TB fails")                  \
	X(G_PIDMIX, "G-PIDMIX", false, true,                                                       \
	  "slices of the host on a pid that is a GPU: viewers mix them")                           \
	X(L_NONE, "L-NONE", false, true, "no GPU work has a launch")                               \
	X(L_KERNEL, "L-KERNEL", false, true, "GPU work without its launch")                        \
	X(L_LAUNCH, "L-LAUNCH", false, true, "launches without their GPU work")                    \
	X(L_MULTI, "L-MULTI", true, true, "two launches with the same correlation")                \
	X(L_CORR, "L-CORR", false, true, "launches without a correlation")                         \
	X(L_FAN, "L-FAN", false, true,                                                             \
	  "a launch, of no graph, with more than one piece of GPU work")                           \
	X(L_TIME, "L-TIME", false, true, "GPU work that starts before its launch")                 \
	X(L_NAME, "L-NAME", false, true,                                                           \
	  "GPU work whose launch has a name that HTA's launch statistics do not count")            \
	X(F_FORM, "F-FORM", false, false, "flow events without id, category, pid or tid")          \
	X(F_BP, "F-BP", false, true, "flow ends without bp e")                                     \
	X(F_DANGLE, "F-DANGLE", false, true, "arrows with one end")                                \
	X(F_DUP, "F-DUP", false, true,                                                             \
	  "arrows with two beginnings, or with more ends than their launch has GPU work")          \
	X(F_END, "F-END", false, true, "ends of arrows that lie on no slice")                      \
	X(F_CORR, "F-CORR", false, true,                                                           \
	  "launch arrows that end on another slice than the launch or its GPU work")               \
	X(F_MISS, "F-MISS", false, true,                                                           \
	  "GPU work without the arrow from its launch: TraceLens drops it")                        \
	X(S_NEST, "S-NEST", false, false,                                                          \
	  "slices of one track that overlap: viewers misplace or drop them")                       \
	X(S_GPU, "S-GPU", false, true, "GPU work that overlaps on one stream")                     \
	X(P_NONE, "P-NONE", false, true, "no step (ProfilerStep#N): TB has nothing to show")       \
	X(P_NAME, "P-NAME", false, true, "ProfilerStep without a number: HTA and TB fail")         \
	X(P_CAT, "P-CAT", false, true, "steps in another category than user_annotation")           \
	X(P_ORDER, "P-ORDER", true, true, "step numbers that do not rise with time")               \
	X(P_OVERLAP, "P-OVERLAP", true, true, "steps that overlap")                                \
	X(X_ZERO, "X-ZERO", false, true, "External id is no number above 0")                       \
	X(X_SIDES, "X-SIDES", false, true,                                                         \
	  "External id of a launch or of its GPU work alone: TB finds no operator")                \
	X(X_DIFF, "X-DIFF", true, true, "External id differs between launch and GPU work")         \
	X(X_CORR, "X-CORR", false, true, "the correlation stands as External id, which no op has") \
	X(X_REF, "X-REF", false, true, "External id of a launch that no op around it has")

enum gt_check_rule {
#define GT_CHECK_ENUM(name, code, is_error, pytorch, text) GT_CHECK_##name,
	GT_CHECK_RULES(GT_CHECK_ENUM)
#undef GT_CHECK_ENUM
		GT_CHECK_RULE_COUNT
};

struct gt_check_finding {
	uint64_t count;
	char first[288]; /* where, safe for a terminal; empty: not in one place */
};

struct gt_check_health {
	uint64_t gpu_ops;
	uint64_t gpu_without_launch;
	uint64_t before_first_launch; /* of these: the window began after their launch */
	uint64_t launches;
	uint64_t launches_without_gpu;
	uint64_t after_last_gpu; /* of these: the window ended before their GPU work */
	uint64_t steps;
	uint64_t tracks;
	uint64_t span_ns; /* of all slices */
	uint64_t
		not_compared; /* events beyond what memory allows: their links or nesting is open */
};

struct gt_check {
	struct gt_summary *about; /* producer, rank and what the trace says of itself; no tables */
	struct gt_trace_stats read;
	struct gt_gz_status gz;
	bool is_pytorch;
	struct gt_check_health health;
	struct gt_check_finding findings[GT_CHECK_RULE_COUNT];
};

/*
 * Read the trace and judge it; path is its name. What is readable goes to copy, when that is not
 * NULL. 0 whatever was found; -EBADMSG: not a trace; else as gt_trace_read() and gt_trace_copy_*().
 * *ret is the caller's, for gt_check_free(). err does not name path.
 */
int gt_check_read(struct gt_check **ret, struct gt_gz_reader *gz, const char *path,
		  struct gt_trace_copy *copy, struct gt_err *err);

void gt_check_free(struct gt_check *check); /* may be NULL */

/* No error among the findings. */
bool gt_check_is_sound(const struct gt_check *check);

/* Append the verdict, the health figures and the findings to out. 0 or -ENOMEM. */
int gt_check_print(const struct gt_check *check, struct gt_buf *out);
int gt_check_print_json(const struct gt_check *check, struct gt_buf *out);

/* The same for gt_trace_copy_commit(): what was wrong with the file that copy was made of. */
int gt_check_print_about(const struct gt_check *check, const struct gt_trace_copy *copy,
			 struct gt_buf *out);

#endif
