#!/usr/bin/env python3
"""Operators of real torch by its NVTX profiler, and as ranges for Nsight Systems.

usage: test_torch_nvtx.py BUILD [PYTHON...]     (see torch_traces.py)
"""

import os
import re
import sys

from harness import HERE, Place, Skip, case, equal, run
from torch_traces import FIRST, LAST, STEPS, main_with_torch, told, traces

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


if __name__ == '__main__':
    sys.exit(main_with_torch(__doc__))
