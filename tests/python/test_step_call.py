#!/usr/bin/env python3
"""--step-call: a Python function whose calls are the steps.

usage: test_step_call.py BUILD [PYTHON...]

Every PYTHON (this one, and those of GTRACE_TEST_PYTHON, separated by colons) is tried: from 3.12 on
it is done in another way.
"""

import gzip
import json
import os
import subprocess
import sys

from harness import WAYS, Hook, Place, Skip, case, equal, main, run_as

DEFINED = '''
def helper():
    return 1
class Game:
    def play(self):
        return helper()
    @classmethod
    def kind(cls):
        return cls
    @staticmethod
    def same(value):
        return value
class Chess(Game):
    pass
def train_step(value):
    if value == 2:
        raise ValueError
    return value
'''

CALLED = '''
assert train_step(7) == 7
for value in range(4):
    try:
        assert train_step(value) == value
    except ValueError:
        pass
for game in Game(), Chess():
    assert game.play() == 1 and game.kind() is type(game) and game.same(5) == 5
assert Chess.kind() is Chess
helper()
'''

MAIN = DEFINED + CALLED

CALLS = {'train_step': 4, 'helper': 3, 'Game.play': 2, 'Game.kind': 3, 'Game.same': 2}


def marks(done):
    equal(done.seen(), (0, '', ''))
    return done.calls.count('mark')


def each(hook):
    """A hook and a place for each Python."""
    for python in hook.pythons:
        with Place() as place:
            one = Hook(hook.build, python)
            one.build = hook.build
            one.new = subprocess.run([python, '-c', 'import sys; sys.exit(sys.version_info < (3, 12))'
                                      ]).returncode == 0
            yield one, place


@case
def functions_of_the_script(hook):
    for one, place in each(hook):
        script = place.write('script.py', MAIN)
        for name, calls in CALLS.items():
            done = one.run(place, script, GTRACE_STEP_CALL=f'__main__:{name}')
            equal((one.python, name, marks(done)), (one.python, name, calls))
            equal(done.lines[1].split()[:2], ['claim', 'call'])


@case
def functions_of_modules(hook):
    for one, place in each(hook):
        place.write('pkg/__init__.py', '')
        place.write('pkg/mod.py', DEFINED)
        place.write('use.py', f'from pkg.mod import Chess, Game, helper, train_step\n{CALLED}')
        for name, calls in CALLS.items():
            done = one.run(place, '-c', 'import use', path=[place.path],
                           GTRACE_STEP_CALL=f'pkg.mod:{name}')
            equal((one.python, name, marks(done)), (one.python, name, calls))


@case
def decorated_functions(hook):
    for one, place in each(hook):
        script = place.write('script.py', '''
import functools
def twice(function):
    @functools.wraps(function)
    def wrapper(*args):
        return 2 * function(*args)
    return wrapper
@twice
def train_step(value):
    return value
@twice
def other(value):
    return value
for value in range(3):
    assert train_step(value) + other(value) == 4 * value
''')
        done = one.run(place, script, GTRACE_STEP_CALL='__main__:train_step')
        equal((one.python, marks(done)), (one.python, 3))


@case
def functions_stay_of_their_kind(hook):
    """A coroutine and a generator are a step when they have returned, not when they are made."""
    code = '''
import asyncio, inspect
async def train_step(value):
    await asyncio.sleep(0)
    if value == 2:
        raise ValueError
    return value
def batches(count):
    got = yield from range(count)
    return (yield got)
async def stream(count):
    for value in range(count):
        yield value
async def main():
    for value in range(4):
        try:
            assert await train_step(value) == value
        except ValueError:
            pass
    assert [value async for value in stream(2)] == [0, 1]
assert inspect.iscoroutinefunction(train_step)
assert inspect.isgeneratorfunction(batches)
assert inspect.isasyncgenfunction(stream)
asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())
assert list(batches(3)) == [0, 1, 2, None]
next(batches(3))
'''
    for one, place in each(hook):
        script = place.write('script.py', code)
        for name, calls in ('train_step', 3), ('batches', 1):
            done = one.run(place, script, GTRACE_STEP_CALL=f'__main__:{name}',
                           PYTHONWARNINGS='ignore')
            equal((one.python, name, marks(done)), (one.python, name, calls))
        done = one.run(place, script, GTRACE_STEP_CALL='__main__:stream', PYTHONWARNINGS='ignore')
        equal((one.python, marks(done)), (one.python, 0))


