#!/usr/bin/env python3
"""Operators in a trace of real torch, on the CPU, against torch.profiler's of the same steps.

usage: test_torch_ops.py BUILD [PYTHON...]

Every PYTHON (the one in build/deps/torch that 'make torch' makes, this one, the system's, and those
of GTRACE_TEST_TORCH, separated by colons) that has torch is tried. One whose torch.profiler writes
no such traces, as that of Debian's python3-torch, is not compared with it; tests of the command line
alone take the first.
"""

import gzip
import json
import os
import re
import subprocess
import sys

from harness import HERE, Place, Skip, case, equal, main, run

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


# The others are torch's own: since 2.13, and where there is no GPU.
NO_COMPLAINT = re.compile('(?s)(?!.*Exception in RecordFunction callback).*')
NVTX_LINE = re.compile("gtrace: warning: .*: torch's operators come from its NVTX profiler, .*\n"
                       "(USDT:.* profiler_.*\n)*(ERROR:.* gpuGetDeviceCount .*\n)?")


@case
def by_nvtx_they_are_the_same(gtrace):
    """Where they cannot be observed: what each is, how they nest, and its number are known, but for
    autograd's ranges around a node, which have none of their own."""
    def operators(place, **env):
        gtrace.run(place, [python, f'{HERE}/ops_models.py', 'mlp', '8'],
                   ['--skip-first', '3', '--active', '2', '--force'], env,
                   NVTX_LINE if env else '')
        (thread,), _ = told(f'{place.path}/{traces(place)[0]}')
        return [f'{name} {number}' for kind, name, _, number, *_ in thread
                if kind == 'cpu_op' and not name.startswith('autograd::engine::')]

    python = gtrace.torches[0][0]
    with Place() as place:
        found, expected = operators(place, GTRACE_OPS='nvtx'), operators(place)
        equal([pair for pair in zip(found, expected) if pair[0] != pair[1]], [])
        equal(len(found), len(expected))


@case
def by_nvtx_the_programs_own_profiler_has_its_turn(gtrace):
    python = gtrace.torches[0][0]
    with Place() as place:
        script = place.write('own.py', '''
import torch
from torch.autograd.profiler import profile
sgd = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=.1)
for step in range(9):
    while step == 4 and not torch.autograd._profiler_enabled():
        torch.ones(1)  # until ours is on
    if step == 4:
        with profile() as own:
            torch.ones(1)
        print([row.key for row in own.key_averages() if row.key == "aten::ones"])
    sgd.step()
print(torch.autograd._profiler_enabled())
''')
        done = gtrace.run(place, [python, script], ['--skip-first', '3', '--active', '3'],
                          {'GTRACE_OPS': 'nvtx'}, NVTX_LINE)
        equal(done.out, "['aten::ones']\nFalse\n")


@case
def by_nvtx_no_range_loses_the_profiler(gtrace):
    """Torch complains of one that has begun with it and ends without."""
    python = gtrace.torches[0][0]
    with Place() as place:
        script = place.write('range.py', '''
import torch
import gtrace_hook
gtrace_hook.recording(True)
with torch.profiler.record_function("outer"):
    with torch.profiler.record_function("inner"):
        gtrace_hook.recording(False)
        print(torch.autograd._profiler_enabled())
    print(torch.autograd._profiler_enabled())
print(torch.autograd._profiler_enabled())
with torch.profiler.record_function("outer"):
    gtrace_hook.recording(True)
    gtrace_hook.recording(False)
    print(torch.autograd._profiler_enabled())
''')
        # Without operators nobody but the script switches it.
        done = gtrace.run(place, [python, script], ['--activities', 'gpu'], None, NO_COMPLAINT)
        equal(done.out, 'True\nTrue\nFalse\nFalse\n')


@case
def by_nvtx_a_range_may_hold_the_program_s_profiler(gtrace):
    """It begins with ours and ends after the other one: ours is on again for that."""
    python = gtrace.torches[0][0]
    with Place() as place:
        script = place.write('holds.py', '''
import torch
import gtrace_hook
from torch.autograd.profiler import profile, record_function
gtrace_hook.recording(True)
with record_function("outer"):
    with profile() as own:
        with record_function("inner"):
            torch.ones(1)
print([row.key for row in own.key_averages() if row.key != "[memory]"])
''')
        done = gtrace.run(place, [python, script], ['--activities', 'gpu'], None, NO_COMPLAINT)
        equal(done.out, "['inner', 'aten::ones', 'aten::empty', 'aten::fill_']\n")


