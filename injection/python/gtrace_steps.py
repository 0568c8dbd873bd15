"""The steps of frameworks, and Lightning's actions as ranges. gtrace_hook.py calls HOOKS with each
module that is imported. A function of it is wrapped, and marks a step when it is called.
"""

from functools import wraps
from threading import local

from gtrace_hook import FAILURES, Source, give_up, load


def _nothing(*args):
    pass


class _Marks(local):
    """The marks of one framework. Of calls within each other the outermost one counts, in each
    thread."""

    inside = False

    def __init__(self, source):
        self.source = source

    def wrap(self, owner, name, before=_nothing, after=_nothing):
        """Have before() called with the arguments, and after() with its result and the arguments,
        when owner's function returns. What goes wrong in them takes the wrapper away."""
        original = getattr(owner, name)
        broken = []

        def guard(function, *args):
            if broken:
                return None
            try:
                return function(*args)
            except FAILURES as error:
                broken.append(error)
                if vars(owner).get(name) is call:
                    setattr(owner, name, original)
                give_up("the hook in %s.%s" % (owner.__name__, name), error)

        @wraps(original)
        def call(*args, **kwargs):
            if self.inside:
                return original(*args, **kwargs)
            self.inside = True
            try:
                begun = guard(before, *args)
                result = original(*args, **kwargs)
            finally:
                self.inside = False
            guard(after, begun, *args)
            return result

        setattr(owner, name, call)

    def claim(self, *args):
        self.source.claim()

    def wrap_end(self, owner, name):
        """A call of this function is a step."""
        self.wrap(owner, name, self.claim, lambda begun, *args: self.source.mark())

    def wrap_counter(self, owner, name, count):
        """A call of this method is a step when count(object) changes in it."""

        def before(this, *args):
            self.source.claim()
            return count(this)

        def after(begun, this, *args):
            if count(this) != begun:
                self.source.mark()

        self.wrap(owner, name, before, after)

    def wrap_begin(self, owner, name, counts=lambda this, *args: True):
        """A call of this method begins a step. An object of the same class that works within it,
        such as the model that drafts tokens, is not the first one that was called."""
        from weakref import ref

        first = _nothing

        def before(this, *args):
            nonlocal first
            if not counts(this, *args):
                return
            if first() is None:
                first = ref(this)
            if first() is this:
                self.source.mark()

        self.wrap(owner, name, before)


# ---- training ----

_lightning = _Marks(Source("lightning"))
_deepspeed = _Marks(Source("deepspeed"))
_megatron = _Marks(Source("megatron"))


def _hook_transformers(module):
    """The Trainer tells its callbacks of steps after accumulation, that is of global steps."""
    marks = _Marks(Source("transformers"))
    marks.wrap(module.CallbackHandler, "on_train_begin", marks.claim)
    marks.wrap_end(module.CallbackHandler, "on_step_end")


def _hook_lightning(module):
    """A batch that ends with a step of optimizers, of any number of them, or has none to step."""

    def count(loop):
        trainer = loop.trainer
        return trainer.global_step if trainer.optimizers else loop.batch_progress.current.ready

    cls = getattr(module, "_TrainingEpochLoop", None) or module.TrainingEpochLoop
    _lightning.wrap_counter(cls, "advance", count)


def _hook_lightning_profiler(module):
    """Every action of Lightning is told to its profiler."""
    from contextlib import contextmanager

    gtrace_range = load("gtrace").range
    profile = module.Profiler.profile

    @contextmanager
    @wraps(profile)
    def profile_and_range(self, action_name):
        with gtrace_range(action_name), profile(self, action_name) as value:
            yield value

    module.Profiler.profile = profile_and_range


def _global_steps(engine):
    return engine.global_steps


def _hook_deepspeed(module):
    _deepspeed.wrap_counter(module.DeepSpeedEngine, "step", _global_steps)


def _hook_deepspeed_pipeline(module):
    _deepspeed.wrap_counter(module.PipelineEngine, "train_batch", _global_steps)


def _hook_megatron(module):
    # In its newer versions megatron.training is a package, which may take it from its module.
    function = vars(module).get("train_step")
    if function is not None and getattr(function, "__module__", None) == module.__name__:
        _megatron.wrap_end(module, "train_step")


def _hook_jax(module):
    _Marks(Source("jax")).wrap_end(module.StepTraceAnnotation, "__exit__")


# ---- inference ----


def _hook_diffusers(module):
    """Pipelines call their scheduler once for each denoising step. Every class has a step() of its
    own, and may call another one's."""
    marks = _Marks(Source("diffusers"))
    base = module.SchedulerMixin
    init_subclass = vars(base).get("__init_subclass__")

    def hook(cls):
        if "step" in vars(cls):
            marks.wrap_end(cls, "step")

    def hook_all(cls):
        hook(cls)
        for subclass in cls.__subclasses__():
            hook_all(subclass)

    def hook_new(cls, **kwargs):
        if init_subclass:
            init_subclass.__func__(cls, **kwargs)
        else:
            super(base, cls).__init_subclass__(**kwargs)
        try:
            hook(cls)
        except FAILURES as error:
            give_up("the hook in diffusers' " + cls.__name__, error)

    hook_all(base)
    base.__init_subclass__ = classmethod(hook_new)


def _has_work(runner, scheduler_output, *args):
    """vLLM also calls when there is nothing to compute."""
    return scheduler_output.total_num_scheduled_tokens != 0


def _hook_vllm(module):
    _Marks(Source("vllm")).wrap_begin(module.GPUModelRunner, "execute_model", _has_work)


def _hook_sglang(module):
    _Marks(Source("sglang")).wrap_begin(module.ModelRunner, "forward")


HOOKS = {
    "deepspeed.runtime.engine": _hook_deepspeed,
    "deepspeed.runtime.pipe.engine": _hook_deepspeed_pipeline,
    "diffusers.schedulers.scheduling_utils": _hook_diffusers,
    "jax._src.profiler": _hook_jax,
    "lightning.pytorch.loops.training_epoch_loop": _hook_lightning,
    "lightning.pytorch.profilers.profiler": _hook_lightning_profiler,
    "megatron.training": _hook_megatron,
    "megatron.training.training": _hook_megatron,
    "pytorch_lightning.loops.epoch.training_epoch_loop": _hook_lightning,
    "pytorch_lightning.loops.training_epoch_loop": _hook_lightning,
    "pytorch_lightning.profilers.profiler": _hook_lightning_profiler,
    "sglang.srt.model_executor.model_runner": _hook_sglang,
    "transformers.trainer_callback": _hook_transformers,
    "vllm.v1.worker.gpu.model_runner": _hook_vllm,
    "vllm.v1.worker.gpu_model_runner": _hook_vllm,
}