@case
def a_generator_that_is_called_first(hook):
    """Without another call between its definition and its own."""
    for one, place in each(hook):
        script = place.write('script.py', '''
import sys
def batches(count):
    yield from range(count)
    if count == 1:
        raise ValueError
assert list(batches(int(sys.argv[1]))) == [0, 1, 2]
''')
        done = one.run(place, script, '3', GTRACE_STEP_CALL='__main__:batches')
        equal((one.python, marks(done)), (one.python, 1))
        done = one.run(place, script, '1', GTRACE_STEP_CALL='__main__:batches')
        equal((one.python, done.status, done.calls.count('mark')), (one.python, 1, 0))


@case
def functions_with_methods(hook):
    """They keep them where the name is made to stand for another function."""
    for one, place in each(hook):
        script = place.write('script.py', '''
import functools
@functools.lru_cache(maxsize=None)
def train_step(value):
    return value
class Game:
    @functools.lru_cache(maxsize=None)
    def play(self, value):
        return value
game = Game()
for value in range(3):
    assert train_step(value) == game.play(value) == value
for function in train_step, Game.play:
    assert function.cache_info().misses == 3
    function.cache_clear()
''')
        for name in 'train_step', 'Game.play':
            done = one.run(place, script, GTRACE_STEP_CALL=f'__main__:{name}')
            equal((one.python, marks(done)), (one.python, 3))


@case
def what_is_no_function_is_left_alone(hook):
    code = '''
import functools
class Game:
    @property
    def score(self):
        return 3
    def play(self, value=0):
        return value
    play_seven = functools.partialmethod(play, 7)
class Loss:
    def __call__(self):
        return "loss"
    def parameters(self):
        return []
class Job:
    loss = Loss()
model = Loss()
assert Game().score == 3 and Game().play_seven() == 7
assert model() == "loss" and model.parameters() == [] and Job().loss() == "loss"
assert isinstance(model, Loss)
'''
    for one, place in each(hook):
        place.write('use.py', code)
        for name, kind in (('Game.score', 'property'), ('Game.play_seven', 'partialmethod'),
                           ('Loss', 'type'), ('model', 'Loss'), ('Job.loss', 'Loss')):
            for start, module in ((code, '__main__'), ('import use', 'use')):
                done = one.run(place, '-c', start, path=[place.path],
                               GTRACE_STEP_CALL=f'{module}:{name}')
                equal((one.python, name, done.seen()), (one.python, name, (0, '', '')))
                said = [line.rpartition(' ')[0] for line in done.lines if line.startswith('warn')]
                if not one.new:
                    equal((one.python, said), (one.python, [
                        f'warn no step by --step-call {module}:{name}: it is no function, but a {kind}']))


@case
def references_generators_and_threads(hook):
    """By whatever name it is called, once it has run to its end; from 3.12 on."""
    for one, place in each(hook):
        if not one.new:
            continue
        script = place.write('script.py', '''
import threading
def train_step():
    def inner():
        yield 1
        yield 2
    return list(inner())
saved = train_step
train_step = None
saved()
thread = threading.Thread(target=saved)
thread.start()
thread.join()
''')
        done = one.run(place, script, GTRACE_STEP_CALL='__main__:train_step')
        equal(marks(done), 2)
        done = one.run(place, script, GTRACE_STEP_CALL='__main__:train_step.<locals>.inner')
        equal(marks(done), 2)


@case
def however_the_program_is_started(hook):
    for one, place in each(hook):
        for way in WAYS:
            done = run_as(one, place, way, MAIN, GTRACE_STEP_CALL='__main__:Game.play')
            equal((one.python, way, marks(done)), (one.python, way, 2))


@case
def debuggers_and_coverage_are_left_alone(hook):
    code = '''
import sys
seen = []
def tracer(frame, event, arg):
    seen.append(frame.f_code.co_name)
sys.settrace(tracer)
def train_step():
    pass
for i in range(3):
    train_step()
assert sys.gettrace() is tracer
assert seen.count("train_step") == 3, seen
sys.settrace(None)
sys.setprofile(tracer)
train_step()
assert sys.getprofile() is tracer
'''
    for one, place in each(hook):
        done = one.run(place, place.write('script.py', code),
                       GTRACE_STEP_CALL='__main__:train_step')
        equal((one.python, marks(done)), (one.python, 4))
    for one, place in each(hook):
        if one.new:
            done = one.run(place, place.write('script.py', '''
import sys
monitoring = sys.monitoring
monitoring.use_tool_id(monitoring.COVERAGE_ID, "coverage")
monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.PY_RETURN)
seen = []
monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.PY_RETURN,
                             lambda code, *how: seen.append(code.co_name))
def train_step():
    pass
for i in range(3):
    train_step()
    monitoring.restart_events()
monitoring.set_events(monitoring.COVERAGE_ID, 0)
assert seen.count("train_step") == 3, seen
'''), GTRACE_STEP_CALL='__main__:train_step')
            equal(marks(done), 3)


