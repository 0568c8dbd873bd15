#!/usr/bin/env python3
"""What an operator of torch costs: ns a call of the cheapest one, torch.add() of two numbers, plain,
traced but outside of the window, and in the window, without and with shapes; and under
torch.profiler, likewise.

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

steps = []
if sys.argv[1].startswith("profiler"):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                record_shapes=sys.argv[1] == "profiler with shapes"):
        best()
        steps = [best()]
else:
    for _ in range({STEPS}):
        steps.append(best())
        sgd.step()
        time.sleep(0.05)  # what was recorded is written
print(json.dumps(steps))
'''


def run(argv):
    return json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)


def main(build, python, rounds=5):
    kinds = ('plain', 'before the window', 'in the window', 'with shapes', 'after it',
             'torch.profiler', 'with record_shapes')
    found = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as place:
        gtrace = [f'{os.path.abspath(build)}/gtrace', 'run', '-q', '-o', place, '--force', '--wait', '0',
                  '--skip-first', str(FIRST - 1), '--active', str(ACTIVE)]
        program = [python, '-c', PROGRAM]
        for _ in range(int(rounds)):
            found['plain'].append(min(run([*program, 'plain'])))
            steps = run([*gtrace, '--no-shapes', '--', *program, 'traced'])
            found['before the window'].append(min(steps[1:FIRST - 1]))  # at first all is recorded
            found['in the window'].append(min(steps[FIRST:FIRST + ACTIVE]))
            found['after it'].append(min(steps[FIRST + ACTIVE + 1:]))
            steps = run([*gtrace, '--', *program, 'traced'])
            found['with shapes'].append(min(steps[FIRST:FIRST + ACTIVE]))
            found['torch.profiler'].extend(run([*program, 'profiler']))
            found['with record_shapes'].extend(run([*program, 'profiler with shapes']))
    base = statistics.median(found['plain'])
    for kind, figures in found.items():
        ns = statistics.median(figures)
        print(f'{kind:18} {ns:6.0f} ns a call {ns - base:+6.0f} ns '
              f'[{min(figures):.0f}, {max(figures):.0f}]')


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
