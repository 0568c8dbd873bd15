"""Cases that print TAP, programs run with and without the hook, and what they called."""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
import zipapp

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT_S = 120

_cases = []


def case(function):
    _cases.append(function)
    return function


class Skip(Exception):
    """Why this case cannot run here."""


def main(*args):
    """Run the cases with args, or those with GTRACE_TEST_ONLY in their name; TAP, then the sum.
    The exit status is 1 when one failed."""
    passed = failed = skipped = 0
    only = os.environ.get('GTRACE_TEST_ONLY', '')
    for function in _cases:
        if only not in function.__name__:
            continue
        name = function.__name__.replace('_', ' ')
        try:
            function(*args)
            passed += 1
            print(f'ok - {name}', flush=True)
        except Skip as why:
            skipped += 1
            print(f'ok - {name} # SKIP {why}', flush=True)
        except Exception:
            failed += 1
            print(f'not ok - {name}')
            print('# ' + traceback.format_exc().rstrip().replace('\n', '\n# '), flush=True)
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed else 0


def equal(got, wanted):
    if got != wanted:
        raise AssertionError(f'got {got!r}, not {wanted!r}')


class Place:
    """A directory of its own for one case, gone with it."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix='gtrace-hook-')
        return self

    def __exit__(self, *error):
        shutil.rmtree(self.path, ignore_errors=True)

    def write(self, name, text):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w') as out:
            out.write(text)
        return path


class Done:
    """What a program left behind: status, out, err, and the calls it made as 'what' words."""

    def __init__(self, process, log):
        self.status = process.returncode
        self.out = process.stdout
        self.err = process.stderr
        self.lines = log

    @property
    def calls(self):
        return [line.split()[0] for line in self.lines]

    def seen(self):
        return self.status, self.out, self.err


def run(place, argv, env=None, log='calls'):
    """Run argv in place; its environment is ours without the variables of Python, gtrace and
    launchers."""
    path = os.path.join(place.path, log)
    if os.path.exists(path):
        os.unlink(path)
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(('PYTHON', 'GTRACE_', 'FAKE_', 'LD_', 'RANK', 'WORLD_SIZE', 'OMPI_',
                                     'PMI', 'SLURM_'))}
    process = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             cwd=place.path, timeout=TIMEOUT_S,
                             env={**clean, 'FAKE_LOG': path, 'PYTHONDONTWRITEBYTECODE': '1',
                                  **(env or {})})
    lines = open(path).read().splitlines() if os.path.exists(path) else []
    return Done(process, lines)


class Hook:
    """Runs Python programs as 'gtrace run' would, with a stand-in for the injection library."""

    def __init__(self, build, python=sys.executable):
        build = os.path.abspath(build)
        self.library = f'{build}/tests/libfake-inject.so'
        self.folder = f'{build}/python'
        self.python = python

    @functools.cached_property
    def version(self):
        done = subprocess.run([self.python, '-c', 'import sys; print(*sys.version_info[:2])'],
                              capture_output=True, text=True, check=True)
        return tuple(int(number) for number in done.stdout.split())

    def env(self, path=(), **more):
        return {'GTRACE_INJECTION': self.library, 'GTRACE_PYTHON_DIR': self.folder,
                'PYTHONPATH': os.pathsep.join([self.folder, *path]), **more}

    def run(self, place, *argv, path=(), python=None, **more):
        return run(place, [python or self.python, *argv], self.env(path, **more))

    def run_without(self, place, *argv, path=(), python=None, **more):
        return run(place, [python or self.python, *argv],
                   {'PYTHONPATH': os.pathsep.join(path), **more} if path else more)

    def same(self, place, *argv, **how):
        """The program ends, and says, the same with the hook and without; returns what it did."""
        done = self.run(place, *argv, **how)
        equal(done.seen(), self.run_without(place, *argv, **how).seen())
        return done


WAYS = ['script', '-c', '-m', 'stdin', 'zipapp', 'directory']


def run_as(hook, place, way, code, **how):
    """What code did when it was started in one of the WAYS."""
    folder = os.path.dirname(place.write('app/__main__.py', code))
    if way == 'script':
        argv = [f'{folder}/__main__.py']
    elif way == '-c':
        argv = ['-c', code]
    elif way == '-m':
        argv = ['-m', 'app']
    elif way == 'directory':
        argv = [folder]
    elif way == 'zipapp':
        zipapp.create_archive(folder, f'{place.path}/app.pyz')
        argv = [f'{place.path}/app.pyz']
    else:
        argv = ['-c', 'import subprocess, sys; sys.exit(subprocess.run([sys.executable, "-"], '
                      f'input={code!r}.encode()).returncode)']
    return hook.run(place, *argv, **how)
