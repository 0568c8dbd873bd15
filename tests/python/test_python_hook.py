#!/usr/bin/env python3
"""The Python start-up hook: what a program cannot notice, and what gtrace must.

usage: test_python_hook.py BUILD [PYTHON]

PYTHON (this one) runs the programs. Torch is a fake one here; test_torch.py has the real one.
"""

import os
import shutil
import signal
import subprocess
import sys

import fake_torch
from harness import Hook, Place, Skip, case, equal, main, run

FINDERS = 'import sys; print([f for f in sys.meta_path if "Finder" in str(f) and ' \
          'f.__module__ == "gtrace_hook"] != [])'

# ---- a program without torch --------------------------------------------------------------------


@case
def program_without_torch_is_the_same(hook):
    with Place() as place:
        for code in ('import sys; print(sys.argv); sys.exit(3)', 'raise ValueError("mine")',
                     'import os; os._exit(5)', 'import json, decimal; print("fine")',
                     'import os, signal; os.kill(os.getpid(), signal.SIGTERM)',
                     'import torch', 'import sys; print("sitecustomize" in sys.modules)',
                     'import signal; print(signal.getsignal(signal.SIGINT))'):
            done = hook.same(place, '-c', code, 'an argument')
            equal(done.calls, [])


@case
def it_loads_one_module_more(hook):
    with Place() as place:
        code = 'import sys; print("\\n".join(sorted(sys.modules)))'
        with_hook = hook.run(place, '-c', code).out.split()
        without = hook.run_without(place, '-c', code).out.split()
        equal(set(with_hook) - set(without), {'gtrace_hook'})


@case
def not_under_gtrace_nothing_is_set(hook):
    with Place() as place:
        done = run(place, [hook.python, '-c', FINDERS], {'PYTHONPATH': hook.folder})
        equal(done.seen(), (0, 'False\n', ''))


@case
def old_pythons_start_as_ever(hook):
    python = os.environ.get('GTRACE_TEST_PYTHON2') or shutil.which('python2')
    if not python:
        raise Skip('no python2; GTRACE_TEST_PYTHON2 names one')
    with Place() as place:
        hook.same(place, '-c', 'print("old")', python=python)


# ---- the other sitecustomize --------------------------------------------------------------------

SITE = 'import sys; print("theirs", __name__, [p for p in sys.path if "build" in p]); mark = 7\n'
MAIN = 'import sitecustomize, sys; print(sitecustomize.__file__, vars(sitecustomize).get("mark"))'


@case
def existing_sitecustomize_is_loaded(hook):
    with Place() as place:
        site = place.write('site/sitecustomize.py', SITE)
        done = hook.same(place, '-c', MAIN, path=[os.path.dirname(site)])
        equal(done.out.splitlines()[-1], f'{site} 7')


@case
def its_failures_are_its_own(hook):
    with Place() as place:
        for number, failure in enumerate((
                'raise ValueError("broken")', 'raise SystemExit(7)', 'raise KeyboardInterrupt',
                'import not_there', 'syntax error', 'raise ImportError("x", name="other")',
                'import os; os._exit(9)')):
            site = place.write(f'site{number}/sitecustomize.py', f'print("theirs")\n{failure}\n')
            done = hook.run(place, '-c', 'print("main")', path=[os.path.dirname(site)])
            plain = hook.run_without(place, '-c', 'print("main")', path=[os.path.dirname(site)])
            equal((done.status, done.out), (plain.status, plain.out))
            if 'Traceback' not in plain.err:  # there our frames are in it
                equal(done.err, plain.err)


@case
def chains_of_sitecustomize_end(hook):
    """Others do as we do; whichever comes first, all are loaded once."""
    chaining = ('import os, sys\n'
                'print("theirs")\n'
                'own = os.path.dirname(__file__)\n'
                'sys.path = [p for p in sys.path if p != own]\n'
                'del sys.modules["sitecustomize"]\n'
                'try:\n    import sitecustomize\nexcept ImportError:\n    pass\n'
                'else:\n    sys.modules["sitecustomize"] = sitecustomize\n')
    with Place() as place:
        site = os.path.dirname(place.write('chain/sitecustomize.py', chaining))
        last = os.path.dirname(place.write('last/sitecustomize.py', 'print("last")\n'))
        for folders in ([hook.folder, site, last], [site, hook.folder, last]):
            done = run(place, [hook.python, '-c', FINDERS],
                       {**hook.env(), 'PYTHONPATH': os.pathsep.join(folders)})
            equal(done.seen(), (0, 'theirs\nlast\nTrue\n', ''))


