#!/usr/bin/env python3
"""Operators in a trace of real torch, on the CPU, against torch.profiler's of the same steps.

usage: test_torch_ops.py BUILD [PYTHON...]     (see torch_traces.py)

A torch whose torch.profiler writes no such traces, as that of Debian's python3-torch, is not compared
with it.
"""

import json
import subprocess
import sys

from harness import HERE, Place, Skip, case, equal, run
from torch_traces import (FIRST, INPUTS, LAST, STEPS, content, events, main_with_torch, told, traces)


def of_tensors_alone(row):
    """Of what an autograd.Function of the program is given, torch shows all but to its own
    profiler, and to others the tensors."""
    inputs = [value for value in zip(*row[-len(INPUTS):]) if value[2] != 'Scalar']
    return (*row[:-len(INPUTS)], *[list(column) for column in zip(*inputs)])


def compare(gtrace, name, options, version=(1,)):
    tried = False
    for python, torch, has_kineto in gtrace.torches:
        if not has_kineto or tuple(int(n) for n in torch.split('.')[:2]) < version:
            continue
        tried = True
        with Place() as place:
            theirs = f'{place.path}/theirs.json'
            done = run(place, [python, f'{HERE}/ops_models.py', name, str(STEPS), str(FIRST),
                               str(LAST), theirs])
            equal((torch, done.status), (torch, 0))
            (got, got_arrows), (want, want_arrows) = \
                told(gtrace.trace(place, python, name, options)), told(theirs)
            equal((torch, len(got)), (torch, len(want)))
            for thread, rows in enumerate(want):
                for row, wanted in enumerate(rows):
                    if name == 'own_operators' and wanted[1] == 'CheckpointFunction':
                        wanted = of_tensors_alone(wanted)
                    equal((torch, thread, row, got[thread][row:row + 1]),
                          (torch, thread, row, [wanted]))
                equal((torch, thread, got[thread][len(rows):]), (torch, thread, []))
            equal((torch, got_arrows), (torch, want_arrows))
            assert got_arrows, 'no arrow'
            with open(theirs + '.calls') as file:
                yield torch, place, dict(json.load(file))
    if not tried:
        raise Skip(f'no torch of version {".".join(map(str, version))} with Kineto')


def same_as_torch(name, memory=False, **how):
    def test(gtrace):
        options = ['--activities', 'cpu,mem'] if memory else []
        for torch, place, calls in compare(gtrace, name, options, **how):
            summary = subprocess.run(
                [f'{gtrace.build}/gtrace', 'summary', '--by', 'op', '--format', 'json',
                 f'{place.path}/{name}-rank0.trace.json.gz'], check=True, capture_output=True)
            (file,) = json.loads(summary.stdout)['files']
            # Before, torch made floats of times, by which blocks are those of a neighbour.
            exact = memory and tuple(int(n) for n in torch.split('.')[:2]) >= (2, 11)
            got = {row['name']: [row['calls'], row['flops'], row['self_cpu_mem'] if exact else None]
                   for row in file['ops'] if not row['user_annotation'] and row['name'] != '[memory]'}
            want = {row: [*told[:2], told[2] if exact else None] for row, told in calls.items()
                    if row != '[memory]' and (memory or row != '[OutOfMemory]')}
            equal((torch, got), (torch, want))
            equal((torch, any(row[2] for row in got.values())), (torch, exact))
    test.__name__ = 'operators_of_' + name
    case(test)


for NAME in 'mlp two_optimizers accumulation own_operators'.split():
    same_as_torch(NAME)
for NAME in 'cnn transformer loader exceptions odd_inputs'.split():
    same_as_torch(NAME, memory=True)
same_as_torch('threads', version=(2, 6))  # since then torch.profiler can follow all threads


@case
def every_operator_has_its_arguments(gtrace):
    python = gtrace.torches[0][0]
    with Place() as place:
        slices = [event for event in events(gtrace.trace(place, python, 'mlp'))
                  if event.get('cat') == 'cpu_op']
        ids = [event['args']['External id'] for event in slices]
        equal(len(set(ids)), len(ids))
        for event in slices:
            args = event['args']
            equal((args['Record function id'], args['Ev Idx']), (0, args['External id'] - 1))
            equal('Sequence number' in args, 'Fwd thread id' in args)


