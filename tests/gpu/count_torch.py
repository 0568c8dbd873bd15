"""Kernels a step of gpt.py's loop as torch.profiler counts them, as JSON on stdout.

usage: count_torch.py MODE
"""
import collections
import json
import os
import sys
import tempfile

import torch

import programs

STEPS = {'eager': programs.eager, 'compile': programs.compiled, 'graph': programs.graph}


def main():
    torch.manual_seed(0)
    step = STEPS[sys.argv[1]]()
    for _ in range(3):
        step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as prof:
        for _ in range(3):
            step()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as path:
        name = os.path.join(path, 'trace.json')
        prof.export_chrome_trace(name)
        with open(name) as stream:
            events = json.load(stream)['traceEvents']
    counts = collections.Counter(e['name'] for e in events if e.get('cat') == 'kernel')
    print(json.dumps({name: count / 3 for name, count in counts.items()}))


if __name__ == '__main__':
    main()
