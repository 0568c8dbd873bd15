#!/usr/bin/env python3
"""lib/gtrace.h as a program of somebody else uses it: every language, no flag, nothing to link.

usage: test_gtrace_h.py BUILD
"""

import os
import shutil
import subprocess
import sys

from harness import HERE, Hook, Place, Skip, case, equal, main, run

HEADER = os.path.join(os.path.dirname(os.path.dirname(HERE)), 'lib')
WARNINGS = ['-Wall', '-Wextra', '-Wshadow', '-Wpedantic', '-Wundef', '-Wconversion', '-Werror']

# Two units, because each has its own copy; the second one calls dlopen() as well.
ONE = '''
#include "gtrace.h"
void other(void);
int main(void) { gtrace_step(); other(); gtrace_step(); return 3; }
'''
OTHER = '''
#include "gtrace.h"
#include "gtrace.h"
#include <dlfcn.h>
#include <stdlib.h>
void other(void);
void other(void) { gtrace_step(); if (!dlopen(0, RTLD_NOW)) abort(); }
'''
STEPS = ['start', 'step', 'start', 'step', 'step']


def build(place, compiler, *flags, suffix='c', one=ONE, other=OTHER):
    if not shutil.which(compiler):
        raise Skip(f'no {compiler}')
    program = f'{place.path}/program'
    units = [place.write(f'{name}.{suffix}', text)
             for name, text in (('one', one), ('other', other)) if text]
    done = subprocess.run([compiler, *flags, f'-I{HEADER}', '-o', program, *units],
                          capture_output=True, text=True)
    equal((done.returncode, done.stderr), (0, ''))
    return program


def check_steps(hook, place, program, calls):
    traced = run(place, [program], {'GTRACE_INJECTION': hook.library})
    equal((traced.seen(), traced.calls), ((3, '', ''), calls))
    if calls:
        equal(traced.lines[0].split()[1], '4')  # GT_DOOR_API
    for env, called in (({}, []), ({'GTRACE_INJECTION': ''}, []),
                        ({'GTRACE_INJECTION': '/nowhere.so'}, []),
                        ({'GTRACE_INJECTION': '/dev/null'}, []),
                        ({'GTRACE_INJECTION': hook.library, 'FAKE_TRACED': '0'},
                         [call for call in calls if call == 'start'])):
        done = run(place, [program], env)
        equal((done.seen(), done.calls), ((3, '', ''), called))


def in_every(hook, compiler, standards, suffix):
    for standard in standards:
        for level in '-O0', '-O2':
            with Place() as place:
                program = build(place, compiler, f'-std={standard}', level, *WARNINGS, suffix=suffix)
                check_steps(hook, place, program, STEPS)


@case
def gcc_c(hook):
    in_every(hook, 'gcc', ['gnu89', 'gnu99', 'c99', 'c11', 'gnu17'], 'c')


@case
def clang_c(hook):
    in_every(hook, 'clang', ['gnu89', 'c99', 'gnu17'], 'c')


@case
def gcc_cpp(hook):
    in_every(hook, 'g++', ['c++11', 'gnu++17', 'c++20'], 'cc')


@case
def clang_cpp(hook):
    in_every(hook, 'clang++', ['c++11', 'gnu++17'], 'cc')


@case
def nvcc(hook):
    with Place() as place:
        compiler = shutil.which('nvcc') or '/usr/local/cuda/bin/nvcc'
        check_steps(hook, place, build(place, compiler, suffix='cu', one=ONE + '''
__global__ void kernel() { gtrace_step(); }
'''), STEPS)


@case
def elsewhere_it_does_nothing(hook):
    with Place() as place:
        check_steps(hook, place, build(place, 'gcc', '-U__linux__', *WARNINGS, other='', one='''
#include "gtrace.h"
int main(void) { gtrace_step(); return 3; }
'''), [])


@case
def threads_may_begin_together(hook):
    with Place() as place:
        program = build(place, 'gcc', '-pthread', *WARNINGS, other='', one='''
#include "gtrace.h"
#include <pthread.h>
static pthread_barrier_t together;
static void *mark(void *arg)
{
	pthread_barrier_wait(&together);
	gtrace_step();
	return arg;
}
int main(void)
{
	pthread_t threads[8];
	int i;

	pthread_barrier_init(&together, NULL, 8);
	for (i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, mark, NULL);
	for (i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	return 3;
}
''')
        done = run(place, [program], {'GTRACE_INJECTION': hook.library})
        equal((done.seen(), done.calls.count('step')), ((3, '', ''), 8))


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Hook(sys.argv[1])))
