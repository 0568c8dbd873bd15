"""A training loop that uses torch.profiler itself, and checks that it got its own data.

usage: own_profiler.py before|inside|after|all [STEPS]
"""
import sys

import torch

import gpt


def main():
    where = sys.argv[1]
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 16
    begins = {'before': (0,), 'inside': (4,), 'after': (11,), 'all': (0, 4, 11)}[where]
    torch.manual_seed(0)
    model = gpt.GPT(layers=2).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    data = torch.randint(0, 1024, (8, 129), device='cuda')
    prof = None
    counts = []
    for step in range(steps):
        if prof is None and step in begins:
            prof = torch.profiler.profile()
            prof.start()
        optimizer.zero_grad(set_to_none=True)
        gpt.loss_of(model, data).backward()
        optimizer.step()
        torch.cuda.synchronize()
        if prof is not None:
            prof.stop()
            counts.append(sum(1 for e in prof.events() if e.device_type == torch.autograd.DeviceType.CUDA))
            prof = None
    print('profiled', len(counts), 'of', len(begins), 'device events', counts)
    assert len(counts) == len(begins) and min(counts) > 50, counts


if __name__ == '__main__':
    main()
