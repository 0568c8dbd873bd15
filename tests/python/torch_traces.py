"""Traces of real torch, on the CPU.

A test of it is run as 'test_NAME.py BUILD [PYTHON...]'. Every PYTHON (the one in build/deps/torch that
'make torch' makes, this one, the system's, and those of GTRACE_TEST_TORCH, separated by colons) that
has torch is tried; tests of the command line alone take the first.
"""

import gzip
import json
import os
import sys

from harness import HERE, Place, equal, main, run

FIRST, LAST, STEPS = 4, 5, 8
INPUTS = 'Input Dims', 'Input Strides', 'Input type', 'Concrete Inputs'
TOLD = ('Sequence number', 'Fwd thread id', *INPUTS)
LANES = 10000000  # from one lane of a thread to the next, see gtrace-trace(5)


class Gtrace:
    def __init__(self, build, torches):
        self.build = os.path.abspath(build)
        self.torches = torches

    def run(self, place, argv, options=(), env=None, err=''):
        command = [f'{self.build}/gtrace', 'run', '--quiet', *options, '--', *argv]
        done = run(place, command, {'GTRACE_INJECTION': f'{self.build}/libgtrace-inject.so',
                                    **(env or {})})
        if not isinstance(err, str):  # a pattern
            err = done.err if err.fullmatch(done.err) else err.pattern
        equal((done.status, done.err), (0, err))
        return done

    def trace(self, place, python, name, options=()):
        self.run(place, [python, f'{HERE}/ops_models.py', name, str(STEPS)],
                 ['--skip-first', '3', '--wait', '0', '--warmup', '1', '--active',
                  str(LAST - FIRST + 1), '--name', name, '--force', *options])
        return f'{place.path}/{name}-rank0.trace.json.gz'


def traces(place):
    return sorted(name for name in os.listdir(place.path) if name.endswith('.trace.json.gz'))


def content(path):
    with open(path, 'rb') as file:
        data = file.read()
    if data.startswith(b'\x1f\x8b'):
        data = gzip.decompress(data)
    return json.loads(data)


def events(path):
    return content(path)['traceEvents']


def told(path):
    """What a trace says of operators, without times and the numbers of threads: for each thread,
    in the order of time, category, name, depth, sequence number, forward thread and inputs; and the
    arrows, as positions of both operators."""
    threads, arrows, places = {}, {}, {}
    for event in events(path):
        if event.get('cat') in ('cpu_op', 'user_annotation') and event['ph'] == 'X' and \
                not event['name'].startswith('ProfilerStep'):
            threads.setdefault(event['tid'] % LANES, []).append(event)
        elif event.get('cat') == 'fwdbwd':
            arrows.setdefault(event['id'], {})[event['ph']] = (event['tid'] % LANES, event['ts'])
    told_threads = []
    for tid, slices in sorted(threads.items(), key=lambda item: min(e['ts'] for e in item[1])):
        slices.sort(key=lambda event: (event['ts'], -event['dur']))
        rows, ends = [], []
        for event in slices:
            while ends and ends[-1] <= event['ts']:
                ends.pop()
            places[tid, event['ts']] = len(told_threads), len(rows)
            rows.append((event['cat'], event['name'], len(ends),
                         *[event['args'].get(key) for key in TOLD]))
            ends.append(event['ts'] + event['dur'])
        told_threads.append(rows)
    return told_threads, sorted((places[ends['s']], places[ends['f']]) for ends in arrows.values())


def torches_of(pythons):
    """(python, version of torch, whether its torch.profiler writes traces by Kineto) of each."""
    found = []
    with Place() as place:
        for python in pythons:
            if python and os.path.exists(python):
                done = run(place, [python, '-c', 'import torch; from torch.profiler import *; '
                                   'print(torch.__version__, kineto_available())'])
                if done.status == 0:
                    version, kineto = done.out.split()
                    found.append((python, version, kineto == 'True'))
    return found


def main_with_torch(doc):
    """The cases of a test with this text; the exit status."""
    if len(sys.argv) < 2:
        sys.exit(doc)
    torches = torches_of(sys.argv[2:] or [
        f'{HERE}/../../build/deps/torch/bin/python', *{sys.executable, '/usr/bin/python3'},
        *os.environ.get('GTRACE_TEST_TORCH', '').split(':')])
    if not torches:
        print("ok - torch's operators # SKIP no Python here has torch; 'make torch' gets it, "
              'GTRACE_TEST_TORCH may name one')
        print('0 passed, 0 failed, 1 skipped')
        return 0
    return main(Gtrace(sys.argv[1], torches))
