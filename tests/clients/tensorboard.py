#!/usr/bin/env python3
"""TensorBoard's profiler plug-in as a reader of what 'gtrace run --tensorboard' writes: it finds the windows of a
program on the simulated GPU, and counts the same kernels.

Usage: tests/clients/tensorboard.py BUILD. The plug-in comes from PyPI into build/deps/tensorboard; where it cannot be
had, this is skipped. Prints TAP.
"""

import collections
import glob
import gzip
import json
import os
import socket
import subprocess
import sys
import tempfile

from packages import install

# What its loader imports; TensorBoard itself, a web server, is not needed to load a trace.
NEEDS = ['torch-tb-profiler==0.4.3', 'absl-py==2.5.1', 'numpy==2.4.6', 'pandas==3.1.1',
         'python-dateutil==4.0.0', 'six==1.17.0']

# Runs in the venv: by worker and span, the views and the kernels.
LOAD = '''
import json, sys
from torch_tb_profiler import io
from torch_tb_profiler.profiler.loader import RunLoader
if __name__ == '__main__':
    run = RunLoader('run', sys.argv[1], io.Cache()).load()
    print(json.dumps([
        {'worker': worker, 'span': span, 'views': [view.name for view in profile.views],
         'kernels': {row[0]: row[2] for row in profile.kernel_table['data']['rows']}}
        for (worker, span), profile in sorted(run.profiles.items(), key=str)]))
'''


def kernels(path):
    """By name, counted from the JSON."""
    with gzip.open(path) as file:
        events = json.load(file)['traceEvents']
    return collections.Counter(e['name'] for e in events if e['ph'] == 'X' and e['cat'] == 'kernel')


def trace(build, directory):
    """The traces of two windows, in their order."""
    env = {**os.environ, 'LD_LIBRARY_PATH': os.path.abspath(f'{build}/simgpu')}
    subprocess.run([f'{build}/gtrace', 'run', '-q', '--tensorboard', '--repeat', '2', '-n', 'job', '-o', directory,
                    '--', f'{build}/simgpu/train', '--steps', '20'],
                   env=env, check=True, stdout=subprocess.DEVNULL)
    return sorted(glob.glob(f'{directory}/job/*'))


def main():
    python, why = install('tensorboard', ['--no-deps', *NEEDS])
    if not python:
        print(f'ok - TensorBoard loads the traces # SKIP {why}')
        return 0
    with tempfile.TemporaryDirectory() as directory:
        paths = trace(sys.argv[1], directory)
        # A file, since it starts processes that import it.
        script = f'{directory}/load.py'
        with open(script, 'w') as file:
            file.write(LOAD)
        done = subprocess.run([python, script, f'{directory}/job'], stdout=subprocess.PIPE, text=True)
        want = [kernels(path) for path in paths]
    if done.returncode:
        print('not ok - TensorBoard loads the traces')
        return 1
    seen = json.loads(done.stdout.splitlines()[-1])
    print(f'# TensorBoard: {seen}\n# files: {want}')
    host = socket.gethostname().replace('/', '_')[:64]
    results = {
        'TensorBoard loads the traces': len(seen) == len(paths) == 2,
        'TensorBoard finds each window of a rank of a machine':
            [(one['worker'], int(one['span'])) for one in seen] == [(f'{host}_rank0', 1), (f'{host}_rank0', 2)],
        'TensorBoard counts the same kernels': [one['kernels'] for one in seen] == want and all(want),
        'TensorBoard has its views': all({'overall', 'operator', 'kernel', 'trace'} <= set(one['views'])
                                         for one in seen),
    }
    for name, good in results.items():
        print(f'{"ok" if good else "not ok"} - {name}')
    return 0 if all(results.values()) else 1


if __name__ == '__main__':
    sys.exit(main())
