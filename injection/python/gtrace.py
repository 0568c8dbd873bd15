"""Mark steps and ranges of a Python program for 'gtrace run'.

    import gtrace

    for batch in loader:
        with gtrace.range("forward"):
            loss = model(batch)
        ...
        gtrace.step()

In a program that does not run under 'gtrace run' all of it does nothing. Under 'gtrace run' this
module can be imported as it is; copy it into your project, under whatever terms suit you, to have
it everywhere. It needs Python 3.6. gtrace-python(3) describes it.
"""

import os
from _thread import RLock
from functools import wraps

__all__ = ["profile", "range", "step"]

_DOOR_API = 4  # enum gt_door in lib/wire.h
_OPEN_WAIT_S = 2

_path = os.environ.get("GTRACE_INJECTION")


def _nothing(*args):
    pass


class _Off:
    value = 0


class _Unopened:
    @property
    def value(self):
        _open()
        return _recording.value


def _first_step():
    _open()
    _step()


# What is used: at first the look for gtrace, then its functions or nothing.
_step = _first_step
_push = _pop = _nothing
_opening = RLock()
_recording = _Unopened()  # of ctypes; its value is not 0 while ranges are wanted


def _open():
    """Start the session, once: other threads wait for the first one that comes here. Whatever goes
    wrong, the program runs as without us."""
    global _step, _recording
    # In a child that was forked meanwhile it is never released.
    if not _opening.acquire(timeout=_OPEN_WAIT_S):
        _step, _recording = _nothing, _Off()
        return
    try:
        if isinstance(_recording, _Unopened):
            _find_functions()
    finally:
        _opening.release()


def _find_functions():
    global _step, _push, _pop, _recording
    step, recording = _nothing, _Off()
    try:
        if _path:
            from ctypes import POINTER, PyDLL, c_char_p, c_int, c_uint32

            # Each is over before another thread could use the GIL, but for a step before a window.
            library = PyDLL(_path)
            if library.gtrace_inject_start(c_int(_DOOR_API)) == 1:
                library.gtrace_inject_ranges.restype = POINTER(c_uint32)
                library.gtrace_inject_push.argtypes = [c_char_p]
                for function in (library.gtrace_inject_step, library.gtrace_inject_push,
                                 library.gtrace_inject_pop):
                    function.restype = None
                _push, _pop = library.gtrace_inject_push, library.gtrace_inject_pop
                step, recording = library.gtrace_inject_step, library.gtrace_inject_ranges().contents
    except Exception as error:
        _warn("steps and ranges of gtrace.py are not traced (%s: %s)"
              % (type(error).__name__, error))
    _step, _recording = step, recording


def _warn(text):
    """A line for the user."""
    try:
        from ctypes import PyDLL, c_char_p

        function = PyDLL(_path).gtrace_inject_warn
        function.argtypes, function.restype = [c_char_p], None
        function(text.encode("utf-8", "replace"))
    except Exception:
        pass


def step():
    """A step of the program ends here and the next one begins: call it once an iteration, in the
    thread that drives the loop. The first call ends step 0."""
    _step()


class range:
    """A range of the calling thread in the trace, for a with statement or as a decorator. Ranges of
    a thread nest: it must end where it began, and not wait for others of an event loop."""

    __slots__ = "name", "_begun"

    def __init__(self, name):
        self.name = name
        self._begun = 0  # a bit for each time that it is open, the innermost one is the lowest

    def __enter__(self):
        begun = self._begun << 1
        if _recording.value:
            _push(str(self.name).encode("utf-8", "replace"))
            begun |= 1
        self._begun = begun
        return self

    def __exit__(self, kind, error, traceback):
        begun = self._begun
        self._begun = begun >> 1
        if begun & 1:
            _pop()

    def __call__(self, function):
        name = self.name
        if not _path:
            return function

        @wraps(function)
        def call(*args, **kwargs):
            if not _recording.value:
                return function(*args, **kwargs)
            with range(name):
                return function(*args, **kwargs)

        @wraps(function)
        async def call_async(*args, **kwargs):
            with range(name):
                return await function(*args, **kwargs)

        return call_async if _is_async(function) else call


def _flags_of(function):
    """Inspect, which knows them, is not worth its import."""
    return getattr(getattr(function, "__code__", None), "co_flags", 0)


def _is_async(function):
    return _flags_of(function) & 0x80  # CO_COROUTINE


def _is_generator(function):
    return _flags_of(function) & 0x20  # CO_GENERATOR


# ---- profile ----


_told = False


