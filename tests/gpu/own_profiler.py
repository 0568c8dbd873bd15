"""A training loop that uses torch.profiler itself, and checks that it got its own data.

usage: own_profiler.py before|inside|after|all|thread|schedule [STEPS]
"""
import sys
import threading

import torch

import gpt

BEGINS = {'before': (0,), 'inside': (4,), 'after': (11,), 'all': (0, 4, 11), 'thread': (4,)}


class Thread:
    """A profiler of another thread, from its beginning to its end."""

    def __init__(self):
        self.prof = torch.profiler.profile()
        self.on, self.off = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        self.prof.start()
        self.on.set()
        self.off.wait()
        self.prof.stop()

    def start(self):
        self.thread.start()
        self.on.wait()

    def stop(self):
        self.off.set()
        self.thread.join()

    def events(self):
        return self.prof.events()


def device_events(prof):
    return sum(1 for e in prof.events() if e.device_type == torch.autograd.DeviceType.CUDA)


def main():
    where = sys.argv[1]
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 16
    begins = BEGINS.get(where, ())
    counts = []
    torch.manual_seed(0)
    model = gpt.GPT(layers=2).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    data = torch.randint(0, 1024, (8, 129), device='cuda')
    prof = cyclic = None
    wanted = len(begins)
    if where == 'schedule':  # on from step 1 to 4, 6 to 9 and 11 to 14
        wanted = 3
        cyclic = torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=3),
                                        on_trace_ready=lambda prof: counts.append(device_events(prof)))
        cyclic.start()
    for step in range(steps):
        if prof is None and step in begins:
            prof = Thread() if where == 'thread' else torch.profiler.profile()
            prof.start()
        optimizer.zero_grad(set_to_none=True)
        gpt.loss_of(model, data).backward()
        optimizer.step()
        torch.cuda.synchronize()
        if prof is not None:
            prof.stop()
            counts.append(device_events(prof))
            prof = None
        if cyclic:
            cyclic.step()
    if cyclic:
        cyclic.stop()
    print('profiled', len(counts), 'of', wanted, 'device events', counts)
    assert len(counts) == wanted and min(counts) > 50, counts


if __name__ == '__main__':
    main()
