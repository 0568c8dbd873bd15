/*
 * env.h - every environment variable gtrace reads or sets, in one list. 'gtrace run' sets the ones
 * for its target; the injection reads them once, at entry; what the hooks of PyTorch need, as they
 * come.
 */
#ifndef GT_ENV_H
#define GT_ENV_H

/* X(identifier, variable, meaning) */
#define GT_ENV_VARS(X)                                                                            \
	X(SOCKET, "GTRACE_SOCKET", "path of the collector's Unix socket")                         \
	X(INJECTION, "GTRACE_INJECTION", "absolute path of libgtrace-inject.so")                  \
	X(SCHEDULE, "GTRACE_SCHEDULE", "the schedule as gt_schedule_format() writes it")          \
	X(STEP_SOURCE, "GTRACE_STEP_SOURCE", "a word of gtrace run --step-source")                \
	X(STEP_RANGE, "GTRACE_STEP_RANGE",                                                        \
	  "POSIX extended regex of the NVTX range or mark that is a step")                        \
	X(STEP_CALL, "GTRACE_STEP_CALL", "MODULE:QUALNAME of the Python function that is a step") \
	X(CAPTURE, "GTRACE_CAPTURE",                                                              \
	  "steps, cuda-profiler, nvtx:REGEX[@DOMAIN] or time:BEGIN,LENGTH,PAUSE in ms")           \
	X(MAX_BUFFER, "GTRACE_MAX_BUFFER", "bytes of the arena of one process")                   \
	X(CUDA_GRAPH, "GTRACE_CUDA_GRAPH", "node or graph")                                       \
	X(PYTHON_DIR, "GTRACE_PYTHON_DIR", "directory of the Python start-up hook")               \
	X(LIBCUPTI, "GTRACE_LIBCUPTI", "the libcupti to load, instead of the one found")          \
	X(ACTIVITIES, "GTRACE_ACTIVITIES", "what is recorded: cpu, gpu, mem, with commas")        \
	X(WITH, "GTRACE_WITH", "what is told of operators: shapes, stack, modules, with commas")  \
	X(BACKTRACE, "GTRACE_BACKTRACE", "us from which on CUDA calls have their Python stack")   \
	X(OPS, "GTRACE_OPS", "nvtx: operators by torch's NVTX profiler, not by our observer")     \
	X(DEBUG, "GTRACE_DEBUG", "1: the injection says on stderr what it does")                  \
	X(NSIGHT, "GTRACE_NSIGHT", "1 or quiet: Nsight Systems records, gtrace tells it when")    \
	X(RUNTIME_DIR, "GTRACE_RUNTIME_DIR", "where sessions of gtrace find each other")          \
	X(OUTPUT_DIR, "GTRACE_OUTPUT_DIR", "default of gtrace run --output-dir")

#define GT_ENV_DEFINE(id, name, help) GT_ENV_IDX_##id,
enum gt_env_idx { GT_ENV_VARS(GT_ENV_DEFINE) GT_ENV_IDX_MAX };
#undef GT_ENV_DEFINE

/* Bytes of a regular expression in them, with its end. */
#define GT_ENV_REGEX_MAX   1024

#define GT_ENV_SOCKET      "GTRACE_SOCKET"
#define GT_ENV_INJECTION   "GTRACE_INJECTION"
#define GT_ENV_SCHEDULE    "GTRACE_SCHEDULE"
#define GT_ENV_STEP_SOURCE "GTRACE_STEP_SOURCE"
#define GT_ENV_STEP_RANGE  "GTRACE_STEP_RANGE"
#define GT_ENV_STEP_CALL   "GTRACE_STEP_CALL"
#define GT_ENV_CAPTURE     "GTRACE_CAPTURE"
#define GT_ENV_MAX_BUFFER  "GTRACE_MAX_BUFFER"
#define GT_ENV_CUDA_GRAPH  "GTRACE_CUDA_GRAPH"
#define GT_ENV_PYTHON_DIR  "GTRACE_PYTHON_DIR"
#define GT_ENV_LIBCUPTI    "GTRACE_LIBCUPTI"
#define GT_ENV_ACTIVITIES  "GTRACE_ACTIVITIES"
#define GT_ENV_WITH        "GTRACE_WITH"
#define GT_ENV_BACKTRACE   "GTRACE_BACKTRACE"
#define GT_ENV_OPS         "GTRACE_OPS"
#define GT_ENV_DEBUG       "GTRACE_DEBUG"
#define GT_ENV_NSIGHT      "GTRACE_NSIGHT"
#define GT_ENV_RUNTIME_DIR "GTRACE_RUNTIME_DIR"
#define GT_ENV_OUTPUT_DIR  "GTRACE_OUTPUT_DIR"

#endif