def _session():
    """What the command line has set, by the names of profile()'s arguments."""
    set_to = {}
    for part in os.environ.get("GTRACE_SCHEDULE", "").split(","):
        name, _, value = part.partition("=")
        if value.isdigit():
            set_to[name] = int(value)
    words = set(os.environ.get("GTRACE_ACTIVITIES", "cpu,gpu").split(","))
    set_to["activities"] = words - {"mem"}  # which has an argument of its own
    set_to["profile_memory"] = "mem" in words
    recorded = os.environ.get("GTRACE_WITH", "").split(",")
    set_to["record_shapes"] = set_to["with_flops"] = "shapes" in recorded
    set_to["with_stack"] = "stack" in recorded
    set_to["with_modules"] = "modules" in recorded
    return set_to


def _activities(given):
    """Words as those of --activities, from words or torch.profiler.ProfilerActivity."""
    words = {str(getattr(one, "name", one)).lower() for one in given}
    return {"gpu" if word == "cuda" else word for word in words}


def _tell(given):
    """The command line rules. Say once what was asked for and is otherwise."""
    global _told
    if _told or not _path:
        return
    _told = True
    try:
        if given.get("activities") is not None:
            words = _activities(given["activities"])
            given["activities"] = words - {"mem"}
            if "mem" in words and given["profile_memory"] is None:
                given["profile_memory"] = True
        set_to = _session()
        differ = []
        for name, asked in sorted(given.items()):
            if asked is not None and name in set_to and set_to[name] != asked:
                value = set_to[name]
                if isinstance(value, set):
                    value = ",".join(sorted(value))
                differ.append("%s is %s" % (name, value))
        if differ:
            _warn("the options of 'gtrace run' rule, not those of gtrace.profile(): "
                  + ", ".join(differ))
    except Exception:
        pass


class profile:
    """Steps of the program, with the arguments of torch.profiler's wrappers.

    As a decorator, each call of the function that returns is a step. In a with statement, step()
    ends a step; where the block calls none, the block is one. 'gtrace run' has decided before the
    program began what is recorded, of which steps, and where it goes: so these arguments change
    nothing but enabled, and where they differ that is said once.
    """

    def __new__(cls, function=None, **arguments):
        self = super().__new__(cls)
        if function is None:
            return self
        self.__init__(**arguments)
        return self(function)  # @profile without parentheses

    def __init__(self, *, enabled=True, profile_name=None, activities=None,
                 record_shapes=None, profile_memory=None, output_dir=None, skip_first=None,
                 wait=None, warmup=None, active=None, repeat=None, with_stack=None,
                 with_flops=None, with_modules=None):
        self.enabled = bool(enabled) and bool(_path)
        self._steps = 0
        if self.enabled:
            _tell({"activities": activities, "record_shapes": record_shapes,
                   "profile_memory": profile_memory, "skip_first": skip_first, "wait": wait,
                   "warmup": warmup, "active": active, "repeat": repeat, "with_stack": with_stack,
                   "with_flops": with_flops, "with_modules": with_modules})

    def step(self):
        """A step ends here and the next one begins."""
        self._steps += 1
        if self.enabled:
            step()

    def __enter__(self):
        self._steps = 0
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None and not self._steps:
            self.step()

    def __call__(self, function):
        if not self.enabled:
            return function

        @wraps(function)
        def call(*args, **kwargs):
            result = function(*args, **kwargs)
            step()
            return result

        @wraps(function)
        async def call_async(*args, **kwargs):
            result = await function(*args, **kwargs)
            step()
            return result

        @wraps(function)
        def call_generator(*args, **kwargs):
            result = yield from function(*args, **kwargs)
            step()
            return result

        if _is_generator(function):
            return call_generator
        return call_async if _is_async(function) else call


# ---- IPython and Jupyter ----


def load_ipython_extension(shell):
    """%load_ext gtrace: there is %%gtrace from now on."""

    def magic(line, cell):
        """%%gtrace [NAME]: this cell is a range of that name ("cell") and a step of its own."""
        # A captured range has the steps of the program itself.
        captured = os.environ.get("GTRACE_CAPTURE", "").startswith("nvtx")
        mark = _nothing if captured else step
        mark()
        try:
            with range(line.strip() or "cell"):
                result = shell.run_cell(cell)
        finally:
            mark()
        _pass_on(result)

    shell.register_magic_function(magic, "cell", "gtrace")


def _pass_on(result):
    """Fail as the cell did, so that those below do not run. Why has been shown already."""
    error = result.error_in_exec
    if error is None and result.error_before_exec is not None:
        error = RuntimeError("the cell did not run")  # its SyntaxError would be shown again
    if error is not None:
        error._render_traceback_ = list
        raise error
