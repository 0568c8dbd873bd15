/*
 * inject.c - the doors by which we get into a program, and the one session behind them.
 */
#include "capture.h"
#include "clock.h"
#include "events.h"
#include "env.h"
#include "nsight.h"
#include "torch_ops.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define ARENA_DEFAULT_BYTES (UINT64_C(64) << 20)
#define RANK_WAIT_MS        20 /* for room in the socket; a trace with a wrong rank is worse */

struct inj_live inj_live;
struct inj_config inj_config;

static pthread_once_t start_once = PTHREAD_ONCE_INIT;
static pthread_once_t cuda_once = PTHREAD_ONCE_INIT;
static enum gt_door first_door;
static _Atomic uint64_t group; /* of gtrace_inject_rank(): its size, and the rank; 0: none */

int InitializeInjection(void);

bool inj_alive(void)
{
	return inj_live_alive();
}

bool inj_recording(void)
{
	/* As of inj_live.alive: who sees it may use the arena. */
	return atomic_load_explicit(&inj_live.recording, memory_order_acquire);
}

/* ---- saying something ---- */

/*
 * On the program's stderr, without the signal that a closed pipe or a limit on file sizes would
 * bring.
 */
static void say(const char *line, size_t len)
{
	const struct timespec now = { 0 };
	sigset_t risen, before, given;

	sigemptyset(&risen);
	sigaddset(&risen, SIGPIPE);
	sigaddset(&risen, SIGXFSZ);
	if (sigpending(&before) || pthread_sigmask(SIG_BLOCK, &risen, &given))
		return;
	if (write(STDERR_FILENO, line, len) < 0 && (errno == EPIPE || errno == EFBIG)) {
		/* What waited before is the program's. */
		if (sigismember(&before, SIGPIPE))
			sigdelset(&risen, SIGPIPE);
		if (sigismember(&before, SIGXFSZ))
			sigdelset(&risen, SIGXFSZ);
		while (sigtimedwait(&risen, NULL, &now) < 0 && errno == EINTR)
			;
	}
	pthread_sigmask(SIG_SETMASK, &given, NULL);
}

void inj_log(enum gt_log_level level, const char *fmt, ...)
{
	struct gt_msg_log msg = { .level = level };
	char line[sizeof(msg.text) + 32];
	va_list args;
	int len;

	if (level == GT_LOG_DEBUG && !inj_config.debug)
		return;
	va_start(args, fmt);
	len = vsnprintf(msg.text, sizeof(msg.text), fmt, args);
	va_end(args);
	if (len < 0)
		return;
	msg.len_bytes = GT_MIN((uint32_t)len, (uint32_t)sizeof(msg.text) - 1);
	if (level != GT_LOG_DEBUG && !inj_transport_send(GT_MSG_LOG, &msg, sizeof(msg), 0))
		return;
	len = snprintf(line, sizeof(line), "gtrace: %s%s\n",
		       level == GT_LOG_WARN ? "warning: " : "", msg.text);
	say(line, (size_t)len);
}

/* ---- the environment ---- */

static void copy_env(char *ret, size_t size, const char *name)
{
	const char *value = getenv(name);

	snprintf(ret, size, "%s", value ? value : "");
}

#define ALL_SOURCES ((1U << GT_STEP_CAPTURE) - 1 - (1U << GT_STEP_NONE))
#define FRAMEWORKS     \
	(ALL_SOURCES & \
	 ~(1U << GT_STEP_OPTIMIZER | 1U << GT_STEP_NVTX | 1U << GT_STEP_CALL | 1U << GT_STEP_API))

/* Which marks count, and what is done until the first one. false: not a known source. */
static bool set_source(const char *source)
{
	static const struct {
		const char *name;
		uint32_t sources;
		enum gt_arena_mode mode;
	} known[] = {
		{ "auto", ALL_SOURCES & ~(1U << GT_STEP_CALL), GT_MODE_KEEP },
		{ "api", 1U << GT_STEP_API, GT_MODE_STEPS },
		{ "nvtx", 1U << GT_STEP_NVTX, GT_MODE_STEPS },
		{ "optimizer", 1U << GT_STEP_OPTIMIZER, GT_MODE_STEPS },
		{ "framework", FRAMEWORKS, GT_MODE_STEPS },
		{ "call", 1U << GT_STEP_CALL, GT_MODE_STEPS },
		{ "none", 0, GT_MODE_WHOLE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(source ? source : "auto", known[i].name))
			continue;
		inj_config.sources = known[i].sources | 1U << GT_STEP_CAPTURE;
		inj_config.mode = inj_config.schedule.capture || inj_config.schedule.on_demand
					  ? GT_MODE_STEPS
					  : known[i].mode;
		return true;
	}
	return false;
}