@case
def steps_hold_their_optimizer(gtrace):
    """The mark is made inside of record_function(); it is whole and in the step that it ends."""
    python = gtrace.torches[0][0]
    with Place() as place:
        found = events(gtrace.trace(place, python, 'mlp'))
        steps = [e for e in found if e['name'].startswith('ProfilerStep#') and e['pid'] != 0]
        optimizers = [e for e in found if e['name'] == 'Optimizer.step#SGD.step']
        equal(sorted(e['name'] for e in steps), [f'ProfilerStep#{n}' for n in (FIRST, LAST)])
        equal(len(optimizers), len(steps))
        for step, optimizer in zip(sorted(steps, key=lambda e: e['ts']),
                                   sorted(optimizers, key=lambda e: e['ts'])):
            assert step['ts'] <= optimizer['ts'], (step, optimizer)
            assert optimizer['ts'] + optimizer['dur'] <= step['ts'] + step['dur'] + .002


@case
def without_operators_when_not_asked_for(gtrace):
    python = gtrace.torches[0][0]
    with Place() as place:
        found = events(gtrace.trace(place, python, 'mlp', ['--activities', 'gpu']))
        equal([event for event in found if event.get('cat') == 'cpu_op'], [])


@case
def without_shapes_or_flops_when_not_asked_for(gtrace):
    python = gtrace.torches[0][0]
    for options, shapes, flops in ([], 1, 1), (['--no-flops'], 1, None), (['--no-shapes'], None, None):
        with Place() as place:
            trace = content(gtrace.trace(place, python, 'mlp', options))
            equal((trace.get('record_shapes'), trace.get('with_flops')), (shapes, flops))
            found = [event for event in trace['traceEvents'] if event['name'] == 'aten::addmm']
            assert found
            for event in found:
                equal([key in event['args'] for key in INPUTS], [bool(shapes)] * len(INPUTS))


@case
def a_program_without_steps_is_one(gtrace):
    python = gtrace.torches[0][0]
    with Place() as place:
        script = place.write('infer.py', 'import torch\nfor _ in range(3):\n'
                                         '    torch.add(torch.ones(1), 1)\n')
        gtrace.run(place, [python, script], ['--step-source', 'none'])
        found = events(f'{place.path}/infer-rank0.trace.json.gz')
        equal([event['name'] for event in found if event.get('cat') == 'cpu_op'].count('aten::add'),
              3)


@case
def memory_of_a_whole_program(gtrace):
    """From its first operator on, and what processes share; and nothing on stderr of what is freed."""
    for python, torch, _ in gtrace.torches:
        with Place() as place:
            script = place.write('memory.py', '''
import torch
big = torch.ones(1000)
torch.ones(10).share_memory_()
try:
    torch.empty(1 << 60, dtype=torch.uint8)
except RuntimeError:
    del big
''')
            gtrace.run(place, [python, script], ['--step-source', 'none', '--activities', 'cpu,mem'])
            trace = content(f'{place.path}/memory-rank0.trace.json.gz')
            equal((torch, trace['profile_memory']), (torch, 1))
            found = [event for event in trace['traceEvents'] if event.get('cat') == 'cpu_instant_event']
            equal((torch, [(e['name'], e['args']['Bytes']) for e in found]), (torch, [
                ('[memory]', 4000), ('[memory]', 40), ('[memory]', 40), ('[memory]', -40),
                ('[memory]', -40), ('[OutOfMemory]', 1 << 60), ('[memory]', -4000)]))
            equal((torch, {(e['args']['Device Type'], e['args']['Device Id']) for e in found}),
                  (torch, {(0, -1)}))
            by_address = {}
            for event in found[:5] + found[6:]:
                by_address.setdefault(event['args']['Addr'], []).append(event['args']['Bytes'])
            equal((torch, [sum(sizes) for sizes in by_address.values()]), (torch, [0, 0, 0]))


@case
def workers_and_launchers_have_no_trace(gtrace):
    python = gtrace.torches[0][0]
    with Place() as place:
        script = place.write('load.py', '''
import torch
from torch.utils.data import DataLoader, TensorDataset
if __name__ == "__main__":
    for context in "fork", "spawn":
        for batch in DataLoader(TensorDataset(torch.arange(8.)), num_workers=2, batch_size=2,
                                multiprocessing_context=context):
            pass
''')
        gtrace.run(place, [python, script], ['--step-source', 'none'])
        equal(traces(place), ['load-rank0.trace.json.gz'])
    with Place() as place:
        gtrace.run(place, [python, '-c', 'import torch; print(torch.__version__)'],
                   err='gtrace: warning: nothing is traced: no traced process used CUDA or an '
                       'operator of PyTorch\n')
        equal(traces(place), [])


if __name__ == '__main__':
    sys.exit(main_with_torch(__doc__))