@case
def usercustomize_is_untouched(hook):
    with Place() as place:
        base = f'{place.path}/user'
        folder = hook.run_without(place, '-c', 'import site; print(site.getusersitepackages())',
                                  PYTHONUSERBASE=base).out.strip()
        os.makedirs(folder)
        with open(f'{folder}/usercustomize.py', 'w') as out:
            out.write('print("user", __file__)\n')
        done = hook.same(place, '-c', 'print("main")', PYTHONUSERBASE=base)
        equal(done.out, f'user {folder}/usercustomize.py\nmain\n')


@case
def our_directory_stays_on_the_path_of_workers(hook):
    with Place() as place:
        done = hook.run(place, '-c', 'import os, sys; print(sys.path[1]); '
                                     'print(os.environ["PYTHONPATH"])')
        equal(done.out, f'{hook.folder}\n{hook.folder}\n')


# ---- torch's operators ---------------------------------------------------------------------------

OPS = 'empty = lambda size, device: __import__("fake_ops").seen(size, device)\n'
SEEN = 'def seen(size, device):\n    print(size, device)\n'


@case
def observer_is_tested_with_one_operator(hook):
    with Place() as place:
        place.write('torch/__init__.py', OPS)
        place.write('fake_ops.py', SEEN)
        for more in '', 'import multiprocessing; ':
            done = hook.run(place, '-c', f'{more}import torch', path=[place.path], FAKE_OPS='1')
            equal(done.seen(), (0, '1 cpu\n', ''))
            equal([line.split()[:2] for line in done.lines], [['ops', '0'], ['begin', '1']])


@case
def observer_that_is_not_tested_is_taken_back(hook):
    with Place() as place:
        place.write('torch/__init__.py', 'def empty(*args, **kwargs):\n    raise ValueError\n')
        done = hook.run(place, '-c', 'import torch; print("on")', path=[place.path], FAKE_OPS='1')
        equal(done.seen(), (0, 'on\n', ''))
        equal(done.calls, ['ops', 'begin'])


@case
def workers_wait_with_their_operators(hook):
    with Place() as place:
        place.write('torch/__init__.py', OPS)
        place.write('fake_ops.py', SEEN.replace('print(size, device)', 'pass'))
        script = place.write('work.py', 'import multiprocessing\nimport torch\n'
                                        'def work():\n    pass\n'
                                        'if __name__ == "__main__":\n'
                                        '    child = multiprocessing.get_context("spawn")'
                                        '.Process(target=work)\n'
                                        '    child.start()\n    child.join()\n')
        done = hook.run(place, script, path=[place.path], FAKE_OPS='1')
        equal(done.seen(), (0, '', ''))
        equal([line.split()[:2] for line in done.lines],
              [['ops', '0'], ['begin', '1'], ['ops', '0'], ['begin', '0']])


# ---- steps --------------------------------------------------------------------------------------

TRAIN = '''
import sys
from torch.optim import SGD, Adam
sgd, adam = SGD(), Adam()
for step in range(2):
    sgd.step()
    adam.step()
'''


def check_steps(hook, version):
    with Place() as place:
        done = hook.run(place, '-c', TRAIN + FINDERS, path=[fake_torch.write(place, version)])
        equal(done.err, '')
        equal(steps_of(done), ['start 3', *2 * ['optimizer 1', 'optimizer 2']])
        return done.out.strip()


def steps_of(done):
    return [' '.join(line.split()[:2]) for line in done.lines]


@case
def optimizer_steps_are_marked(hook):
    check_steps(hook, '2')


@case
def an_optimizer_goes_on_as_one_that_is_gone(hook):
    """Else the steps of a program that replaces its optimizer would have no end."""
    with Place() as place:
        done = hook.run(place, '-c', TRAIN + '''
kept = [Adam()]
for step in range(3):
    sgd = SGD()
    kept.append(bytearray(100))  # what comes next is at another address
    sgd.step()
    adam.step()
del sgd, adam
for step in range(2):
    kept[0].step()
    SGD().step()
''', path=[fake_torch.write(place, '2')])
        equal((done.seen(), steps_of(done)), ((0, '', ''), ['start 3', *5 * [
            'optimizer 1', 'optimizer 2'], *2 * ['optimizer 1', 'optimizer 2']]))


@case
def optimizer_steps_are_marked_in_old_torch(hook):
    check_steps(hook, '1.9')
    with Place() as place:
        code = ('from torch.optim import Adam, Optimizer\n'
                'class Mine(Adam):\n    pass\n'
                'print(Adam().step(), Adam().step(closure=lambda: 5), Mine().step(lambda: 6))\n'
                'print(Adam.step.__name__)\n')
        done = hook.same(place, '-c', code, path=[fake_torch.write(place, '1.9')])
        equal(done.calls.count('optimizer'), 3)


