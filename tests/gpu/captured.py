"""A training loop, or only forward passes, in which three steps are to be traced.

usage: captured.py profiler|nvtx|both|inference [--steps N]

profiler: between torch.cuda.profiler.start() and stop(); nvtx: in an NVTX range 'look here'; both:
between the calls, with torch.profiler before and after them; inference: as profiler, without an
optimizer. Prints how long the call of start() took, and the median time of the steps outside.
"""
import argparse
import statistics
import time

import torch

import gpt

FIRST, LAST = 5, 7


def profiled(step):
    with torch.profiler.profile() as prof:
        step()
        torch.cuda.synchronize()
    count = sum(1 for e in prof.events() if e.device_type == torch.autograd.DeviceType.CUDA)
    print('profiled device events', count)
    assert count > 50, count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('what', choices=('profiler', 'nvtx', 'both', 'inference'))
    parser.add_argument('--steps', type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = gpt.GPT().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    data = torch.randint(0, 1024, (8, 129), device='cuda')
    times = []

    def step():
        if args.what == 'inference':
            with torch.inference_mode():
                gpt.loss_of(model, data)
            return
        optimizer.zero_grad(set_to_none=True)
        gpt.loss_of(model, data).backward()
        optimizer.step()

    for number in range(args.steps):
        begin = time.perf_counter()
        if number == FIRST:
            torch.cuda.nvtx.range_push('look here') if args.what == 'nvtx' else torch.cuda.profiler.start()
            print('start took %.2f ms' % ((time.perf_counter() - begin) * 1e3))
        if args.what == 'both' and number in (1, LAST + 2):
            profiled(step)
        else:
            step()
        if number == LAST:
            torch.cuda.nvtx.range_pop() if args.what == 'nvtx' else torch.cuda.profiler.stop()
        torch.cuda.synchronize()
        if not FIRST <= number <= LAST + 1:
            times.append((time.perf_counter() - begin) * 1e3)
    print('median step %.3f ms' % statistics.median(times))


if __name__ == '__main__':
    main()
