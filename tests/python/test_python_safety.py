#!/usr/bin/env python3
"""The hooks in programs that do unusual things: however they are started, traced, or changed while
they run, they do the same as without us, and steps are marked where they can be.

usage: test_python_safety.py BUILD [PYTHON]
"""

import sys

import fake_torch
from fake_frameworks import PROGRAMS
from harness import WAYS, Hook, Place, Skip, case, equal, main, run_as

TRAIN = '''
from torch.optim import SGD
optimizer = SGD()
for step in range(3):
    optimizer.step()
'''
STEPS = ['start', *3 * ['optimizer']]


def check(hook, code, calls=STEPS, version='2', **env):
    with Place() as place:
        lib = fake_torch.write(place, version)
        done = hook.run(place, place.write('script.py', code), path=[lib], **env)
        equal((done.seen(), [call for call in done.calls if call != 'settled']),
              ((0, '', ''), calls))
        return done


@case
def however_the_program_is_started(hook):
    files, code, calls = PROGRAMS['megatron']
    for way in WAYS:
        with Place() as place:
            done = run_as(hook, place, way, TRAIN, path=[fake_torch.write(place, '2')])
            equal((way, done.seen(), done.calls), (way, (0, '', ''), STEPS))
        with Place() as place:
            for name, text in files.items():
                place.write(f'lib/{name}', text)
            done = run_as(hook, place, way, code, path=[f'{place.path}/lib'])
            equal((way, done.seen(), done.calls), (way, (0, '', ''), calls))


@case
def the_code_module_as_a_notebook_runs_it(hook):
    """Kernels of notebooks compile and run one cell after the other."""
    check(hook, '''
import code
shell = code.InteractiveInterpreter()
for cell in ["from torch.optim import SGD", "one = SGD()", *3 * ["one.step()"]]:
    assert not shell.runsource(cell)
''')


TRACER = '''
import sys
seen = set()
def tracer(frame, event, arg):
    seen.add(frame.f_code.co_name)
    return tracer
sys.settrace(tracer)
'''


@case
def debuggers_and_coverage_keep_their_trace_function(hook):
    check(hook, TRACER + TRAIN + '''
assert sys.gettrace() is tracer
sys.settrace(None)
assert "step" in seen
''')
    files, code, calls = PROGRAMS['transformers']
    with Place() as place:
        for name, text in files.items():
            place.write(f'lib/{name}', text)
        done = hook.run(place, '-c', f'{TRACER}{code}\nassert sys.gettrace() is tracer\n'
                                     'sys.settrace(None)\n',
                        path=[fake_torch.write(place, '2')])
        equal((done.seen(), done.calls), ((0, '', ''), calls))


@case
def coverage_itself(hook):
    with Place() as place:
        if hook.run_without(place, '-c', 'import coverage').status:
            raise Skip('no coverage')
        script = place.write('script.py', TRAIN)
        done = hook.run(place, '-m', 'coverage', 'run', script,
                        path=[fake_torch.write(place, '2')])
        equal((done.status, done.calls), (0, STEPS))


@case
def replaced_optimizers(hook):
    """Classes, methods and the list of hooks that a program puts in the place of torch's."""
    check(hook, '''
import torch.optim.optimizer as module
from torch.optim import SGD
class Own(SGD):
    def step(self):
        return super().step()
module.Optimizer = module.SGD = Own
Own().step()
SGD.step = lambda self: 5
assert SGD().step() == 5
module._hooks.clear()
''', ['start', 'optimizer'])
    check(hook, '''
import sys, types
from torch.optim import SGD
sys.modules["torch.optim.optimizer"] = types.ModuleType("torch.optim.optimizer")
SGD().step()
del sys.modules["torch.optim.optimizer"]
import torch.optim.optimizer as again
again.SGD().step()
''', ['start', 'optimizer'])


@case
def replaced_functions_of_frameworks(hook):
    files, code, _ = PROGRAMS['megatron']
    with Place() as place:
        for name, text in files.items():
            place.write(f'lib/{name}', text)
        done = hook.run(place, '-c', '''
import importlib
import megatron.training.training as training
ours = training.train_step
training.train_step = lambda forward: ours(forward)
assert training.train_step(lambda: 5) == (5, 0)
importlib.reload(training)
assert training.train_step(lambda: 5) == (5, 0)
''', path=[f'{place.path}/lib'])
        equal((done.seen(), done.calls), ((0, '', ''), ['start', 'claim', 'mark']))


@case
def a_library_that_fails_in_a_call(hook):
    """The hook takes itself away, says so once, and the program does not see it."""
    check(hook, 'import gtrace_hook\ndef fail():\n    raise SystemExit(9)\n'
                'gtrace_hook.Injection.__init__ = lambda self: fail()\n' + TRAIN, ['warn'])


@case
def free_threaded_python_is_left_alone(hook):
    done = check(hook, 'import sys\nsys.abiflags = "t"\n' + TRAIN, ['warn'])
    assert 'this is a free-threaded build' in done.lines[0], done.lines
    check(hook, 'import sys\nsys.abiflags = "t"\nimport json\n', [])


@case
def sub_interpreters_mark_nothing(hook):
    with Place() as place:
        for name in '_interpreters', '_xxsubinterpreters':
            if hook.run_without(place, '-c', f'import {name}').status == 0:
                break
        else:
            raise Skip('no sub-interpreters')
        lib = fake_torch.write(place, '2')
        # a fake torch that does not use ctypes, which such an interpreter may lack
        place.write('lib/torch/_log.py', 'log = None\n')
        for more in '', TRAIN:
            done = hook.run(place, '-c', f'import {name} as i\none = i.create()\n'
                                         f'assert not i.run_string(one, {TRAIN!r})\n{more}',
                            path=[lib])
            equal(done.seen(), (0, '', ''))
            equal([call for call in done.calls if call != 'warn'], STEPS if more else [])


if __name__ == '__main__':
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(Hook(*sys.argv[1:])))