@case
def an_import_alone_opens_nothing(hook):
    with Place() as place:
        done = hook.run(place, '-c', 'import torch', path=[fake_torch.write(place, '2')])
        equal((done.seen(), done.calls), ((0, '', ''), []))


@case
def untraced_process_marks_nothing(hook):
    with Place() as place:
        path = [fake_torch.write(place, '2')]
        done = hook.run(place, '-c', TRAIN, path=path, FAKE_TRACED='0')
        equal((done.err, done.calls), ('', ['start']))
        done = hook.run(place, '-c', TRAIN, path=path, GTRACE_INJECTION='/nowhere/lib.so')
        equal((done.status, done.err, done.calls), (0, '', []))


@case
def failing_hook_does_not_show(hook):
    """Whatever torch does to us, SystemExit included, the program imports it and runs; the user is
    told once."""
    with Place() as place:
        lib = fake_torch.write(place, '2')
        for line, error in (('raise SystemExit(9)', 'SystemExit: 9'),
                            ('raise RuntimeError', 'RuntimeError: ')):
            place.write('lib/torch/optim/optimizer.py', fake_torch.OPTIMIZER_2.replace(
                '    _hooks[len(_hooks)] = hook', f'    {line}'))
            done = hook.run(place, '-c', TRAIN, path=[lib])
            equal((done.status, done.err), (0, ''))
            equal([line.rpartition(' ')[0] for line in done.lines],
                  [f'warn the hook in torch.optim.optimizer failed and is gone ({error})'])
        place.write('lib/torch/optim/optimizer.py', 'SGD = Adam = Optimizer = None\n')
        place.write('lib/torch/autograd/profiler.py', fake_torch.ACTIVITIES)
        equal(hook.run(place, '-c', 'import torch.optim', path=[lib]).seen(), (0, '', ''))


@case
def failing_import_is_the_programs(hook):
    with Place() as place:
        lib = fake_torch.write(place, '2')
        place.write('lib/torch/optim/optimizer.py',
                    'import os\nif "torch_broken" in os.environ:\n    raise OSError("broken")\n'
                    + fake_torch.OPTIMIZER_2)
        code = ('import os\nos.environ["torch_broken"] = ""\n'
                'try:\n    import torch\nexcept OSError as error:\n    print(error)\n'
                'del os.environ["torch_broken"]\n' + TRAIN)
        done = hook.run(place, '-c', code, path=[lib])
        equal((done.out.splitlines()[0], done.err), ('broken', ''))
        equal(done.calls.count('optimizer'), 4)


@case
def import_machinery_sees_its_own(hook):
    with Place() as place:
        code = ('import torch.optim.optimizer as o, importlib, inspect\n'
                'print(type(o.__spec__.loader), o.__loader__ is o.__spec__.loader, '
                'vars(o.__loader__).keys(), len(inspect.getsource(o)))\n'
                'print(importlib.reload(o) is o)\n')
        hook.same(place, '-c', code, path=[fake_torch.write(place, '2')])


# ---- the program's own profiler -----------------------------------------------------------------

PROFILE = 'from torch.autograd import profiler as p\n'


def check_profile(hook, version, code, calls):
    with Place() as place:
        done = hook.run(place, '-c', PROFILE + code, path=[fake_torch.write(place, version)])
        equal((done.seen(), done.calls), ((0, '', ''), calls))


@case
def profiler_has_the_gpu_to_itself(hook):
    alone = ['start', 'yield', 'prepare', 'enable', 'disable', 'resume']
    for version in ('2', '1.9', '1.8'):
        check_profile(hook, version, 'with p.profile() as one: assert one.enabled', alone)
    check_profile(hook, '2', 'for i in range(2):\n    with p.profile(): pass', alone + alone[1:])
    check_profile(hook, '1.8', 'one = p.profile()\none._prepare_kineto_trace()\n'
                               'one._start_kineto_trace()\none.__exit__(None, None, None)', alone)


@case
def profiler_without_gpu_does_not_disturb(hook):
    for version in ('2', '1.8'):
        check_profile(hook, version, 'with p.profile(use_cuda=False): pass',
                      ['prepare', 'enable', 'disable'])
        check_profile(hook, version, 'with p.profile(enabled=False): pass',
                      ['start', 'yield', 'resume'] if version == '1.8' else [])


