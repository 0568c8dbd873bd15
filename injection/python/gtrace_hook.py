"""What gtrace does inside a Python program: once torch is imported, it marks the end of each
optimizer step, and makes gtrace step aside while the program's own torch.profiler uses the GPU.
gtrace_steps.py has the steps of frameworks, gtrace_calls.py those of --step-call.

A program without any of them pays one dictionary look-up for each module it imports. Whatever goes
wrong here ends here: the hook that failed is gone, which is said in one line, and the program runs
as without us. Only a KeyboardInterrupt passes, because none but the user can have caused it.
"""

import os
import sys

_DOOR_PYTHON = 3  # enum gt_door in lib/wire.h

FAILURES = (Exception, SystemExit)

# Read now: the program may change its environment.
_path = os.environ.get("GTRACE_INJECTION")
_step_call = os.environ.get("GTRACE_STEP_CALL")
_with = set(os.environ.get("GTRACE_WITH", "").split(","))
_folder = os.path.dirname(__file__)


def warn(text):
    """A line for the user."""
    try:
        from ctypes import PyDLL, c_char_p

        function = PyDLL(_path).gtrace_inject_warn
        function.argtypes, function.restype = [c_char_p], None
        function(text.encode("utf-8", "replace"))
    except FAILURES:
        pass


def is_traced():
    """Has something started a session in this process?"""
    from ctypes import PyDLL

    return PyDLL(_path).gtrace_inject_start(0) == 1


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

        library = CDLL(_path)
        library.gtrace_inject_start.argtypes = [c_int]
        library.gtrace_inject_start.restype = c_int
        self.traced = (_is_main_interpreter()
                       and library.gtrace_inject_start(_DOOR_PYTHON) == 1)
        # These two wait for the control thread, so they release the GIL.
        self.step_aside = library.gtrace_inject_yield
        self.come_back = library.gtrace_inject_resume
        # A step waits only before a window, and not long: keeping the GIL is cheaper, and a
        # pointer is cheaper than an integer.
        library = PyDLL(_path)
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
            self._number = injection.source(self.name.encode()) if injection else 0
            self._mark = injection and injection.mark

    def mark(self):
        self.marked = True
        self.claim()
        if self._number:
            self._mark(self._number)


# ---- steps ----


def _nothing(key):
    pass


def _first_step(key):
    global _step
    injection = Injection.open()
    # The hook below stays set in any case, as torch is iterating over its hooks now.
    _step = injection.step if injection else _nothing
    _step(key)


_step = _first_step


def _post_hook(optimizer, args, kwargs):
    """Called when an Optimizer.step() has ended, in the form torch wants of such a hook."""
    _step(id(optimizer))


def _hook_optimizer(module):
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register:  # torch 2.0
        register(_post_hook)
    else:
        _wrap_classes(module.Optimizer)


_wrapped_steps = set()


def _wrap_step(cls):
    from functools import wraps

    step = cls.step

    @wraps(step)
    def step_and_mark(self, *args, **kwargs):
        result = step(self, *args, **kwargs)
        _post_hook(self, args, kwargs)
        return result

    _wrapped_steps.add(step_and_mark)
    cls.step = step_and_mark


def _hooked_classes(optimizer_class):
    """The classes whose step() torch says it has wrapped, and we have not."""
    for cls in optimizer_class.__subclasses__():
        step = vars(cls).get("step")
        if getattr(step, "hooked", False) and step not in _wrapped_steps:
            yield cls
        yield from _hooked_classes(cls)


def _wrap_classes(optimizer_class):
    """Torch before 2.0 wraps step() of each class when its first instance is made; so do we."""
    from functools import wraps

    wrap_class = optimizer_class._hook_for_profile

    @wraps(wrap_class)
    def hook_for_profile(self):
        wrap_class(self)
        if type(self).step not in _wrapped_steps:
            _wrap_step(type(self))

    for cls in list(_hooked_classes(optimizer_class)):
        _wrap_step(cls)
    optimizer_class._hook_for_profile = hook_for_profile


def _hook_dynamo(module):
    """The first torch.compile() of torch 2.0 to 2.3 takes the wrapper that calls the hooks off
    torch's optimizers, but leaves them marked as having it."""
    optimizer_class = sys.modules["torch.optim.optimizer"].Optimizer
    wrapper = optimizer_class.profile_hook_step.__code__.co_consts
    patch = module.TorchPatcher.patch

    def wrap_unwrapped():
        for cls in list(_hooked_classes(optimizer_class)):
            if cls.step.__code__ not in wrapper:
                _wrap_step(cls)

    def patch_and_wrap():
        result = patch()
        try:
            wrap_unwrapped()
        except FAILURES as error:
            module.TorchPatcher.patch = patch
            give_up("the hook in torch._dynamo.eval_frame", error)
        return result

    wrap_unwrapped()
    module.TorchPatcher.patch = staticmethod(patch_and_wrap)


# ---- the program's own profiler ----


def _uses_gpu(profiler):
    """Will Kineto, or its successor, turn to CUPTI for this profiler?"""
    activities = getattr(profiler, "kineto_activities", None)  # torch.autograd.profiler
    if activities is None:
        activities = getattr(profiler, "activities", None)  # torch.profiler
    return activities is None or any(activity.name == "CUDA" for activity in activities)


