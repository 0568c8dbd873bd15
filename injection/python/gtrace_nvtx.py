"""Torch's operators where the injection library cannot observe them: torch's own NVTX profiler makes
each a range, on the main thread and on those on which autograd works for it.
"""

import atexit
from functools import wraps
from threading import get_ident

from gtrace_hook import FAILURES, give_up

_gone = False  # for good
_profiler = None  # torch.autograd.profiler
_thread = None  # on which it is on
_depth = 0  # of record_function() on it, of those that began since
_due = False  # to be switched off when the outermost one ends


def set_up(profiler):
    """A thread can have one profiler: when the program turns to its own, ours goes. profiler is the
    module torch.autograd.profiler."""
    global _profiler
    _profiler = profiler
    for name in ("_prepare_profiler", "_enable_profiler"):
        original = getattr(profiler, name, None)
        if original:
            setattr(profiler, name, _after_ours(original))
    profiler.record_function.__enter__ = _deeper(profiler.record_function.__enter__)
    profiler.record_function.__exit__ = _back(profiler.record_function.__exit__)
    # Torch complains of one that is on when the thread ends.
    atexit.register(_end)


def _end():
    global _gone
    _gone = True
    if _thread:
        _off()


def _after_ours(original):
    @wraps(original)
    def call(*args, **kwargs):
        if _thread == get_ident():
            _off()
        return original(*args, **kwargs)

    return call


def _deeper(original):
    @wraps(original)
    def enter(self, *args):
        global _depth
        if _thread == get_ident():
            _depth += 1
            self._gtrace_thread = _thread
        return original(self, *args)

    return enter


def _back(original):
    @wraps(original)
    def leave(self, *args):
        global _depth
        began = self.__dict__.pop("_gtrace_thread", None)
        # The program's profiler came and went in it: torch complains unless ours is on again.
        alone = began == get_ident() and not _thread and _on()
        try:
            return original(self, *args)
        finally:
            if alone:
                _off()
            elif _depth and _thread == get_ident():
                _depth -= 1
                if _due and not _depth:
                    _off()

    return leave


def _on():
    """Is ours on now? Not where the program's own is, and for good where it cannot be had."""
    global _gone, _thread
    try:
        from torch import autograd

        if not _gone and not autograd._profiler_enabled():
            config = autograd.ProfilerConfig(autograd.ProfilerState.NVTX, False, False, False,
                                             False, False, _profiler._ExperimentalConfig())
            autograd._enable_profiler(config, set())
            _thread = get_ident()
    except FAILURES as error:
        _gone = True
        give_up("torch's NVTX profiler", error)
    return _thread == get_ident()


def _off():
    global _depth, _due, _gone, _thread
    _depth, _due, _thread = 0, False, None
    try:
        from torch import autograd

        autograd._disable_profiler()
    except FAILURES as error:
        _gone = True
        give_up("torch's NVTX profiler", error)


def recording(on):
    """On the main thread."""
    global _due
    # Torch complains of a range that has begun with the profiler and ends without.
    _due = bool(_thread and _depth and not on)
    if on and not _thread:
        _on()
    elif _thread and not on and not _due:
        _off()