/* All of it now: later the program may change its environment while a thread of ours reads it. */
static bool read_environment(void)
{
	const struct gt_schedule standard = GT_SCHEDULE_DEFAULT;
	const char *path = getenv(GT_ENV_SOCKET);
	const char *schedule = getenv(GT_ENV_SCHEDULE);
	const char *bytes = getenv(GT_ENV_MAX_BUFFER);
	const char *graph = getenv(GT_ENV_CUDA_GRAPH);
	const char *debug = getenv(GT_ENV_DEBUG);
	const char *nsight = getenv(GT_ENV_NSIGHT);
	const char *daemon = getenv("KINETO_USE_DAEMON");

	if (!path || !*path) {
		if (!nsight || !*nsight)
			return false; /* not under gtrace: nothing to say */
		path = "";
		inj_config.nsight = true;
		inj_config.quiet = !strcmp(nsight, "quiet");
	}
	inj_config.kineto_daemon = daemon && *daemon;
	inj_config.debug = debug && !strcmp(debug, "1");
	inj_config.schedule = standard;
	if (strlen(path) >= sizeof(inj_config.socket) ||
	    (schedule && gt_schedule_parse(schedule, &inj_config.schedule) < 0) ||
	    !set_source(getenv(GT_ENV_STEP_SOURCE)) || !inj_capture_init(getenv(GT_ENV_CAPTURE))) {
		inj_log(GT_LOG_ERROR,
			"the environment of this process is not that of 'gtrace run'");
		return false;
	}
	snprintf(inj_config.socket, sizeof(inj_config.socket), "%s", path);
	inj_config.arena_bytes = bytes ? strtoull(bytes, NULL, 10) : ARENA_DEFAULT_BYTES;
	inj_config.arena_bytes = GT_MAX(inj_config.arena_bytes, GT_ARENA_MIN_BYTES);
	inj_config.arena_bytes = GT_MIN(inj_config.arena_bytes, GT_ARENA_MAX_BYTES);
	inj_config.graph_whole = graph && !strcmp(graph, "graph");
	gt_rank_from_env(getenv, &inj_config.rank);
	copy_env(inj_config.libcupti, sizeof(inj_config.libcupti), GT_ENV_LIBCUPTI);
	copy_env(inj_config.step_range, sizeof(inj_config.step_range), GT_ENV_STEP_RANGE);
	for (size_t i = 0; i < GT_CUPTI_DIRS; i++)
		copy_env(inj_config.cuda_dirs[i], sizeof(inj_config.cuda_dirs[i]),
			 gt_cupti_dir_vars[i]);
	return true;
}

/* ---- fork and exit ---- */

static bool forks_traced; /* the process that forks is traced */
static bool was_forked;   /* from a traced process, or a child of such a one */

static void before_fork(void)
{
	forks_traced = inj_live_alive();
}

/* For kernels without MADV_WIPEONFORK. The descriptor goes, or the socket would outlive us. */
static void in_child(void)
{
	memset(&inj_live, 0, sizeof(inj_live));
	inj_transport_forget();
	was_forked |= forks_traced && !inj_nsight();
}

void inj_say_forked(void)
{
	if (!was_forked || atomic_exchange(&inj_arena->forked, 1))
		return;
	inj_log(GT_LOG_WARN,
		"process %d was forked from a traced one, and is not traced: have it started by "
		"spawn or forkserver",
		(int)getpid());
}

static void at_exit(void)
{
	static _Atomic bool done;

	if (inj_live_alive() && !atomic_exchange(&done, true))
		inj_control_exit();
}

/* Handlers run in the reverse of the order in which they were registered. */
void inj_exit_early(void)
{
	if (atexit(at_exit))
		inj_log(GT_LOG_DEBUG, "no hook for the end of the program");
}

/* ---- the rank that the program says it has ---- */