@case
def profilers_of_python_go_on(hook):
    for one, place in each(hook):
        script = place.write('script.py', MAIN)
        done = one.run(place, '-m', 'cProfile', '-o', f'{place.path}/stats', script,
                       GTRACE_STEP_CALL='__main__:Game.play')
        equal((one.python, done.status, done.err), (one.python, 0, ''))
        assert os.path.getsize(f'{place.path}/stats')


@case
def a_profiler_that_comes_first_is_said(hook):
    code = 'import sys\nsys.setprofile(lambda *event: None)\ndef f(): pass\nf()\n'
    for one, place in each(hook):
        done = one.run(place, place.write('script.py', code), GTRACE_STEP_CALL='__main__:f')
        said = [line.rpartition(' ')[0] for line in done.lines if line.startswith('warn')]
        equal((one.python, done.seen(), said), (one.python, (0, '', ''), [] if one.new else [
            'warn no step by --step-call __main__:f: the program has a profiler by sys.setprofile()']))


@case
def what_was_not_called_is_said(hook):
    start = 'import ctypes, os\nctypes.CDLL(os.environ["GTRACE_INJECTION"])' \
            '.gtrace_inject_start(3)\n'
    for one, place in each(hook):
        place.write('mod.py', 'def there(): pass\n')
        place.write('taken.py', 'from mod import there\n')
        for name, why in (('nomod:f', 'nomod was never imported'),
                          ('mod:not_there', 'mod has no not_there'),
                          ('mod:there.more', 'mod has no there.more'),
                          ('taken:there', 'it is mod:there'),
                          ('mod:there', 'no call of it returned'),
                          ('__main__:f', '__main__ has no f')):
            for traced in (start, ''):
                done = one.run(place, '-c', f'{traced}import mod, taken', path=[place.path],
                               GTRACE_STEP_CALL=name)
                equal(done.seen(), (0, '', ''))
                said = [line.rpartition(' ')[0] for line in done.lines if line.startswith('warn')]
                # a process that is not traced may just not be the one
                if traced or 'mod has no' in why or 'it is' in why:
                    equal((one.python, said), (one.python, [
                        f'warn no step by --step-call {name}: {why}']))
                else:
                    equal((one.python, name, said), (one.python, name, []))


@case
def untraced_process_runs_as_ever(hook):
    for one, place in each(hook):
        script = place.write('script.py', MAIN)
        done = one.run(place, script, GTRACE_STEP_CALL='__main__:Game.play', FAKE_TRACED='0')
        equal((done.seen(), done.calls), ((0, '', ''), ['start']))


@case
def all_places_taken(hook):
    tried = False
    for one, place in each(hook):
        if not one.new:
            continue
        tried = True
        code = ('import sys\nfor i in range(6): sys.monitoring.use_tool_id(i, "x")\n'
                'hook = sys.modules["gtrace_hook"]\n'
                'hook._step_call = "__main__:f"\nhook._hook_call()\n')
        done = one.run(place, '-c', code)
        equal(done.seen(), (0, '', ''))
        assert 'all places of sys.monitoring' in done.lines[0], done.lines
    if not tried:
        raise Skip('no Python 3.12 (GTRACE_TEST_PYTHON names some)')


@case
def in_a_trace(hook):
    """The real library and command."""
    for one, place in each(hook):
        place.write('loop.py', MAIN + 'for i in range(7):\n    train_step(3)\n')
        done = subprocess.run([f'{hook.build}/gtrace', 'run', '--step-call', '__main__:train_step',
                               '--', one.python, 'loop.py'], cwd=place.path, stderr=subprocess.PIPE,
                              text=True, check=True)
        assert 'steps by __main__:train_step()' in done.stderr, done.stderr
        with gzip.open(f'{place.path}/loop-rank0.trace.json.gz') as file:
            trace = json.load(file)
        equal(trace['gtrace']['step_source'], 'call')
        equal({event['name'] for event in trace['traceEvents']
               if event['name'].startswith('ProfilerStep')},
              {f'ProfilerStep#{step}' for step in (3, 4, 5)})
        done = subprocess.run([f'{hook.build}/gtrace', 'run', '--step-call', '__main__:nothing',
                               '--', one.python, 'loop.py'], cwd=place.path, stderr=subprocess.PIPE,
                              text=True, check=True)
        equal(done.stderr, 'gtrace: warning: nothing is traced: no process called '
                           '__main__:nothing of --step-call\n')


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    HOOK = Hook(sys.argv[1])
    HOOK.build = os.path.abspath(sys.argv[1])
    HOOK.pythons = sys.argv[2:] or [sys.executable, *filter(
        None, os.environ.get('GTRACE_TEST_PYTHON', '').split(':'))]
    sys.exit(main(HOOK))
