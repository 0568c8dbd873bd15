#!/usr/bin/env python3
"""import gtrace: what it calls under 'gtrace run', and that it does nothing otherwise.

usage: test_gtrace_module.py BUILD [PYTHON]
"""

import os
import shutil
import subprocess
import sys

from harness import Hook, Place, case, equal, main, run

USE = '''
import gtrace
@gtrace.range("decorated")
def part(value):
    """What it says."""
    return value
@gtrace.profile(active=2)
def train_step(value, more=1):
    return value + more
@gtrace.profile
def plain():
    return 7
assert part(5) == 5 and part.__doc__ == "What it says."
assert train_step(1, more=2) == 3 and plain() == 7
with gtrace.range("outer") as outer, gtrace.range("b\\u00e4r"):
    pass
with gtrace.profile(enabled=True) as profile:
    profile.step()
    profile.step()
with gtrace.profile():
    pass
gtrace.step()
'''


def tell(done):
    return [line.rpartition(' ')[0] for line in done.lines]


@case
def without_gtrace_nothing_happens(hook):
    with Place() as place:
        shutil.copy(f'{hook.folder}/gtrace.py', place.path)
        code = 'import gtrace, sys\nassert "ctypes" not in sys.modules\n' + USE + (
            'assert "ctypes" not in sys.modules\n'
            'assert gtrace.range("x")(len) is len and gtrace.profile()(len) is len\n')
        script = place.write('script.py', code)
        done = run(place, [hook.python, script], {'FAKE_RANGES': '1'})
        equal((done.seen(), done.calls), ((0, '', ''), []))


@case
def under_gtrace_all_of_it_is_called(hook):
    with Place() as place:
        script = place.write('script.py', USE)
        done = hook.run(place, script, FAKE_RANGES='1')
        equal(done.seen(), (0, '', ''))
        equal(tell(done), ['start 4', 'push decorated', 'pop 0', 'step 0', 'step 0',
                           'push outer', 'push b\u00e4r', 'pop 0', 'pop 0',
                           'step 0', 'step 0', 'step 0', 'step 0'])


@case
def ranges_are_a_flag_while_nothing_is_recorded(hook):
    with Place() as place:
        done = hook.run(place, place.write('script.py', USE))
        equal((done.seen(), set(done.calls)), ((0, '', ''), {'start', 'step'}))


@case
def an_import_and_decorators_open_nothing(hook):
    with Place() as place:
        code = USE.partition('assert part')[0]
        done = hook.run(place, place.write('script.py', code), FAKE_RANGES='1')
        equal((done.seen(), done.calls), ((0, '', ''), []))


@case
def untraced_process_marks_nothing(hook):
    with Place() as place:
        script = place.write('script.py', USE)
        done = hook.run(place, script, FAKE_TRACED='0', FAKE_RANGES='1')
        equal((done.seen(), done.calls), ((0, '', ''), ['start']))
        done = hook.run(place, script, GTRACE_INJECTION='/nowhere/lib.so')
        equal((done.seen(), done.calls), ((0, '', ''), []))


@case
def exceptions_of_the_program_pass(hook):
    with Place() as place:
        done = hook.run(place, place.write('script.py', '''
import gtrace
@gtrace.range("part")
@gtrace.profile()
def fail():
    raise KeyError(7)
for attempt in range(2):
    try:
        with gtrace.range("outer"), gtrace.profile():
            fail()
    except KeyError as error:
        assert error.args == (7,)
'''), FAKE_RANGES='1')
        equal(done.seen(), (0, '', ''))
        equal(tell(done), ['start 4', *2 * ['push outer', 'push part', 'pop 0', 'pop 0']])


@case
def what_fails_is_said_and_does_nothing(hook):
    with Place() as place:
        done = hook.run(place, '-c', 'import ctypes, gtrace\nctypes.POINTER = None\n'
                                     'for i in range(2):\n    gtrace.step()\n'
                                     '    with gtrace.range("x"): pass\n')
        equal(done.seen(), (0, '', ''))
        equal(tell(done), ['start 4', "warn steps and ranges of gtrace.py are not traced "
                                      "(TypeError: 'NoneType' object is not callable)"])


@case
def one_range_may_be_open_twice(hook):
    """Also when recording begins or ends in between: what was begun is ended, and no more."""
    with Place() as place:
        done = hook.run(place, place.write('script.py', '''
import gtrace
again = gtrace.range("again")
with again:
    flag = gtrace._recording
    flag.value = 1
    with again:
        with again:
            flag.value = 0
            with again:
                pass
'''))
        equal((done.seen(), tell(done)),
              ((0, '', ''), ['start 4', 'push again', 'push again', 'pop 0', 'pop 0']))


@case
def coroutines_are_ranges_and_steps_until_they_end(hook):
    with Place() as place:
        done = hook.run(place, place.write('script.py', '''
import asyncio, gtrace
@gtrace.profile()
@gtrace.range("part")
async def part(value):
    with gtrace.range("within"):
        await asyncio.sleep(0)
    return value
assert asyncio.get_event_loop_policy().new_event_loop().run_until_complete(part(5)) == 5
'''), FAKE_RANGES='1')
        equal((done.status, tell(done)),
              (0, ['start 4', 'push part', 'push within', 'pop 0', 'pop 0', 'step 0']))


@case
def generators_are_steps_when_they_have_returned(hook):
    with Place() as place:
        done = hook.run(place, place.write('script.py', '''
import gtrace, inspect
@gtrace.profile()
def batches(count):
    got = yield from range(count)
    return got
assert inspect.isgeneratorfunction(batches)
for value in batches(2):
    gtrace.range("in it").__enter__().__exit__(None, None, None)
next(batches(2))
'''), FAKE_RANGES='1')
        equal((done.seen(), tell(done)),
              ((0, '', ''), ['start 4', *2 * ['push in it', 'pop 0'], 'step 0']))


