"""What gtrace does inside a Python program: when the program imports one of the modules below, our
file that knows it is loaded and told. gtrace_torch.py is for torch, gtrace_steps.py for the steps
of frameworks; gtrace_calls.py has those of --step-call.

A program without any of them pays one dictionary look-up for each module it imports. Whatever goes
wrong here ends here: the hook that failed is gone, which is said in one line, and the program runs
as without us. Only a KeyboardInterrupt passes, because none but the user can have caused it.
"""

import os
import sys

_DOOR_PYTHON = 3  # enum gt_door in lib/wire.h

FAILURES = (Exception, SystemExit)

# Read now: the program may change its environment.
PATH = os.environ.get("GTRACE_INJECTION")
_recorded = set(os.environ.get("GTRACE_WITH", "").split(","))
_long_calls = "GTRACE_BACKTRACE" in os.environ
_step_call = os.environ.get("GTRACE_STEP_CALL")
_folder = os.path.dirname(__file__)


def warn(text):
    """A line for the user."""
    try:
        from ctypes import PyDLL, c_char_p

        function = PyDLL(PATH).gtrace_inject_warn
        function.argtypes, function.restype = [c_char_p], None
        function(text.encode("utf-8", "replace"))
    except FAILURES:
        pass


def is_traced():
    """Has something started a session in this process?"""
    from ctypes import PyDLL

    return PyDLL(PATH).gtrace_inject_start(0) == 1


def give_up(what, error):
    """That a hook is gone."""
    warn("%s failed and is gone (%s: %s)" % (what, type(error).__name__, error))


class Injection:
    """The injection library, opened by the first step or profiler: a program that imports torch
    and does neither (a launcher, a data loader) gets no session from us."""

    _opened = None

    def __init__(self):
        # Imported late, as programs without torch need no ctypes.
        from ctypes import CDLL, PyDLL, c_char_p, c_int, c_void_p

        library = CDLL(PATH)
        library.gtrace_inject_start.argtypes = [c_int]
        library.gtrace_inject_start.restype = c_int
        self.traced = (_is_main_interpreter()
                       and library.gtrace_inject_start(_DOOR_PYTHON) == 1)
        # These two wait for the control thread, so they release the GIL.
        self.step_aside = library.gtrace_inject_yield
        self.come_back = library.gtrace_inject_resume
        # A step waits only before a window, and not long: keeping the GIL is cheaper, and a
        # pointer is cheaper than an integer.
        library = PyDLL(PATH)
        self.step = library.gtrace_inject_optimizer_step
        self.step.argtypes = [c_void_p]
        self.source = library.gtrace_inject_source
        self.source.argtypes = [c_char_p]
        self.mark = library.gtrace_inject_mark
        for function in (self.step_aside, self.come_back, self.step, self.mark):
            function.restype = None

    @classmethod
    def open(cls):
        """The one instance; None when this process is not traced."""
        if cls._opened is None:
            try:
                injection = cls()
                cls._opened = injection.traced and injection
            except FAILURES as error:
                cls._opened = False
                give_up("the hook for Python", error)
        return cls._opened or None


def _is_main_interpreter():
    """Others are left alone."""
    from ctypes import c_void_p, pythonapi

    own = (getattr(pythonapi, "PyInterpreterState_Get", None)
           or getattr(pythonapi, "_PyInterpreterState_Get", None))  # 3.8
    main = getattr(pythonapi, "PyInterpreterState_Main", None)
    if not own or not main:
        return True
    own.restype = main.restype = c_void_p
    return own() == main()


class Source:
    """Marks of one source; the first one opens the session."""

    def __init__(self, name):  # of GT_STEP_SOURCES in lib/wire.h
        self.name = name
        self.marked = False
        self._number = None

    def claim(self):
        """From now on the marks of lesser sources do not count."""
        if self._number is None:
            injection = Injection.open()
            self._mark = injection and injection.mark  # first: another thread may look already
            self._number = injection.source(self.name.encode()) if injection else 0

    def mark(self):
        self.marked = True
        self.claim()
        if self._number:
            self._mark(self._number)


# ---- more hooks, in files of their own ----


