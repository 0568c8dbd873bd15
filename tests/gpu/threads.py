"""Eight threads launch on streams of their own; the main thread's optimizer marks the steps.

usage: threads.py [STEPS]
"""
import sys
import threading

import torch

THREADS = 8


def work(start, done, steps):
    x = torch.randn(128, 128, device='cuda')
    stream = torch.cuda.Stream()
    for _ in range(steps):
        start.wait()
        with torch.cuda.stream(stream):
            for _ in range(20):
                x = torch.tanh(x @ x)
        done.wait()


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    weight = torch.nn.Parameter(torch.zeros(16, device='cuda'))
    optimizer = torch.optim.SGD([weight], lr=.1)
    start, done = threading.Barrier(THREADS + 1), threading.Barrier(THREADS + 1)
    threads = [threading.Thread(target=work, args=(start, done, steps)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for _ in range(steps):
        start.wait()
        done.wait()
        weight.grad = torch.ones_like(weight)
        optimizer.step()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()


if __name__ == '__main__':
    main()
