"""Torch's operators where the injection library cannot observe them: torch's own NVTX profiler makes
each a range, on the main thread and on those on which autograd works for it.
"""

import atexit
from functools import wraps
from threading import get_ident

from gtrace_hook import FAILURES, give_up

_gone = False  # for good
_thread = None  # on which it is on


def set_up(profiler):
    """A thread can have one profiler: when the program turns to its own, ours goes. profiler is the
    module torch.autograd.profiler."""
    for name in ("_prepare_profiler", "_enable_profiler"):
        original = getattr(profiler, name, None)
        if original:
            setattr(profiler, name, _after_ours(original))
    # Torch complains of one that is on when the thread ends.
    atexit.register(_end, profiler)


def _end(profiler):
    global _gone
    recording(profiler, False)
    _gone = True


def _after_ours(original):
    @wraps(original)
    def call(*args, **kwargs):
        if _thread == get_ident():
            recording(None, False)
        return original(*args, **kwargs)

    return call


def recording(profiler, on):
    """On the main thread."""
    global _gone, _thread
    from torch import autograd

    try:
        if on and not (_gone or _thread or autograd._profiler_enabled()):
            state = autograd.ProfilerState.NVTX
            config = autograd.ProfilerConfig(state, False, False, False, False, False,
                                             profiler._ExperimentalConfig())
            autograd._enable_profiler(config, set())
            _thread = get_ident()
        elif _thread and not on:
            _thread = None
            autograd._disable_profiler()
    except FAILURES as error:
        _gone = True
        give_up("torch's NVTX profiler", error)