def load(name):
    """The module beside this one, which need not be on the path."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, os.path.join(_folder, name + ".py"))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_loaded = {}


def _hook_in(file):
    """What sets the hooks of that file, which is loaded with the first module that it is for."""

    def hook(module):
        hooks = _loaded.get(file) or _loaded.setdefault(file, load(file))
        hooks.HOOKS[module.__name__](module)

    return hook


_nvtx = None


def recording(on):
    """Called by the injection where it cannot observe torch's operators: they are to be ranges from
    now on, or not."""
    global _nvtx
    profiler = sys.modules.get("torch.autograd.profiler")
    if profiler:
        if not _nvtx:
            _nvtx = load("gtrace_nvtx")
            _nvtx.set_up(profiler)
        _nvtx.recording(on)


def begin_stacks(torch=None):
    """Of CUDA calls, also before torch is there, and of its operators."""
    of_operators = bool(torch and _recorded & {"stack", "modules"})
    try:
        if (of_operators or _long_calls) and _is_main_interpreter():
            load("gtrace_stacks").begin(PATH, torch, of_operators)
    except FAILURES as error:
        give_up("the hook for Python stacks", error)


def _hook_call():
    try:
        load("gtrace_calls").watch(_step_call)
    except FAILURES as error:
        give_up("--step-call", error)


TORCH = (
    "torch",
    "torch._dynamo.eval_frame",
    "torch.autograd.profiler",
    "torch.distributed.distributed_c10d",
    "torch.optim.optimizer",
    "torch.profiler.profiler",
)

FRAMEWORKS = (
    "deepspeed.runtime.engine",
    "deepspeed.runtime.pipe.engine",
    "diffusers.schedulers.scheduling_utils",
    "jax._src.profiler",
    "lightning.pytorch.loops.training_epoch_loop",
    "lightning.pytorch.profilers.profiler",
    "megatron.training",
    "megatron.training.training",
    "pytorch_lightning.loops.epoch.training_epoch_loop",
    "pytorch_lightning.loops.training_epoch_loop",
    "pytorch_lightning.profilers.profiler",
    "sglang.srt.model_executor.model_runner",
    "transformers.trainer_callback",
    "vllm.v1.worker.gpu.model_runner",
    "vllm.v1.worker.gpu_model_runner",
)


# ---- when to set them ----

_waiting = {
    **dict.fromkeys(TORCH, _hook_in("gtrace_torch")),
    **dict.fromkeys(FRAMEWORKS, _hook_in("gtrace_steps")),
}


def wait_for(name, hook):
    """Have hook called with the module of that name, once that is imported."""
    other = _waiting.get(name)

    def both(module):
        try:
            hook(module)
        finally:
            other(module)

    _waiting[name] = both if other else hook


def _set_hook(name, module):
    hook = _waiting.pop(name, None)
    if hook is None:  # another thread, or an import within this one, was here
        return
    if "t" in getattr(sys, "abiflags", ""):
        # Without the GIL nothing orders what hooks write, and torch's observer is untested.
        _waiting.clear()
        warn("steps and operators of Python are not traced: this is a free-threaded build")
        return
    try:
        hook(module)
    except FAILURES as error:
        give_up("the hook in " + name, error)


def _is_folder(spec):
    """A folder that only has the name, which to Python is a package, too."""
    return spec.loader is None and not any(
        name.endswith(".py") for folder in spec.submodule_search_locations or ()
        if os.path.isdir(folder) for name in os.listdir(folder))


def _find_own(target):
    """The module that users import; a program's own module of that name comes first."""
    from importlib.util import spec_from_file_location

    others = [entry for entry in sys.path if entry != _folder]
    for finder in sys.meta_path:
        if finder is not _Finder and hasattr(finder, "find_spec"):
            spec = finder.find_spec("gtrace", others, target)
            if spec is not None and not _is_folder(spec):
                return spec
    return spec_from_file_location("gtrace", os.path.join(_folder, "gtrace.py"))


class _Finder:
    """Finds only gtrace: it lets the others find, and has the loader call us back."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "gtrace":
            return _find_own(target)
        if name not in _waiting:
            return None
        try:
            for finder in sys.meta_path:
                if finder is not cls and hasattr(finder, "find_spec"):
                    spec = finder.find_spec(name, path, target)
                    if spec is not None:
                        cls._watch(name, spec.loader)
                        return spec
        except FAILURES as error:
            _waiting.pop(name, None)
            give_up("the hook in " + name, error)
        return None

    @staticmethod
    def _watch(name, loader):
        original = loader.exec_module

        def exec_module(module):
            original(module)
            if module.__name__ == name:
                loader.__dict__.pop("exec_module", None)
                _set_hook(name, module)

        # On the instance, mostly of this one module: its type, as others see it, stays.
        loader.exec_module = exec_module


def install():
    """Hook what is imported already, wait for the rest. False: call again, as a module is just
    being imported, too late to wait for it."""
    settled = True
    if not PATH:
        return settled
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
        begin_stacks()
        if _step_call:
            _hook_call()
    for name in list(_waiting):
        module = sys.modules.get(name)
        if module is None:
            continue
        if getattr(getattr(module, "__spec__", None), "_initializing", False):
            settled = False
        else:
            _set_hook(name, module)
    return settled