@case
def profiler_with_a_schedule(hook):
    cycle = ['yield', 'yield', 'prepare', 'enable', 'disable', 'resume', 'resume']
    check_profile(hook, '2', 'from torch.profiler import _KinetoProfile as K\none = K()\n'
                             'for i in range(3):\n    one.prepare_trace()\n    one.start_trace()\n'
                             '    one.stop_trace()\n', ['start'] + 3 * cycle)
    check_profile(hook, '2', 'from torch.profiler import _KinetoProfile as K\n'
                             'one = K(own_cupti=True)\n'
                             'one.prepare_trace()\none.start_trace()\none.stop_trace()\n',
                  ['start', 'yield', 'own prepare'.split()[0], 'prepare', 'enable', 'disable',
                   'own', 'resume'])


@case
def failing_profiler_lets_us_back(hook):
    broken = 'p.fail = "{0}"\ntry:\n    with p.profile(): pass\nexcept ValueError as error:\n' \
             '    assert str(error) == "{0}"\np.fail = None\n' \
             'with p.profile(): pass\n'
    again = ['yield', 'prepare', 'enable', 'disable', 'resume']
    for version in ('2', '1.8'):
        check_profile(hook, version, broken.format('prepare'), ['start', 'yield', 'resume', *again])
        check_profile(hook, version, broken.format('disable'),
                      ['start', 'yield', 'prepare', 'enable', 'resume', *again])
    check_profile(hook, '2', 'try:\n    with p.profile(): raise KeyError\nexcept KeyError: pass',
                  ['start', *again])


@case
def profilers_may_nest(hook):
    check_profile(hook, '2', 'with p.profile():\n    with p.profile(): pass',
                  ['start', 'yield', 'prepare', 'enable', 'yield', 'prepare', 'enable',
                   'disable', 'resume', 'disable', 'resume'])


# ---- workers ------------------------------------------------------------------------------------

WORKERS = '''
import multiprocessing, os, sys
def work():
    from torch.optim import SGD
    SGD().step()
if __name__ == "__main__":
    work()
    for method in sys.argv[1:]:
        worker = multiprocessing.get_context(method).Process(target=work)
        worker.start()
        worker.join()
        assert worker.exitcode == 0
'''


@case
def workers_are_hooked(hook):
    with Place() as place:
        script = place.write('workers.py', WORKERS)
        done = hook.run(place, script, 'spawn', 'forkserver', 'fork',
                        path=[fake_torch.write(place, '2')])
        equal(done.seen(), (0, '', ''))
        equal(done.calls, ['start', 'optimizer'] * 3 + ['optimizer'])  # the last one was forked
        equal(len({line.split()[2] for line in done.lines}), 4)


@case
def virtual_environments_are_hooked(hook):
    with Place() as place:
        made = subprocess.run([hook.python, '-m', 'venv', '--without-pip', f'{place.path}/venv'],
                              capture_output=True, text=True)
        if made.returncode:
            raise Skip('no venv here')
        done = hook.run(place, '-c', TRAIN, python=f'{place.path}/venv/bin/python',
                        path=[fake_torch.write(place, '2')])
        equal((done.err, done.calls), ('', ['start'] + ['optimizer'] * 4))


@case
def sub_interpreters_are_left_alone(hook):
    with Place() as place:
        code = ('import sys\n'
                'import {0} as i\n'
                'one = i.create()\n'
                'print(i.run_string(one, "import json") or "fine")\n')
        names = ('_interpreters', '_xxsubinterpreters')
        for name in names:
            if hook.run_without(place, '-c', f'import {name}').status == 0:
                break
        else:
            raise Skip('no sub-interpreters')
        done = hook.same(place, '-c', code.format(name))
        equal(done.status, 0)


# ---- signals ------------------------------------------------------------------------------------


@case
def interrupt_is_the_users(hook):
    with Place() as place:
        code = ('import os, signal\n'
                'from torch.optim import SGD\n'
                'one = SGD()\n'
                'one.step()\n'
                # A job in the background ignores it.
                'signal.signal(signal.SIGINT, signal.default_int_handler)\n'
                'os.kill(os.getpid(), signal.SIGINT)\n'
                'while True: one.step()\n')
        done = hook.run(place, '-c', code, path=[fake_torch.write(place, '2')], FAKE_LOG='/dev/null')
        equal(done.status, -signal.SIGINT if hook.version >= (3, 8) else 1)
        equal(done.err.splitlines()[-1], 'KeyboardInterrupt')


if __name__ == '__main__':
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(Hook(*sys.argv[1:])))
