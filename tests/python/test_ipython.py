#!/usr/bin/env python3
"""%load_ext gtrace in a real IPython, which comes from PyPI into build/deps/ipython; where it cannot be had, this is
skipped.

usage: test_ipython.py BUILD
"""

import os
import subprocess
import sys

from harness import Hook, Place, Skip, case, equal, main, run

VENV = 'build/deps/ipython'
NEEDS = ['ipython==8.39.0', 'asttokens==3.0.2', 'decorator==5.3.1', 'executing==2.3.0', 'jedi==0.20.1',
         'matplotlib-inline==0.2.2', 'parso==0.8.7', 'pexpect==4.9.0', 'prompt_toolkit==3.0.53', 'ptyprocess==0.7.0',
         'pure_eval==0.2.4', 'Pygments==2.21.0', 'stack-data==0.6.3', 'traitlets==5.16.1',
         'typing_extensions==4.16.0', 'wcwidth==0.9.4']

# Runs the cells of a notebook until one fails, and says how each ended.
NOTEBOOK = '''
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
for cell in %r:
    result = shell.run_cell(cell)
    print(result.success)
    if not result.success:
        break
'''


def install():
    """The venv's python; Skip when it cannot be had."""
    python = os.path.abspath(f'{VENV}/bin/python')
    if os.path.exists(f'{VENV}/ready'):
        return python
    for command in ([sys.executable, '-m', 'venv', '--clear', VENV],
                    [python, '-m', 'pip', '--quiet', '--disable-pip-version-check', 'install', '--no-deps', *NEEDS]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Skip((done.stdout.strip().splitlines() or [f'{command[0]} failed'])[-1])
    open(f'{VENV}/ready', 'w').close()
    return python


def tell(done):
    return [line.rpartition(' ')[0] for line in done.lines]


def notebook(place, *cells):
    return place.write('notebook.py', NOTEBOOK % (cells,))


@case
def without_gtrace_a_cell_is_a_cell(hook):
    with Place() as place:
        script = notebook(place, '%load_ext gtrace', '%%gtrace\nx = 5\nx + 1', 'x')
        done = run(place, [hook.python, script], {'PYTHONPATH': hook.folder, 'IPYTHONDIR': place.path})
        equal((done.seen(), done.calls), ((0, 'True\nOut[1]: 6\nTrue\nOut[1]: 5\nTrue\n', ''), []))


@case
def a_cell_is_a_range_and_a_step(hook):
    with Place() as place:
        script = notebook(place, '%load_ext gtrace', '%%gtrace\nx = 5', '%%gtrace  two words \nprint(x)')
        done = hook.run(place, script, FAKE_RANGES='1', IPYTHONDIR=place.path)
        equal(done.seen(), (0, 'True\nTrue\n5\nTrue\n', ''))
        equal(tell(done), ['start 4', 'step 0', 'push cell', 'pop 0', 'step 0',
                           'step 0', 'push two words', 'pop 0', 'step 0'])


@case
def a_captured_range_has_the_programs_steps(hook):
    with Place() as place:
        script = notebook(place, '%load_ext gtrace', '%%gtrace\nimport gtrace\ngtrace.step()')
        done = hook.run(place, script, FAKE_RANGES='1', IPYTHONDIR=place.path, GTRACE_CAPTURE='nvtx:^cell')
        equal(done.seen(), (0, 'True\nTrue\n', ''))
        equal(tell(done), ['start 4', 'push cell', 'step 0', 'pop 0'])


@case
def a_cell_that_fails_is_shown_once_and_ends_the_notebook(hook):
    for cell, error in ('1/0', 'ZeroDivisionError'), ('for', 'SyntaxError'):
        with Place() as place:
            script = notebook(place, '%load_ext gtrace', f'%%gtrace\n{cell}', 'print("on")')
            done = hook.run(place, script, FAKE_RANGES='1', IPYTHONDIR=place.path)
            equal((done.status, done.err, done.out.splitlines()[-1]), (0, '', 'False'))
            equal(done.out.count(f'{error}: '), 1)
            equal(tell(done), ['start 4', 'step 0', 'push cell', 'pop 0', 'step 0'])


@case
def each_cell_has_a_file(hook):
    """The real library, as gtrace-python(3) has it."""
    with Place() as place:
        script = notebook(place, '%load_ext gtrace', '%%gtrace\n1', '2', '%%gtrace cell two\n3')
        subprocess.run([f'{hook.build}/gtrace', 'run', '-q', '--capture-range', 'nvtx:^cell', '--capture-end', 'repeat',
                        '--', hook.python, script],
                       check=True, cwd=place.path, stdout=subprocess.DEVNULL, env={**os.environ, 'IPYTHONDIR': place.path})
        names = []
        for cycle in 1, 2:
            done = subprocess.run([f'{hook.build}/gtrace', 'summary', '--by', 'annotation', '--format', 'csv',
                                   f'{place.path}/notebook-rank0-cycle{cycle}.trace.json.gz'],
                                  check=True, capture_output=True, text=True)
            names += [line.split(',')[-1] for line in done.stdout.splitlines()[1:]]
        equal(names, ['"cell"', '"cell two"'])


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        HOOK = Hook(sys.argv[1], install())
    except Skip as why:
        print(f'ok - IPython # SKIP {why}')
        sys.exit(0)
    HOOK.build = os.path.abspath(sys.argv[1])
    sys.exit(main(HOOK))
