"""What is done to torch: the end of each optimizer step is marked, gtrace steps aside while the
program's own torch.profiler uses the GPU, and the injection library gets to see torch's operators
and the rank in torch.distributed.
gtrace_hook.py calls HOOKS with each module of torch that is imported.
"""

import sys

from gtrace_hook import FAILURES, PATH, Injection, begin_stacks, give_up

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


_keys = {}  # by the id of an optimizer, and a weak reference to it
_free = []  # keys of those that are gone


def _new_key(optimizer):
    """By which the library tells optimizers apart: a step ends with the first one. Where that is
    gone, as in programs that replace their optimizers, the next new one goes on as it."""
    from weakref import ref

    number = id(optimizer)

    def is_gone(gone, keys=_keys, free=_free):
        free.append(keys.pop(number)[0])

    key = min(_free, default=len(_keys) + 1)
    try:
        _keys[number] = key, ref(optimizer, is_gone)
    except FAILURES:  # a class that has no room for one
        return number
    if key in _free:
        _free.remove(key)
    return key


def _post_hook(optimizer, args, kwargs):
    """Called when an Optimizer.step() has ended, in the form torch wants of such a hook. One within
    another, as that of a base class, is part of it."""
    caller = sys._getframe(1)
    outer = caller.f_back
    while outer is not None:
        if outer.f_code is caller.f_code:
            return
        outer = outer.f_back
    known = _keys.get(id(optimizer))
    _step(known[0] if known else _new_key(optimizer))


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


# ---- the rank ----


def _hook_distributed(module):
    """Processes of one's own, as of multiprocessing, have no rank from a launcher."""
    from functools import wraps

    init = module.init_process_group

    @wraps(init)
    def init_and_tell(*args, **kwargs):
        result = init(*args, **kwargs)
        try:
            from ctypes import CDLL

            CDLL(PATH).gtrace_inject_rank(module.get_rank(), module.get_world_size())
        except FAILURES as error:
            give_up("the hook in torch.distributed", error)
        return result

    module.init_process_group = init_and_tell


# ---- torch's operators ----


def _hook_torch(module):
    from ctypes import CDLL

    library = CDLL(PATH)
    library.gtrace_inject_torch(str(getattr(module, "__version__", "")).encode(errors="replace"))
    begin_stacks(module)
    wanted = library.gtrace_inject_ops_test()
    if wanted:
        try:
            # The observer is kept only if it sees this.
            module.empty(1, device="cpu")
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


def _is_worker():
    """Data loaders run operators, too: those, and other workers, wait for a step or the GPU."""
    process = sys.modules.get("multiprocessing.process")
    if process is None:
        return False
    current = process.current_process()
    # A spawned one learns of its parent only after the modules it needs.
    return (getattr(current, "_parent_pid", None) is not None  # parent_process() is 3.8's
            or getattr(current, "_inheriting", False))


HOOKS = {
    "torch": _hook_torch,
    "torch._dynamo.eval_frame": _hook_dynamo,
    "torch.autograd.profiler": _hook_autograd_profiler,
    "torch.distributed.distributed_c10d": _hook_distributed,
    "torch.optim.optimizer": _hook_optimizer,
    "torch.profiler.profiler": _hook_torch_profiler,
}