@case
def by_nvtx_a_program_may_end_in_its_window(gtrace):
    """Torch says nothing of a profiler that is still on."""
    python = gtrace.torches[0][0]
    with Place() as place:
        script = place.write('ends.py', '''
import torch
sgd = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=.1)
for step in range(6):
    while step == 4 and not torch.autograd._profiler_enabled():
        torch.ones(1)  # until ours is on
    sgd.step()
print(torch.autograd._profiler_enabled())
''')
        done = gtrace.run(place, [python, script], ['--skip-first', '3', '--active', '9'],
                          {'GTRACE_OPS': 'nvtx'}, NVTX_LINE)
        equal(done.out, 'True\n')


@case
def for_nsight_they_are_ranges(gtrace):
    """Those of a window, as a stand-in for Nsight Systems hears of them, nest as they do in a trace."""
    python = gtrace.torches[0][0]
    with Place() as place:
        (thread,), _ = told(gtrace.trace(place, python, 'mlp'))
        nsys, log = f'{gtrace.build}/simgpu/nsys', f'{place.path}/log'
        if not os.path.exists(nsys):
            raise Skip('no stand-in for nsys: run make simgpu')
        done = run(place, [f'{gtrace.build}/gtrace', 'run', '--nsight', '--quiet', '--skip-first', '3', '--wait',
                           '0', '--active', str(LAST - FIRST + 1), '--', python, f'{HERE}/ops_models.py', 'mlp',
                           str(STEPS)], {'PATH': f'{nsys}:{os.environ["PATH"]}', 'FAKE_NSYS_LOG': log})
        equal((done.status, done.err), (0, f'gtrace: warning: Nsight Systems was not told to record in step '
                                           f'{FIRST}: CUDA is not in use yet\n'))
        ranges, depth, inside = [], 0, False
        with open(log) as lines:
            for line in lines:
                what, _, text = line.rstrip().partition(' ')
                if what == 'begin':
                    inside = int(text.partition('#')[2]) in range(FIRST, LAST + 1)
                elif what == 'push':
                    if inside:
                        ranges.append((text.partition(':')[2], depth))
                    depth += 1
                elif what == 'pop':
                    depth -= 1
        equal(depth, 0)
        equal(ranges, [(name, level) for _, name, level, *_ in thread])


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
                   err='gtrace: warning: nothing is traced: no process used CUDA or an operator '
                       'of PyTorch\n')
        equal(traces(place), [])


def summary_of(gtrace, path, *options):
    done = subprocess.run([f'{gtrace.build}/gtrace', 'summary', '--format', 'json', *options, path],
                          check=True, capture_output=True)
    return json.loads(done.stdout)['files'][0]


@case
def steps_have_phases(gtrace):
    for python, torch, _ in gtrace.torches:
        with Place() as place:
            steps = summary_of(gtrace, gtrace.trace(place, python, 'loader'))['steps']
            equal((torch, len(steps)), (torch, LAST - FIRST + 1))
            for step in steps:
                phases = step['phases']
                equal((torch, sorted(name for name, us in phases.items() if us <= 0)), (torch, []))
                equal((torch, round(sum(phases.values()), 3)), (torch, step['dur_us']))


LINES = '''
import torch
linear = torch.nn.Linear(64, 64)
def model(x):
    return torch.relu(linear(x))
def train():
    model(torch.ones(8, 64)).sum().backward()
'''


def check_lines(gtrace, torch, path, places):
    """The backward pass is of the line of its forward pass."""
    lines = {row['function']: row for row in summary_of(gtrace, path, '--by', 'line')['lines']
             if row['file'] and row['file'].endswith('lines.py')}
    model, train = lines['model'], lines['train']
    equal((torch, model['line'], train['line']), (torch, *places))
    equal((torch, model['calls']), (torch, 2))  # linear and relu
    assert train['calls'] >= 2, lines  # ones, sum
    assert model['backward_cpu_us'] > 0 and train['backward_cpu_us'] > 0, lines


