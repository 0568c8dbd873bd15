#!/usr/bin/env python3
"""What an operator of torch costs: ns a call of the cheapest one, torch.add() of two numbers, 20
Python functions deep: plain, traced but outside of the window, and in the window with and without
what can be told of it; and the same under torch.profiler.

usage: ops.py BUILD PYTHON [ROUNDS]

PYTHON has torch. The processes of each kind take turns; each figure is the median of their best.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

FIRST, ACTIVE, STEPS = 6, 6, 20
PROGRAM = f'''
import json, sys, time
import torch
torch.set_num_threads(1)
a, b, add = torch.ones(1), torch.ones(1), torch.add
parameter = torch.nn.Parameter(torch.ones(1))
parameter.grad = torch.ones(1)
sgd = torch.optim.SGD([parameter], lr=0)

def best(calls=2000, rounds=8):
    found = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        for _ in range(calls):
            add(a, b)
        found.append((time.perf_counter_ns() - start) / calls)
    return min(found)

def deep(depth=20):
    return deep(depth - 1) if depth else best()

steps = []
if sys.argv[1] == "profiler":
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                **dict.fromkeys(sys.argv[2:], True)):
        deep()
        steps = [deep()]
else:
    for _ in range({STEPS}):
        steps.append(deep())
        sgd.step()
        time.sleep(0.05)  # what was recorded is written
print(json.dumps(steps))
'''


def run(argv):
    return json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)


WINDOWS = {
    'in the window': (['--no-shapes'], []),
    'with shapes': ([], ['record_shapes']),
    'with stacks': (['--no-shapes', '--with-stack'], ['with_stack']),
    'with modules': (['--no-shapes', '--with-modules'], []),
}


def main(build, python, rounds=5):
    found = {}
    with tempfile.TemporaryDirectory() as place:
        gtrace = [f'{os.path.abspath(build)}/gtrace', 'run', '-q', '-o', place, '--force', '--wait', '0',
                  '--skip-first', str(FIRST - 1), '--active', str(ACTIVE)]
        program = [python, '-c', PROGRAM]
        for _ in range(int(rounds)):
            found.setdefault('plain', []).append(min(run([*program, 'plain'])))
            for name, (options, profiler_options) in WINDOWS.items():
                steps = run([*gtrace, *options, '--', *program, 'traced'])
                if not profiler_options and name == 'in the window':
                    # before the first step all is recorded
                    found.setdefault('before the window', []).append(min(steps[1:FIRST - 1]))
                    found.setdefault('after it', []).append(min(steps[FIRST + ACTIVE + 1:]))
                found.setdefault(name, []).append(min(steps[FIRST:FIRST + ACTIVE]))
                if profiler_options or name == 'in the window':
                    found.setdefault(' '.join(['torch.profiler', *profiler_options]), []).extend(
                        run([*program, 'profiler', *profiler_options]))
    base = statistics.median(found['plain'])
    for name, figures in found.items():
        ns = statistics.median(figures)
        print(f'{name:28} {ns:6.0f} ns a call {ns - base:+6.0f} ns '
              f'[{min(figures):.0f}, {max(figures):.0f}]')


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