@case
def what_the_command_line_has_set_otherwise_is_said_once(hook):
    code = '''
import gtrace
class Activity:
    name = "CUDA"
for i in range(2):
    gtrace.profile(skip_first=1, wait=5, active=4, activities=[Activity, "cpu"], profile_name="x",
                   profile_memory=True, output_dir="y", record_shapes=True, with_flops=True,
                   with_stack=True, with_modules=False)
'''
    session = {'GTRACE_SCHEDULE': 'skip_first=1,wait=1,warmup=1,active=3,repeat=1,'
                                  'skip_first_wait=0', 'GTRACE_ACTIVITIES': 'gpu',
               'GTRACE_WITH': 'shapes,modules'}
    with Place() as place:
        script = place.write('script.py', code)
        done = hook.run(place, script, **session)
        equal((done.seen(), tell(done)), ((0, '', ''), [
            "warn the options of 'gtrace run' rule, not those of gtrace.profile(): "
            'active is 3, activities is gpu, profile_memory is False, wait is 1, '
            'with_modules is True, with_stack is False']))
        for same in 'enabled=False, wait=5', 'wait=1, activities=None', '':
            done = hook.run(place, '-c', f'import gtrace\ngtrace.profile({same})', **session)
            equal((done.seen(), tell(done)), ((0, '', ''), []))
        session['GTRACE_ACTIVITIES'] = 'mem,cpu'
        for same in 'activities=["cpu", "mem"]', 'activities=["cpu"], profile_memory=True':
            done = hook.run(place, '-c', f'import gtrace\ngtrace.profile({same})', **session)
            equal((done.seen(), tell(done)), ((0, '', ''), []))
        session['GTRACE_ACTIVITIES'] = 'cpu'
        done = hook.run(place, '-c', 'import gtrace\ngtrace.profile(activities=["cpu", "mem"])',
                        **session)
        equal(tell(done), ["warn the options of 'gtrace run' rule, not those of "
                           'gtrace.profile(): profile_memory is False'])
        done = hook.run(place, '-c', 'import gtrace\ngtrace.profile(actives=1)', **session)
        equal(done.err.splitlines()[-1].partition(':')[0], 'TypeError')


TWO_THREADS = '''
import sys, threading
import gtrace

opening, stepped = threading.Event(), threading.Event()
main = threading.get_ident()


class Slow:
    """The other thread opens gtrace until the main one has come to it, too."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "ctypes" and not opening.is_set():
            opening.set()
            while sys._current_frames()[main].f_code.co_name != "_open" and not stepped.wait(.001):
                pass


def work():
    with gtrace.range("other"):
        pass


sys.meta_path.insert(0, Slow)
thread = threading.Thread(target=work)
thread.start()
opening.wait()
gtrace.step()
stepped.set()
thread.join()
'''


@case
def a_step_while_another_thread_opens_is_not_lost(hook):
    with Place() as place:
        done = hook.run(place, '-c', TWO_THREADS, FAKE_RANGES='1')
        equal((done.seen(), sorted(tell(done))),
              ((0, '', ''), ['pop 0', 'push other', 'start 4', 'step 0']))


@case
def the_programs_own_gtrace_comes_first(hook):
    """A package of that name is on PyPI."""
    with Place() as place:
        place.write('theirs/gtrace/__init__.py', 'print("theirs", __spec__.name)\n')
        place.write('theirs/gtrace/part.py', 'print("part")\n')
        done = hook.run(place, '-c', 'import gtrace.part', path=[f'{place.path}/theirs'])
        equal(done.seen(), (0, 'theirs gtrace\npart\n', ''))
        done = hook.run(place, '-c', 'import gtrace; print(gtrace.__file__)')
        equal(done.seen(), (0, f'{hook.folder}/gtrace.py\n', ''))
        done = hook.run_without(place, '-c', 'import gtrace')
        equal(done.err.splitlines()[-1], "ModuleNotFoundError: No module named 'gtrace'")
        place.write('parts/gtrace/part.py', 'print("part")\n')
        done = hook.run(place, '-c', 'import gtrace.part', path=[f'{place.path}/parts'])
        equal(done.seen(), (0, 'part\n', ''))
        # A folder without Python in it, such as a checkout of gtrace, is no module of the program.
        place.write('gtrace/README.md', '')
        for path in [], [f'{place.path}/theirs/..']:
            done = hook.run(place, '-c', 'import gtrace; print(gtrace.__file__)', path=path)
            equal(done.seen(), (0, f'{hook.folder}/gtrace.py\n', ''))


@case
def on_the_simulated_gpu(hook):
    """The real library: steps by gtrace.step(), ranges in the trace of what they are around."""
    with Place() as place:
        script = place.write('loop.py', '''
import gtrace
for i in range(8):
    with gtrace.range("part"):
        pass
    gtrace.step()
''')
        build = hook.build
        subprocess.run([f'{build}/gtrace', 'run', '-q', '--', hook.python, script], check=True,
                       cwd=place.path)
        done = subprocess.run([f'{build}/gtrace', 'summary', '--by', 'annotation', '--format',
                               'csv', f'{place.path}/loop-rank0.trace.json.gz'],
                              check=True, capture_output=True, text=True)
        (row,) = [line.split(',') for line in done.stdout.splitlines()[1:]]
        equal((row[:2], row[-1]), (['range', '3'], '"part"'))


if __name__ == '__main__':
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    HOOK = Hook(*sys.argv[1:])
    HOOK.build = os.path.abspath(sys.argv[1])
    sys.exit(main(HOOK))
