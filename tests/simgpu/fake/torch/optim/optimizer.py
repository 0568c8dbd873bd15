"""Optimizer.step() and its global hooks, with the semantics of torch.optim.optimizer."""

import functools
from collections import OrderedDict

_global_optimizer_post_hooks = OrderedDict()


class _Handle:
    def __init__(self, hooks):
        self.hooks = hooks
        self.id = object()

    def remove(self):
        self.hooks.pop(self.id, None)


def register_optimizer_step_post_hook(hook):
    handle = _Handle(_global_optimizer_post_hooks)
    _global_optimizer_post_hooks[handle.id] = hook
    return handle


def _profile_hook_step(step):
    @functools.wraps(step)
    def wrapper(self, *args, **kwargs):
        result = step(self, *args, **kwargs)
        for hook in _global_optimizer_post_hooks.values():
            hook(self, args, kwargs)
        return result

    return wrapper


class Optimizer:
    """update is what one step does."""

    def __init__(self, update):
        self.update = update

    @_profile_hook_step
    def step(self):
        self.update()