/* true: it is another one than the launcher's, and now that of inj_config. */
static bool take_group(void)
{
	uint64_t told = atomic_load(&group);
	uint32_t rank = (uint32_t)told, world_size = (uint32_t)(told >> 32);
	struct gt_rank *known = &inj_config.rank;

	if (!told || world_size < known->world_size ||
	    (rank == known->rank && world_size == known->world_size))
		return false;
	*known =
		(struct gt_rank){ .rank = rank, .world_size = world_size, .source = GT_RANK_TORCH };
	return true;
}

void gtrace_inject_rank(uint32_t rank, uint32_t world_size)
{
	struct gt_msg_rank msg = { .rank_source = GT_RANK_TORCH };

	if (rank >= world_size)
		return;
	atomic_store(&group, (uint64_t)world_size << 32 | rank);
	if (!inj_live_alive() || !take_group())
		return;
	msg.rank = rank;
	msg.world_size = world_size;
	inj_transport_send(GT_MSG_RANK, &msg, sizeof(msg), RANK_WAIT_MS);
}

void gtrace_inject_torch(const char *version)
{
	if (!inj_live_alive())
		snprintf(inj_config.torch, sizeof(inj_config.torch), "%s", version);
}

/* ---- the session ---- */

static int say_hello(int arena_fd)
{
	const char *(*python_version)(void) =
		(const char *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetVersion");
	struct gt_msg_hello hello = {
		.arena_bytes = inj_arena->arena_bytes,
		.realtime_ns = gt_clock_ns(CLOCK_REALTIME),
		.monotonic_ns = gt_clock_ns(CLOCK_MONOTONIC),
		.pid = (uint32_t)getpid(),
		.ppid = (uint32_t)getppid(),
		.rank = inj_config.rank.rank,
		.world_size = inj_config.rank.world_size,
		.rank_source = (uint8_t)inj_config.rank.source,
		.door = (uint8_t)first_door,
	};

	snprintf(hello.comm, sizeof(hello.comm), "%s", program_invocation_short_name);
	if (python_version) /* "3.11.2 (main, ..." */
		snprintf(hello.python, sizeof(hello.python), "%.*s",
			 (int)strcspn(python_version(), " "), python_version());
	memcpy(hello.torch, inj_config.torch, sizeof(hello.torch));
	return inj_transport_connect(inj_config.socket, &hello, arena_fd);
}

/* A rank that cannot be one: which is taken instead. */
static void say_refused_rank(const struct gt_rank *rank)
{
	const char *value = rank->refused ? getenv(rank->refused) : NULL;

	if (value && rank->source == GT_RANK_NONE)
		inj_log(GT_LOG_WARN, "%s=%.32s is no rank: this process counts as rank 0",
			rank->refused, value);
	else if (value)
		inj_log(GT_LOG_WARN, "%s=%.32s is no rank: this process is rank %u, by %s",
			rank->refused, value, rank->rank, gt_rank_source_name(rank->source));
}

/*
 * A program without an interpreter has a C library of its own, and loads another one with us, whose
 * pthread_create() crashes there.
 */
static bool is_static(void)
{
	const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	size_t count = getauxval(AT_PHNUM);

	if (!headers)
		return false; /* not known */
	for (size_t i = 0; i < count; i++)
		if (headers[i].p_type == PT_INTERP)
			return false;
	return true;
}

/* The arena, and who reads it. false: said why not. */
static bool connect_session(void)
{
	int arena_fd, err;

	if (inj_events_init() < 0 || inj_names_init() < 0) {
		inj_log(GT_LOG_ERROR, "this process is not traced: out of resources");
		return false;
	}
	err = inj_arena_create(inj_config.arena_bytes, inj_config.mode, &arena_fd);
	if (err < 0) {
		inj_log(GT_LOG_ERROR,
			"this process is not traced: no shared memory of %llu MiB: %s; %s, and "
			"'gtrace doctor'",
			(unsigned long long)(inj_config.arena_bytes >> 20), strerror(-err),
			err == -EFBIG ? "raise ulimit -f" : "try a smaller --max-buffer");
		return false;
	}
	err = say_hello(arena_fd);
	close(arena_fd); /* the mapping and the collector have it */
	if (err < 0) {
		inj_log(GT_LOG_ERROR, "this process is not traced: no connection to gtrace: %s",
			strerror(-err));
		return false;
	}
	say_refused_rank(&inj_config.rank);
	return true;
}

static void start(void)
{
	int err;

	if (!read_environment())
		return;
	if (is_static()) {
		inj_log(GT_LOG_ERROR,
			"this process is not traced: it is statically linked; link it dynamically");
		return;
	}
	take_group();
	if (inj_steps_init() < 0)
		inj_log(GT_LOG_WARN, "cannot use the step range '%s'", inj_config.step_range);
	if (inj_nsight())
		inj_nsight_init();
	else if (!connect_session())
		return;
	madvise(&inj_live, sizeof(inj_live), MADV_WIPEONFORK);
	if (pthread_atfork(before_fork, NULL, in_child))
		inj_log(GT_LOG_DEBUG, "no hook for fork");
	if (inj_nsight()) {
		atomic_store(&inj_live.alive, 1);
		inj_nsight_begin();
		return;
	}
	inj_python_init();
	inj_exit_early();
	atomic_store(&inj_live.recording, inj_config.mode != GT_MODE_STEPS);
	atomic_store(&inj_live.taking, inj_config.mode != GT_MODE_STEPS);
	atomic_store(&inj_live.alive, 1);
	while (!inj_capture_follow()) /* a range that begins at once; there is no CUDA to switch on
				       */
		atomic_store(&inj_live.armed, 1);
	err = inj_control_start();
	if (err < 0) {
		atomic_store(&inj_live.alive, 0);
		inj_log(GT_LOG_ERROR, "this process is not traced: no thread: %s", strerror(-err));
	}
}

/* What comes in by these is not ours where Nsight Systems records. */
static bool is_closed(enum gt_door door)
{
	return inj_nsight() && (door == GT_DOOR_CUDA || door == GT_DOOR_NVTX);
}

bool inj_start(enum gt_door door)
{
	int saved = errno;

	/* Also from within start(), whose NVTX may come back to this library. */
	if (is_closed(door))
		return false;
	if (!inj_live_alive()) {
		first_door = door;
		pthread_once(&start_once, start);
	}
	errno = saved;
	return inj_live_alive() && !is_closed(door);
}

/* ---- the doors ---- */

/* Called by libcuda in the first cuInit(), before that returns. Whatever comes, it shall go on. */
GT_EXPORT int InitializeInjection(void)
{
	int saved = errno;

	if (inj_start(GT_DOOR_CUDA))
		pthread_once(&cuda_once, inj_control_attach);
	else
		inj_say_forked();
	errno = saved;
	return 1;
}

int gtrace_inject_start(int door)
{
	if (!door)
		return inj_alive();
	if (inj_start(door == GT_DOOR_PYTHON ? GT_DOOR_PYTHON : GT_DOOR_API))
		return 1;
	inj_say_forked();
	return 0;
}

void gtrace_inject_step(void)
{
	inj_step(GT_STEP_API, 0);
}

void gtrace_inject_optimizer_step(uint64_t key)
{
	if (!inj_ops_defer_step(key))
		inj_step(GT_STEP_OPTIMIZER, key);
}

int gtrace_inject_source(const char *name)
{
#define X(id, name) name,
	static const char *const names[] = { GT_STEP_SOURCES(X) };
#undef X

	for (enum gt_step_source i = GT_STEP_NONE; i < GT_STEP_CAPTURE; i++) {
		if (strcmp(name, names[i]) || !(inj_config.sources & 1U << i))
			continue;
		inj_steps_claim(i);
		return (int)i;
	}
	return 0;
}

void gtrace_inject_mark(int source)
{
	if (source > GT_STEP_NONE && source < GT_STEP_CAPTURE)
		inj_step((enum gt_step_source)source, 0);
}

const _Atomic uint32_t *gtrace_inject_ranges(void)
{
	static const _Atomic uint32_t always = 1;

	/* a range may be the step, or what is captured */
	return *inj_config.step_range || inj_config.capture == INJ_CAPTURE_NVTX
		       ? &always
		       : &inj_live.recording;
}

void gtrace_inject_warn(const char *text)
{
	inj_log(GT_LOG_WARN, "%s", text);
}

void gtrace_inject_yield(void)
{
	inj_yield();
}

void gtrace_inject_resume(void)
{
	inj_resume();
}
