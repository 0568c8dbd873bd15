#!/usr/bin/env python3
"""Ranks started by torchrun, accelerate and multiprocessing, with one gtrace for all and with one
for each, in real torch on the CPU.

usage: test_launchers.py BUILD [PYTHON...]

The first PYTHON (that of 'make torch', those of GTRACE_TEST_TORCH, separated by colons) that has
torch is taken, or what else a case needs.
"""

import gzip
import json
import os
import sys

from harness import HERE, Place, Skip, case, equal, main, run

SCRIPT = f'{HERE}/launched.py'
GPU = f'{os.path.dirname(HERE)}/gpu'
ENDS_AT_ONCE = 'import os, runpy\nrunpy.run_path(%r, run_name="__main__")\nos._exit(0)\n'  # see launched.py
TORCHRUN = ['-m', 'torch.distributed.run', '--standalone', '--local-addr', '127.0.0.1',
            '--nproc-per-node', '2']


class Launchers:
    def __init__(self, build, pythons):
        self.build = os.path.abspath(build)
        self.pythons = pythons

    def python(self, place, *modules):
        """The first one that has them all."""
        found = 'import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))'
        for python in self.pythons:
            if not run(place, [python, '-c', found, *modules]).status:
                return python
        raise Skip(f"no Python here has {' and '.join(modules)}")

    def gtrace(self, *options):
        return [f'{self.build}/gtrace', 'run', '-n', 'job', *options, '--']

    def run(self, place, argv, **env):
        done = run(place, argv, {
            **env,
            'GTRACE_INJECTION': f'{self.build}/libgtrace-inject.so', 'HOME': place.path,
            'GLOO_SOCKET_IFNAME': 'lo', 'OMP_NUM_THREADS': '1', 'TORCH_CPP_LOG_LEVEL': 'ERROR'})
        if done.status:
            raise AssertionError(f'{argv}: status {done.status}: {done.err}')
        return done


def traces(place, name='job'):
    return sorted(file for file in os.listdir(place.path)
                  if file.startswith(name + '-rank') and file.endswith('.gz'))


def expect_ranks(place, source, name='job'):
    """One whole trace of each of two ranks, and nothing else."""
    equal(traces(place, name), [f'{name}-rank{rank}.trace.json.gz' for rank in (0, 1)])
    for rank in 0, 1:
        with gzip.open(f'{place.path}/{name}-rank{rank}.trace.json.gz') as file:
            trace = json.load(file)
        group = trace['distributedInfo']
        equal((group['rank'], group.get('world_size')), (rank, 2))
        equal((trace['gtrace']['rank_source'], trace['gtrace']['complete']), (source, True))
        steps = {event['name'] for event in trace['traceEvents']
                 if event['name'].startswith('ProfilerStep#')}
        equal(steps, {f'ProfilerStep#{step}' for step in (3, 4, 5)})
        assert any(event['name'] == 'aten::addmm' for event in trace['traceEvents'])


def expect_one_voice(err):
    """Of one gtrace for each rank only one tells what it does."""
    for line in 'gtrace: tracing', 'gtrace: window open', 'is complete':
        equal((line, err.count(line)), (line, 1))
    assert 'warning' not in err.replace('FutureWarning', ''), err


@case
def gtrace_run_torchrun(launchers):
    with Place() as place:
        python = launchers.python(place, 'torch')
        done = launchers.run(place, [*launchers.gtrace(), python, *TORCHRUN, SCRIPT])
        expect_ranks(place, 'RANK')
        expect_one_voice(done.err)


@case
def torchrun_gtrace_run(launchers):
    """Twice: the second job has names of its own, the same for both ranks."""
    with Place() as place:
        python = launchers.python(place, 'torch')
        for name in 'job', 'job-2':
            done = launchers.run(place, [python, *TORCHRUN, '--no-python', *launchers.gtrace(),
                                         python, SCRIPT])
            expect_ranks(place, 'RANK', name)
            expect_one_voice(done.err)
        equal([file for file in os.listdir(place.path) if file.startswith('.job')], [])


def multiprocessing_ranks(how):
    def test(launchers):
        with Place() as place:
            python = launchers.python(place, 'torch')
            launchers.run(place, [*launchers.gtrace(), python, SCRIPT, how])
            expect_ranks(place, 'torch.distributed')
    test.__name__ = f'ranks_of_multiprocessing_{how}'
    case(test)


for HOW in 'spawn', 'forkserver', 'server':
    multiprocessing_ranks(HOW)


@case
def accelerate_launch(launchers):
    with Place() as place:
        python = launchers.python(place, 'torch', 'accelerate')
        launchers.run(place, [*launchers.gtrace(), python, '-m', 'accelerate.commands.launch', '--multi_gpu',
                              '--num_processes', '2', '--num_machines', '1', '--main_process_port', '0',
                              '--mixed_precision', 'no', '--dynamo_backend', 'no',
                              place.write('it.py', ENDS_AT_ONCE % f'{GPU}/frameworks/accelerated.py'), '20'],
                      ACCELERATE_USE_CPU='true')
        expect_ranks(place, 'RANK')


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(Launchers(sys.argv[1], [
        python for python in sys.argv[2:] or [f'{HERE}/../../build/deps/torch/bin/python',
                                              *os.environ.get('GTRACE_TEST_TORCH', '').split(':')]
        if python and os.path.exists(python)])))