@case
def lines_of_the_program(gtrace):
    for python, torch, _ in gtrace.torches:
        with Place() as place:
            script = place.write('lines.py', LINES + 'train()\n')
            gtrace.run(place, [python, script], ['--step-source', 'none', '--with-stack'])
            check_lines(gtrace, torch, f'{place.path}/lines-rank0.trace.json.gz', (5, 7))


@case
def lines_where_functions_begin(gtrace):
    """All that torch.profiler writes of stacks."""
    tried = False
    for python, torch, has_kineto in gtrace.torches:
        if not has_kineto:
            continue
        tried = True
        with Place() as place:
            script = place.write('lines.py', LINES + '''
from torch.profiler import profile
with profile(with_stack=True) as prof:
    train()
prof.export_chrome_trace("lines.json")
''')
            done = run(place, [python, script])
            equal((torch, done.status), (torch, 0))
            check_lines(gtrace, torch, f'{place.path}/lines.json', (4, 6))
    if not tried:
        raise Skip('no torch with Kineto')


FRAME = re.compile(r'(.*?)\((\d+)\): ([^;]*);')  # of a "Call stack"


def frames_of(event):
    return [(os.path.basename(file), int(line), function)
            for file, line, function in FRAME.findall(event['args'].get('Call stack', ''))]


@case
def operators_have_the_stacks_that_python_has(gtrace):
    for python, torch, _ in gtrace.torches:
        with Place() as place:
            gtrace.run(place, [python, f'{HERE}/stacks_program.py', 'seen.json'],
                       ['--step-source', 'none', '--with-stack', '--with-modules', '--name', 's'])
            trace = content(f'{place.path}/s-rank0.trace.json.gz')
            seen = content(f'{place.path}/seen.json')
        equal((torch, trace['with_stack'], trace['with_modules']), (torch, 1, 1))
        equal((torch, trace['gtrace']['complete']), (torch, True))
        operators = [event for event in trace['traceEvents'] if event.get('cat') == 'cpu_op']
        operators.sort(key=lambda event: (event['ts'], -event['dur']))
        assert len(seen) > 100
        left = iter(operators)
        for name, frames in seen:
            frames = [(os.path.basename(file), line, function) for file, line, function in frames]
            cut = len(frames) > 128
            for event in left:
                got = frames_of(event)
                if cut and got and got[-1] == ('...', 0, 'outer frames'):
                    assert 64 < len(got) - 1 <= 128
                    got[-1:] = frames[len(got) - 1:]
                if event['name'] == name and got == frames:
                    break
            else:
                raise AssertionError(f'torch {torch}: no {name} in {frames}')
        modules = {event['args'].get('Module Hierarchy') for event in operators}
        equal((torch, modules), (torch, {None, 'Net_0', 'Net_0.Linear_0', 'Net_0.Linear_1'}))
        functions = {event['name'] for event in trace['traceEvents']
                     if event.get('cat') == 'python_function'}
        assert {'nn.Module: Net_0', 'nn.Module: Linear_1'} <= functions, functions
        with open(f'{HERE}/stacks_program.py', encoding='utf-8') as file:
            line = file.read().splitlines().index('def two_lines():') + 1
        assert f'stacks_program.py({line}): two_lines' in functions, functions


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    TORCHES = []
    with Place() as PLACE:
        for PYTHON in sys.argv[2:] or [
                f'{HERE}/../../build/deps/torch/bin/python', *{sys.executable, '/usr/bin/python3'},
                *os.environ.get('GTRACE_TEST_TORCH', '').split(':')]:
            if PYTHON and os.path.exists(PYTHON):
                FOUND = run(PLACE, [PYTHON, '-c', 'import torch; from torch.profiler import *; '
                                    'print(torch.__version__, kineto_available())'])
                if FOUND.status == 0:
                    VERSION, KINETO = FOUND.out.split()
                    TORCHES.append((PYTHON, VERSION, KINETO == 'True'))
    if not TORCHES:
        print("ok - torch's operators # SKIP no Python here has torch; 'make torch' gets it, "
              'GTRACE_TEST_TORCH may name one')
        print('0 passed, 0 failed, 1 skipped')
        sys.exit(0)
    sys.exit(main(Gtrace(sys.argv[1], TORCHES)))
