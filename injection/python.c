/*
 * python.c - brings the start-up hook into a Python where sitecustomize did not run (python -I, -E
 * or -S, zip applications, embedded interpreters). Nothing of Python is linked: its functions are
 * looked up among what the process has loaded.
 */
#include "inject.h"
#include "clock.h"
#include "env.h"

#include <dlfcn.h>
#include <stdlib.h>

#define PY_FILE_INPUT 257 /* Py_file_input of CPython's compile.h, the same in every 3.x */

/* How long to look for Python, or to ask it again: 10 ms, doubled until 1 s, 15 s in all. */
#define WAIT_FIRST_NS (10 * GT_NSEC_PER_MSEC)
#define WAIT_MAX_NS   GT_NSEC_PER_SEC
#define TRIES_MAX     20
#define FAILURES_MAX  5 /* of the bootstrap: an interpreter may not be complete yet */

/* The part of CPython's stable API that is used; its objects are opaque here. */
#define PYTHON_API(X)                                                                             \
	X(int, Py_IsInitialized, (void))                                                          \
	X(int, Py_AddPendingCall, (int (*func)(void *), void *arg))                               \
	X(void *, PyInterpreterState_Main, (void))                                                \
	X(void *, PyImport_GetModuleDict, (void))                                                 \
	X(void *, PyEval_GetBuiltins, (void))                                                     \
	X(void *, PyDict_New, (void))                                                             \
	X(void *, PyDict_GetItemString, (void *dict, const char *key))                            \
	X(int, PyDict_SetItemString, (void *dict, const char *key, void *value))                  \
	X(void *, PyBytes_FromString, (const char *bytes))                                        \
	X(int, PyObject_IsTrue, (void *object))                                                   \
	X(void *, PyRun_StringFlags,                                                              \
	  (const char *code, int start, void *globals, void *locals, void *flags))                \
	X(void, Py_DecRef, (void *object))                                                        \
	X(void *, PyObject_CallMethod, (void *object, const char *name, const char *format, ...)) \
	X(int, PyErr_ExceptionMatches, (void *exception))                                         \
	X(void, PyErr_Clear, (void))

static struct {
#define X(ret, name, params) ret(*name) params;
	PYTHON_API(X)
#undef X
	int (*is_finalizing)(void);
	void *(*interpreter_get)(void);
	void **keyboard_interrupt;
} py;

enum state { LOOKING, ASKING, ASKED, SETTLED };

static _Atomic int state = SETTLED; /* enum state; written by Python's main thread while ASKED */
static char *hook_dir;
static uint64_t next_try_ns;
static int tries;

/* Leaves no name behind in the program's modules but our own. */
static const char bootstrap[] =
	"import sys\n"
	"hook = sys.modules.get('gtrace_hook')\n"
	"if hook is None:\n"
	"    import os\n"
	"    from importlib.util import module_from_spec, spec_from_file_location\n"
	"    path = os.path.join(os.fsdecode(directory), 'gtrace_hook.py')\n"
	"    spec = spec_from_file_location('gtrace_hook', path)\n"
	"    hook = module_from_spec(spec)\n"
	"    spec.loader.exec_module(hook)\n"
	"    sys.modules['gtrace_hook'] = hook\n"
	"again = not hook.install()\n";

/* Runs the bootstrap. Its exceptions end here, but for the user's own KeyboardInterrupt. */
static enum state run_bootstrap(bool *ret_interrupted)
{
	void *globals = py.PyDict_New();
	void *directory = py.PyBytes_FromString(hook_dir);
	void *result = NULL, *again = NULL;
	static int failures;
	enum state ret = SETTLED;

	if (globals && directory &&
	    !py.PyDict_SetItemString(globals, "__builtins__", py.PyEval_GetBuiltins()) &&
	    !py.PyDict_SetItemString(globals, "directory", directory))
		result = py.PyRun_StringFlags(bootstrap, PY_FILE_INPUT, globals, globals, NULL);
	if (result)
		again = py.PyDict_GetItemString(globals, "again");
	if (again ? py.PyObject_IsTrue(again) > 0 : ++failures < FAILURES_MAX)
		ret = ASKING;
	*ret_interrupted = !result && py.PyErr_ExceptionMatches(*py.keyboard_interrupt);
	if (!*ret_interrupted)
		py.PyErr_Clear();
	/* Py_DecRef() takes NULL */
	py.Py_DecRef(result);
	py.Py_DecRef(directory);
	py.Py_DecRef(globals);
	return ret;
}

