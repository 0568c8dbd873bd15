#!/usr/bin/env python3
"""The Python hook from C, where the start-up hook did not run: by a pending call of the interpreter.

usage: test_python_from_c.py BUILD [PYTHON]

PYTHON (this one) runs the programs. Torch is a fake one here; test_torch.py has the real one.
"""

import os
import shutil
import subprocess
import sys

import fake_torch
from harness import Hook, Place, Skip, case, equal, main, run

# What libcuda does in the first cuInit(), then a loop that Python's evaluator goes through.
LATE = '''
import sys
sys.path.insert(0, {lib!r})
{before}
import ctypes, os, signal
signal.alarm(60)
ctypes.CDLL({library!r}).fake_cuda_door()
log = os.environ["FAKE_LOG"]
while not (os.path.exists(log) and "settled" in open(log).read()): pass
{after}
'''
STEP = 'from torch.optim import SGD\nSGD().step()\n'


def need_pending_calls(hook):
    if hook.version < (3, 8):
        raise Skip('before Python 3.8 the fall-back cannot tell the main interpreter')


def late(hook, place, *flags, version='2', before='import torch', after=STEP, **env):
    lib = fake_torch.write(place, version)
    script = place.write('late.py', LATE.format(lib=lib, before=before, after=after,
                                                library=hook.library))
    return hook.run(place, *flags, script, **env)


@case
def isolated_python_is_hooked_from_c(hook):
    need_pending_calls(hook)
    for flag in ('-I', '-E', '-S', '-IS'):
        for before in ('import torch', '', 'import torch.autograd.profiler\n' + STEP):
            with Place() as place:
                done = late(hook, place, *([] if flag == '-S' else [flag]), before=before,
                            **({'PYTHONPATH': '', 'PYTHONNOUSERSITE': '1'} if flag == '-S' else {}))
                equal((done.seen(), done.calls), ((0, '', ''), ['settled', 'start', 'optimizer']))


@case
def old_torch_is_hooked_from_c(hook):
    need_pending_calls(hook)
    with Place() as place:
        done = late(hook, place, '-I', version='1.9', before=STEP + 'old = SGD()',
                    after='old.step()\nSGD().step()')
        equal((done.seen(), done.calls), ((0, '', ''), ['settled', 'start'] + ['optimizer'] * 2))


@case
def hook_is_set_once(hook):
    with Place() as place:
        done = late(hook, place)  # sitecustomize ran, so there is nothing to do from C
        equal((done.seen(), done.calls), ((0, '', ''), ['settled', 'start', 'optimizer']))


@case
def hook_in_c_waits_for_an_import_under_way(hook):
    need_pending_calls(hook)
    with Place() as place:
        lib = fake_torch.write(place, '2')
        place.write('lib/torch/optim/optimizer.py', fake_torch.OPTIMIZER_2 + (
            'import ctypes, sys, time\n'
            f'ctypes.CDLL({hook.library!r}).fake_cuda_door()\n'
            # To 3.11, a thread learns of a pending call when it has given the GIL away.
            'while "gtrace_hook" not in sys.modules: time.sleep(0)\n'))
        script = place.write('late.py', LATE.format(lib=lib, before='import torch', after=STEP,
                                                    library=hook.library).replace(
            f'ctypes.CDLL({hook.library!r}).fake_cuda_door()\n', ''))
        done = hook.run(place, '-I', script)
        equal((done.seen(), done.calls), ((0, '', ''), ['settled', 'start', 'optimizer']))


@case
def failing_hook_from_c_does_not_show(hook):
    for failure in ('raise SystemExit(9)', 'raise ValueError', 'syntax error', 'import not_there',
                    'import sys; sys.exit("no")', ''):
        with Place() as place:
            place.write('hook/gtrace_hook.py', failure + '\n')
            done = late(hook, place, '-I', after='print("fine")',
                        GTRACE_PYTHON_DIR=f'{place.path}/hook')
            equal((done.seen(), done.calls), ((0, 'fine\n', ''), ['settled']))


@case
def any_path_of_the_hook_will_do(hook):
    need_pending_calls(hook)
    for name in (b'white space', b'quote\'"; import os; os._exit(9) #', b'line\nfeed', b'\xff\xfe',
                 'caf\u00e9'.encode()):
        with Place() as place:
            folder = os.path.join(place.path.encode(), name)
            shutil.copytree(hook.folder, os.fsdecode(folder))
            done = late(hook, place, '-I', GTRACE_PYTHON_DIR=os.fsdecode(folder))
            equal((done.seen(), done.calls), ((0, '', ''), ['settled', 'start', 'optimizer']))


@case
def without_a_path_nothing_happens(hook):
    with Place() as place:
        done = late(hook, place, '-I', after='print("fine")', GTRACE_PYTHON_DIR='')
        equal((done.seen(), done.calls), ((0, 'fine\n', ''), ['settled']))


# ---- an interpreter in a program of its own -----------------------------------------------------

EMBED = r'''
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void *lib = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
	void (*init)(int), (*door)(void), *inject;
	int (*run)(const char *, void *);

	(void)argc;
	if (!lib)
		return fprintf(stderr, "%s\n", dlerror()), 2;
	*(void **)&init = dlsym(lib, "Py_InitializeEx");
	*(void **)&run = dlsym(lib, "PyRun_SimpleStringFlags");
	inject = dlopen(argv[2], RTLD_NOW);
	*(void **)&door = dlsym(inject, "fake_cuda_door");
	door(); /* before there is an interpreter */
	init(0);
	return run(argv[3], NULL);
}
'''


@case
def embedded_python_is_hooked_from_c(hook):
    need_pending_calls(hook)
    code = 'import sysconfig as s; v = s.get_config_var; print(v("LIBDIR"), v("LDLIBRARY"), ' \
           's.get_path("stdlib"), s.get_config_var("prefix"))'
    with Place() as place:
        folder, name, _, prefix = hook.run_without(place, '-c', code).out.split()
        if not os.path.exists(f'{folder}/{name}') or not name.endswith('.so'):
            raise Skip(f'no shared {name}')
        source = place.write('embed.c', EMBED)
        subprocess.run([os.environ.get('CC', 'cc'), '-o', f'{place.path}/embed', source, '-ldl'],
                       check=True)
        program = LATE.format(lib=fake_torch.write(place, '2'), before='import torch', after=STEP,
                              library=hook.library).replace(
            f'ctypes.CDLL({hook.library!r}).fake_cuda_door()\n', '')
        done = run(place, [f'{place.path}/embed', f'{folder}/{name}', hook.library, program],
                   {**hook.env(), 'PYTHONPATH': '', 'PYTHONHOME': prefix})
        equal((done.seen(), done.calls), ((0, '', ''), ['settled', 'start', 'optimizer']))


if __name__ == '__main__':
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(Hook(*sys.argv[1:])))