def _step_aside(profiler):
    """True when this call made gtrace step aside, and not an earlier one for this profiler."""
    try:
        if not profiler.__dict__.get("_gtrace_aside") and _uses_gpu(profiler):
            injection = Injection.open()
            if injection:
                profiler._gtrace_aside = True
                injection.step_aside()
                return True
    except FAILURES as error:
        _stay(error)
    return False


def _stay(error):
    global _step_aside
    _step_aside = _nothing
    give_up("the hook in torch.profiler", error)


def _come_back(profiler):
    try:
        if profiler.__dict__.pop("_gtrace_aside", False):
            Injection.open().come_back()
    except FAILURES as error:
        _stay(error)


def _wrap_profiler(cls, begin, end):
    """Before any of the methods begin, gtrace steps aside; after end it comes back."""
    from functools import wraps

    def before(method):
        @wraps(method)
        def call(self, *args, **kwargs):
            aside = _step_aside(self)
            try:
                return method(self, *args, **kwargs)
            except BaseException:
                if aside:
                    _come_back(self)
                raise

        return call

    def after(method):
        @wraps(method)
        def call(self, *args, **kwargs):
            try:
                return method(self, *args, **kwargs)
            finally:
                _come_back(self)

        return call

    for name in begin:
        setattr(cls, name, before(getattr(cls, name)))
    setattr(cls, end, after(getattr(cls, end)))


def _hook_autograd_profiler(module):
    cls = module.profile
    if hasattr(cls, "_prepare_trace"):  # torch 1.9: __enter__ calls them too
        begin = ["_prepare_trace", "_start_trace"]
    else:
        begin = ["__enter__", "_prepare_kineto_trace", "_start_kineto_trace"]
    _wrap_profiler(cls, begin, "__exit__")


def _hook_torch_profiler(module):
    cls = getattr(module, "_KinetoProfile", None)
    if cls and hasattr(cls, "prepare_trace"):
        # Since 2.13 it may use CUPTI without Kineto, before torch.autograd.profiler knows.
        _wrap_profiler(cls, ["prepare_trace", "start_trace"], "stop_trace")


# ---- torch's operators ----


def _hook_torch(module):
    from ctypes import CDLL

    library = CDLL(_path)
    if _with & {"stack", "modules"}:
        try:
            load("gtrace_stacks").begin(_path, module)
        except FAILURES as error:
            give_up("the hook for Python stacks", error)
    wanted = library.gtrace_inject_ops_test()
    if wanted:
        try:
            # The observer is kept only if it sees this.
            module.empty(0, device="cpu")
            if wanted == 2:
                _show_inputs(module)
        except FAILURES:
            pass  # then it is the library that says so
        finally:
            library.gtrace_inject_ops_begin(not _is_worker())


def _show_inputs(torch):
    """Operators whose inputs the injection knows (torch_inputs.c): it records those of others only
    if it reads these right."""
    tensor = torch.empty((2, 3, 5), dtype=torch.float64, device="cpu")
    tensor = tensor.as_strided((3, 2), (1, 7)).expand((3, 2), implicit=True)
    torch.broadcast_tensors(tensor, tensor)
    torch.scalar_tensor(1.5 - 2.5j, dtype=torch.complex128, device="cpu")
    torch.scalar_tensor(1.5, dtype=torch.float64, device="cpu")
    torch.empty((1, 2, 1, 3, 1, 5), dtype=torch.float32, device="cpu").detach()
    torch.empty((2, 3), dtype=torch.float32, device="cpu", layout=torch.sparse_coo).detach()


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
        _nvtx.recording(profiler, on)


def _is_worker():
    """Data loaders run operators, too: those, and other workers, wait for a step or the GPU."""
    process = sys.modules.get("multiprocessing.process")
    if process is None:
        return False
    current = process.current_process()
    # A spawned one learns of its parent only after the modules it needs.
    return (getattr(current, "_parent_pid", None) is not None  # parent_process() is 3.8's
            or getattr(current, "_inheriting", False))


# ---- more hooks, in files of their own ----


def load(name):
    """The module beside this one, which need not be on the path."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, os.path.join(_folder, name + ".py"))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_steps = None


def _hook_framework(module):
    global _steps
    if _steps is None:
        _steps = load("gtrace_steps")
    _steps.HOOKS[module.__name__](module)


def _hook_call():
    try:
        load("gtrace_calls").watch(_step_call)
    except FAILURES as error:
        give_up("--step-call", error)


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
    **dict.fromkeys(FRAMEWORKS, _hook_framework),
    "torch": _hook_torch,
    "torch.optim.optimizer": _hook_optimizer,
    "torch._dynamo.eval_frame": _hook_dynamo,
    "torch.autograd.profiler": _hook_autograd_profiler,
    "torch.profiler.profiler": _hook_torch_profiler,
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


def _find_own(target):
    """The module that users import; a program's own module of that name comes first."""
    from importlib.util import spec_from_file_location

    others = [entry for entry in sys.path if entry != _folder]
    for finder in sys.meta_path:
        if finder is not _Finder and hasattr(finder, "find_spec"):
            spec = finder.find_spec("gtrace", others, target)
            if spec is not None:
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
    if not _path:
        return settled
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
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