/* On Python's main thread, between two bytecodes. -1 raises there what is set. */
static int pending_call(void *arg)
{
	static bool ours;
	enum state next = SETTLED;
	bool interrupted = false;

	(void)arg;
	/* other interpreters than the main one are left alone; so is a hook that sitecustomize set
	 */
	if (inj_alive() && py.interpreter_get() == py.PyInterpreterState_Main() &&
	    (ours || !py.PyDict_GetItemString(py.PyImport_GetModuleDict(), "gtrace_hook"))) {
		ours = true;
		next = run_bootstrap(&interrupted);
	}
	atomic_store(&state, next);
	return interrupted ? -1 : 0;
}

static void *find(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

/*
 * Is there a Python from 3.8 on in this process? Looked up once, as its main thread may be in one
 * of our pending calls. The control thread's.
 */
static bool find_python(void)
{
	static bool found;

	if (found)
		return true;
#define X(ret, name, params)                  \
	py.name = (ret(*) params)find(#name); \
	if (!py.name)                         \
		return false;
	PYTHON_API(X)
#undef X
	py.is_finalizing = (int (*)(void))find("Py_IsFinalizing"); /* 3.13 */
	if (!py.is_finalizing)
		py.is_finalizing = (int (*)(void))find("_Py_IsFinalizing");
	py.interpreter_get = (void *(*)(void))find("PyInterpreterState_Get"); /* 3.9 */
	if (!py.interpreter_get)
		py.interpreter_get = (void *(*)(void))find("_PyInterpreterState_Get");
	py.keyboard_interrupt = find("PyExc_KeyboardInterrupt");
	found = py.is_finalizing && py.interpreter_get && py.keyboard_interrupt;
	return found;
}

void inj_python_init(void)
{
	const char *dir = getenv(GT_ENV_PYTHON_DIR);

	if (dir && *dir)
		hook_dir = strdup(dir);
	if (hook_dir)
		atomic_store(&state, LOOKING);
}

/* A function that only free-threaded builds have; there other threads run beside a pending call. */
static bool is_free_threaded(void)
{
	return find("PyUnstable_Module_SetGIL");
}

static bool can_be_asked(void)
{
	return !is_free_threaded() && py.Py_IsInitialized() && !py.is_finalizing();
}

static void try_once(void)
{
	if (atomic_load(&state) == LOOKING) {
		if (!find_python())
			return;
		atomic_store(&state, ASKING);
	}
	if (is_free_threaded()) {
		atomic_store(&state, SETTLED);
		return;
	}
	if (!can_be_asked())
		return;
	atomic_store(&state, ASKED); /* first: the call may run and answer at once */
	if (py.Py_AddPendingCall(pending_call, NULL)) /* the queue is full */
		atomic_store(&state, ASKING);
}

int inj_python_poll(void)
{
	int now_state = atomic_load(&state);
	uint64_t now_ns;

	if (now_state == SETTLED)
		return -1;
	now_ns = gt_clock_ns(CLOCK_MONOTONIC);
	if (now_ns >= next_try_ns) {
		next_try_ns = now_ns + GT_MIN(WAIT_FIRST_NS << GT_MIN(tries, 10), WAIT_MAX_NS);
		if (now_state != ASKED && tries++ == TRIES_MAX)
			atomic_store(&state, SETTLED);
		else if (now_state != ASKED)
			try_once();
	}
	return (int)((next_try_ns - now_ns) / GT_NSEC_PER_MSEC) + 1;
}

/* ---- operators that are ranges ---- */

/* As pending_call(). */
static int tell_hook(void *on)
{
	void *hook = py.PyDict_GetItemString(py.PyImport_GetModuleDict(), "gtrace_hook");
	void *result = hook ? py.PyObject_CallMethod(hook, "recording", "i", on != NULL) : NULL;

	if (hook && !result && py.PyErr_ExceptionMatches(*py.keyboard_interrupt))
		return -1;
	py.PyErr_Clear();
	py.Py_DecRef(result);
	return 0;
}

bool inj_python_recording(bool on)
{
	return !find_python() || !can_be_asked() ||
	       !py.Py_AddPendingCall(tell_hook, on ? &py : NULL);
}
