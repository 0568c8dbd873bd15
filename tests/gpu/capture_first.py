"""The first window opens while a global-mode capture is under way in the main thread.

A second thread marks the steps; the graph must still replay with the right result.

usage: capture_first.py MARKS
"""
import ctypes
import os
import sys
import threading

import torch


def main():
    mark = ctypes.CDLL(os.environ['GTRACE_INJECTION']).gtrace_inject_step if 'GTRACE_INJECTION' in os.environ \
        else (lambda: None)
    marks = int(sys.argv[1])    # 3 open the window of --skip-first 0 --wait 1 --warmup 1
    x = torch.ones(64, 64, device='cuda')
    torch.cuda.synchronize()
    capturing, marked = threading.Event(), threading.Event()

    def marker():
        capturing.wait()
        for _ in range(marks):
            mark()
        marked.set()

    thread = threading.Thread(target=marker)
    thread.start()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode='global'):
        y = x + 1
        capturing.set()
        marked.wait()
        for _ in range(400):
            y = y + 1
    thread.join()
    for _ in range(6):
        graph.replay()
        mark()
    torch.cuda.synchronize()
    assert y[0, 0].item() == 402, y[0, 0].item()
    print('graph replayed right')


if __name__ == '__main__':
    main()
