"""Kernels a step of gpt.py's loop as torch.profiler counts them, as JSON on stdout.

usage: count_torch.py MODE
"""
import collections
import json
import os
import sys
import tempfile

import torch

import gpt


def main():
    mode = sys.argv[1]
    torch.manual_seed(0)
    model = gpt.GPT().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    data = torch.randint(0, 1024, (8, 129), device='cuda')
    forward = torch.compile(model) if mode == 'compile' else model
    graph = gpt.capture(model, data) if mode == 'graph' else None

    def step():
        if graph:
            graph.replay()
        else:
            optimizer.zero_grad(set_to_none=True)
            gpt.loss_of(forward, data).backward()
        optimizer.step()

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
