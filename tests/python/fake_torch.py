"""A torch of three modules that keeps the order of things: its calls stand in the same log as
those of the injection. Three forms of it: 2 has global optimizer hooks, 1.9 and 1.8 do not."""

LOG = '''
import ctypes, os
if "GTRACE_INJECTION" in os.environ:
    log = lambda what: ctypes.CDLL(os.environ["GTRACE_INJECTION"]).fake_log(what.encode())
else:
    log = lambda what: None
'''

OPTIMIZER_2 = '''
from collections import OrderedDict
_hooks = OrderedDict()
def register_optimizer_step_post_hook(hook):
    _hooks[len(_hooks)] = hook
class Optimizer:
    def step(self):
        for hook in _hooks.values():
            hook(self, (), {})
class SGD(Optimizer):
    pass
class Adam(Optimizer):
    pass
'''

OPTIMIZER_1 = '''
import functools
class Optimizer:
    def __init__(self):
        self._hook_for_profile()
    def _hook_for_profile(self):
        def profile_hook_step(func):
            @functools.wraps(func)
            def wrapper(*args, **kwargs):
                return func(*args, **kwargs)
            return wrapper
        if not getattr(self.__class__.step, "hooked", None):
            self.__class__.step = profile_hook_step(self.__class__.step)
            self.__class__.step.hooked = True
class SGD(Optimizer):
    def step(self):
        return "sgd"
class Adam(Optimizer):
    def step(self, closure=None):
        return closure() if closure else "adam"
'''

ACTIVITIES = '''
from enum import Enum
from torch._log import log
ProfilerActivity = Enum("ProfilerActivity", "CPU CUDA")
fail = None
def do(what):
    if fail == what:
        raise ValueError(what)
    log(what)
'''

PROFILER_1_9 = ACTIVITIES + '''
class profile:
    def __init__(self, enabled=True, use_cuda=True):
        self.enabled = enabled
        self.kineto_activities = {ProfilerActivity.CPU}
        if use_cuda:
            self.kineto_activities.add(ProfilerActivity.CUDA)
    def __enter__(self):
        if not self.enabled:
            return
        self._prepare_trace()
        self._start_trace()
        return self
    def _prepare_trace(self):
        do("prepare")
    def _start_trace(self):
        do("enable")
    def __exit__(self, *exc):
        if not self.enabled:
            return
        do("disable")
        return False
'''

PROFILER_1_8 = PROFILER_1_9.replace('_prepare_trace', '_prepare_kineto_trace').replace(
    '_start_trace', '_start_kineto_trace').replace(
    '''        self._prepare_kineto_trace()
        self._start_kineto_trace()
''', '''        do("prepare")
        do("enable")
''')

# torch.profiler: with a schedule it prepares, starts and stops again and again.
KINETO = '''
from torch.autograd import profiler as prof
class _KinetoProfile:
    def __init__(self, own_cupti=False, use_cuda=True):
        self.own_cupti = own_cupti
        self.activities = {prof.ProfilerActivity.CPU}
        if use_cuda:
            self.activities.add(prof.ProfilerActivity.CUDA)
    def prepare_trace(self):
        if self.own_cupti:
            prof.do("own prepare")
        self.profiler = prof.profile(use_cuda=not self.own_cupti)
        self.profiler._prepare_trace()
    def start_trace(self):
        self.profiler._start_trace()
    def stop_trace(self):
        self.profiler.__exit__(None, None, None)
        if self.own_cupti:
            prof.do("own stop")
'''


def write(place, version, folder='lib'):
    """Returns the directory to put on the path."""
    new = version == '2'
    for name, text in {
        '__init__': f'from torch import optim, autograd\n'
                    f'{"from torch import profiler" if new else ""}\n',
        '_log': LOG,
        'optim/__init__': 'from torch.optim.optimizer import SGD, Adam, Optimizer\n',
        'optim/optimizer': OPTIMIZER_2 if new else OPTIMIZER_1,
        'autograd/__init__': 'from torch.autograd import profiler\n',
        'autograd/profiler': PROFILER_1_8 if version == '1.8' else PROFILER_1_9,
        'profiler/__init__': 'from torch.profiler.profiler import _KinetoProfile\n',
        'profiler/profiler': KINETO,
    }.items():
        place.write(f'{folder}/torch/{name}.py', text)
    return f'{place.path}/{folder}'
