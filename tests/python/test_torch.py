#!/usr/bin/env python3
"""The Python hook in real torch, of any version.

usage: test_torch.py BUILD [PYTHON...]

Every PYTHON (this one, that of 'make torch', and those of GTRACE_TEST_TORCH, separated by colons) that has torch is
tried. It needs no GPU: the profiler is made to look as if it used one.
"""

import os
import sys

from harness import HERE, Hook, Place, Skip, case, equal, main, run

START = '''
import ctypes, os, sys, warnings
warnings.simplefilter("ignore")
import torch
log = lambda what: ctypes.CDLL(os.environ["GTRACE_INJECTION"]).fake_log(what.encode())
model = torch.nn.Linear(4, 4)
sgd, adam = (kind(model.parameters(), lr=0.1) for kind in (torch.optim.SGD, torch.optim.Adam))
def train(steps, *optimizers, model=model):
    for step in range(steps):
        for optimizer in optimizers:
            optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
'''
AS_ON_A_GPU = '''
sys.modules["gtrace_hook"]._loaded["gtrace_torch"]._uses_gpu = lambda profiler: True
'''


def each_run(hook, place, code, flags=(), version=(1,)):
    """Run code in every torch from version on; yields the version and what it did."""
    torches = [(python, torch) for python, torch in hook.torches
               if tuple(int(n) for n in torch.split('.')[:2]) >= version]
    if not torches:
        raise Skip('no torch of that version')
    script = place.write('script.py', START + code)
    for python, torch in torches:
        done = hook.run(place, *flags, script, python=python)
        if done.status:
            raise AssertionError(f'torch {torch}: {done.err}')
        equal((torch, done.out), (torch, ''))
        yield torch, done


def each(hook, place, code, calls, **how):
    """In every torch, code makes these calls."""
    for torch, done in each_run(hook, place, code, **how):
        equal((torch, [call for call in done.calls if call != 'settled']), (torch, calls))


@case
def steps(hook):
    with Place() as place:
        each(hook, place, 'train(3, sgd, adam)', ['start'] + 6 * ['optimizer'])


@case
def steps_of_ones_own_optimizer(hook):
    with Place() as place:
        each(hook, place, '''
class Mine(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})
    def step(self, closure=None):
        return 7
class Derived(torch.optim.AdamW):
    pass
train(2, Mine(model.parameters()), Derived(model.parameters()))
assert Mine(model.parameters()).step() == 7
''', ['start'] + 5 * ['optimizer'])


@case
def a_step_that_calls_another_one_is_one(hook):
    with Place() as place:
        each(hook, place, '''
class Derived(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)
class Failing(Derived):
    def step(self, closure=None):
        super().step(closure)
        raise KeyError
train(2, Derived(model.parameters(), lr=0.1))
try:
    train(1, Failing(model.parameters(), lr=0.1))
except KeyError:
    train(1, sgd)
''', ['start'] + 3 * ['optimizer'])


@case
def steps_under_a_scheduler_and_after_pickling(hook):
    with Place() as place:
        each(hook, place, '''
import copy
schedule = torch.optim.lr_scheduler.StepLR(sgd, 1)
train(1, sgd)
schedule.step()
train(1, copy.deepcopy(adam))
''', ['start'] + 2 * ['optimizer'])


@case
def steps_survive_torch_compile(hook):
    with Place() as place:
        each(hook, place, '''
train(1, sgd, adam)
log("compile")
compiled = torch.compile(model, backend="eager")
train(1, sgd, adam, model=compiled)
log("new")
train(1, torch.optim.RMSprop(model.parameters()), model=compiled)
log("compiled")
step = torch.compile(adam.step, backend="eager")
step()
step()
''', ['start', 'optimizer', 'optimizer', 'compile', 'optimizer', 'optimizer', 'new', 'optimizer',
      'compiled', 'optimizer', 'optimizer'], version=(2,))


ONE = ['yield', 'in', 'resume']


@case
def autograd_profiler(hook):
    with Place() as place:
        each(hook, place, AS_ON_A_GPU + '''
for i in range(2):
    with torch.autograd.profiler.profile() as one:
        log("in")
        train(1)
assert len(one.function_events) > 0
try:
    with torch.autograd.profiler.profile():
        log("in")
        raise KeyError
except KeyError:
    pass
with torch.autograd.profiler.profile(enabled=False):
    log("off")
''', ['start', *ONE, *ONE, *ONE, 'off'])


@case
def profiler_of_the_cpu(hook):
    with Place() as place:
        each(hook, place, '''
with torch.autograd.profiler.profile():
    log("in")
''', ['in'])


@case
def profiler_with_a_schedule(hook):
    with Place() as place:
        for torch, done in each_run(hook, place, AS_ON_A_GPU + '''
from torch.profiler import profile, schedule, ProfilerActivity
with profile(activities=[ProfilerActivity.CPU],
             schedule=schedule(wait=1, warmup=1, active=1, repeat=2)) as prof:
    for step in range(8):
        train(1)
        log("step")
        prof.step()
'''):
            depth, aside = 0, []
            for call in done.calls:
                depth += {'yield': 1, 'resume': -1}.get(call, 0)
                if call == 'step':
                    aside.append(depth > 0)
            equal((torch, depth, aside),
                  (torch, 0, 2 * [False, True, True] + 2 * [False]))


@case
def profilers_that_nest(hook):
    """Torch refuses one or the other; however it ends, we are back."""
    with Place() as place:
        for torch, done in each_run(hook, place, AS_ON_A_GPU + '''
try:
    with torch.autograd.profiler.profile():
        try:
            with torch.autograd.profiler.profile():
                pass
        except RuntimeError:
            pass
        log("inner")
except RuntimeError:
    pass
log("outer")
'''):
            depth = 0
            for call in done.calls:
                depth += {'yield': 1, 'resume': -1}.get(call, 0)
                if call in ('inner', 'outer'):
                    equal((torch, call, depth), (torch, call, call == 'inner'))


@case
def rank_in_a_process_group(hook):
    with Place() as place:
        for torch, done in each_run(hook, place, '''
if torch.distributed.is_available():
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group("gloo", init_method="file://" + os.path.abspath("store"),
                                         rank=0, world_size=1)
''', version=(1, 13)):
            equal((torch, [line.split()[:2] for line in done.lines if line.startswith('rank')]),
                  (torch, [['rank', '0/1']]))


@case
def isolated_python_is_hooked_from_c(hook):
    with Place() as place:
        each(hook, place, '''
train(1, sgd, adam)
ctypes.CDLL(os.environ["GTRACE_INJECTION"]).fake_cuda_door()
while "gtrace_hook" not in sys.modules:
    train(1)
train(1, sgd, adam)
train(1, sgd, adam)
''', ['start'] + 4 * ['optimizer'],
             flags=['-I'])


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    HOOK = Hook(sys.argv[1])
    HOOK.torches = []
    with Place() as PLACE:
        for PYTHON in sys.argv[2:] or [
                f'{HERE}/../../build/deps/torch/bin/python', sys.executable,
                *os.environ.get('GTRACE_TEST_TORCH', '').split(':')]:
            if PYTHON and os.path.exists(PYTHON):
                FOUND = run(PLACE, [PYTHON, '-c', 'import torch; print(torch.__version__)'])
                if FOUND.status == 0:
                    HOOK.torches.append((PYTHON, FOUND.out.strip()))
    if not HOOK.torches:
        print("ok - torch # SKIP no Python here has it; 'make torch' gets it, GTRACE_TEST_TORCH may name one")
        print('0 passed, 0 failed, 1 skipped')
        sys.exit(0)
    sys.exit(main(HOOK))
