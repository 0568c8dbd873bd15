"""--step-call MODULE:QUALNAME: a Python function whose calls are the steps of the program.

From Python 3.12 on sys.monitoring tells which functions return, by whatever name they are called;
every other function is told once. Before, the name is made to stand for a function that calls the
program's and marks the step. Nothing here uses sys.settrace(), which is the debugger's.
"""

import atexit
import sys
from functools import wraps
from opcode import opname
from types import FunctionType, MethodType

from gtrace_hook import FAILURES, Source, give_up, is_traced, wait_for, warn

_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200  # CO_* of a code object
_TOOL_IDS = (3, 4, 5, 2, 1, 0)  # those without a meaning in sys.monitoring first

# How many calls a program makes before its function is defined: importing torch takes a million.
_CALLS_MAX = 20 * 1000 * 1000

_source = Source("call")
_on_call = None  # what waits, by sys.setprofile(), for a function of the main program
_unfit = None  # the type of what has the name, where no function can stand in its place


def watch(step_call):
    module_name, _, qualname = step_call.rpartition(":")
    atexit.register(_report, step_call, module_name, qualname)
    if hasattr(sys, "monitoring"):
        _monitor(module_name, qualname)
    elif module_name == "__main__":
        _wait_for_main(qualname)
    else:
        wait_for(module_name, lambda module: _wrap(module, qualname))


def _resolve(owner, qualname):
    for name in qualname.split("."):
        owner = getattr(owner, name)
    return owner


# ---- from 3.12 on ----


def _monitor(module_name, qualname):
    monitoring = sys.monitoring
    disable = monitoring.DISABLE
    returned = monitoring.events.PY_RETURN
    get_frame = sys._getframe

    def on_return(code, offset, value):
        try:
            if (code.co_qualname != qualname
                    or get_frame(1).f_globals.get("__name__") != module_name):
                return disable
            _source.mark()
        except FAILURES as error:
            stop()
            give_up("--step-call", error)
        return None

    def stop():
        monitoring.set_events(tool, monitoring.events.NO_EVENTS)
        monitoring.free_tool_id(tool)

    free = [number for number in _TOOL_IDS if monitoring.get_tool(number) is None]
    if not free:
        raise RuntimeError("other tools have all places of sys.monitoring")
    tool = free[0]
    monitoring.use_tool_id(tool, "gtrace")
    monitoring.register_callback(tool, returned, on_return)
    monitoring.set_events(tool, returned)


# ---- before 3.12 ----


def _can_stand_for(found, in_class):
    """Can a function stand in the place of found? Not of a property, a class, a module of PyTorch;
    but of what functools.lru_cache() and jax.jit() make."""
    if isinstance(found, FunctionType):
        return True
    if not callable(found) or isinstance(found, type):
        return False
    is_object = isinstance(type(found).__call__, FunctionType)
    binds = hasattr(type(found), "__get__") and not isinstance(found, MethodType)
    return not is_object and (binds or not in_class)


def _kind_of(function):
    return getattr(getattr(function, "__code__", None), "co_flags", 0)


def _mark():
    try:
        _source.mark()
    except FAILURES as error:
        give_up("--step-call", error)


def _calling(function):
    """A function of the same kind, since programs ask for that; it marks when function has
    returned, as sys.monitoring tells it."""

    def call(*args, **kwargs):
        result = function(*args, **kwargs)
        _mark()
        return result

    def call_generator(*args, **kwargs):
        result = yield from function(*args, **kwargs)
        _mark()
        return result

    async def call_coroutine(*args, **kwargs):
        result = await function(*args, **kwargs)
        _mark()
        return result

    kind = _kind_of(function)
    return call_coroutine if kind & _COROUTINE else call_generator if kind & _GENERATOR else call


def _wrap(module, qualname):
    global _unfit
    owner_name, _, name = qualname.rpartition(".")
    try:
        owner = _resolve(module, owner_name) if owner_name else module
        found = next(vars(cls)[name] for cls in getattr(owner, "__mro__", [owner])
                     if name in vars(cls))
    except (AttributeError, StopIteration):
        return  # _report() says so
    kind = type(found)
    bound = kind in (staticmethod, classmethod)
    function = found.__func__ if bound else found
    if not _can_stand_for(function, isinstance(owner, type) and not bound):
        _unfit = type(function).__name__
        return
    if _kind_of(function) & _ASYNC_GENERATOR:
        _unfit = "generator that awaits"
        return

    call = wraps(function)(_calling(function))
    for attribute in set(dir(function)).difference(dir(call)):
        setattr(call, attribute, getattr(function, attribute))
    setattr(owner, name, kind(call) if bound else call)


def _is_code_of(code, function):
    for _ in range(100):
        if getattr(function, "__code__", None) is code:
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def _wait_for_main(qualname):
    """Nobody is told when the main program defines a function: look whenever one is called."""
    from sys import getprofile, setprofile

    first = qualname.partition(".")[0]
    main = vars(sys.modules["__main__"])
    calls = 0
    running = None  # the frame of a call that came before the function was wrapped

    def stop():
        global _on_call
        _on_call = None
        if getprofile() is on_call:
            setprofile(None)

    def look(frame):
        nonlocal running
        try:
            function = _resolve(sys.modules["__main__"], qualname)
        except AttributeError:
            return
        if _is_code_of(frame.f_code, function):
            running = frame
        else:
            stop()
        _wrap(sys.modules["__main__"], qualname)

    def leave(frame):
        last, *after = (opname[code] for code in frame.f_code.co_code[frame.f_lasti::2][:2])
        # A generator, or a coroutine, goes on; it stands before a YIELD_FROM.
        if last.startswith("YIELD") or after == ["YIELD_FROM"]:
            return
        stop()
        if last == "RETURN_VALUE":  # and no exception
            _source.mark()

    def on_call(frame, event, arg):
        nonlocal calls
        try:
            if running is not None:
                if frame is running and event == "return":
                    leave(frame)
            elif event == "call":
                calls += 1
                if first in main:
                    look(frame)
                elif calls == _CALLS_MAX:
                    stop()
        except FAILURES as error:
            stop()
            give_up("--step-call", error)

    global _on_call
    _on_call = on_call
    if getprofile() is None:
        setprofile(on_call)


# ---- the end ----


def _why_not(module_name, qualname):
    """Why no call was seen, and whether this process was to make one at all."""
    module = sys.modules.get(module_name)
    if module is None:
        return "%s was never imported" % module_name, False
    try:
        function = _resolve(module, qualname)
    except AttributeError:
        return "%s has no %s" % (module_name, qualname), module_name != "__main__"
    if _unfit:
        return "it is no function, but a %s" % _unfit, True
    known_as = (getattr(function, "__module__", module_name),
                getattr(function, "__qualname__", qualname))
    if known_as != (module_name, qualname):
        return "it is %s:%s" % known_as, True
    if _on_call and sys.getprofile() not in (None, _on_call):
        return "the program has a profiler by sys.setprofile()", True
    return "no call of it returned", False


def _report(step_call, module_name, qualname):
    if _source.marked:
        return
    try:
        why, expected = _why_not(module_name, qualname)
        if expected or is_traced():
            warn("no step by --step-call %s: %s" % (step_call, why))
    except FAILURES:
        pass
