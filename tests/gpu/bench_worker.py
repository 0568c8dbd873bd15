"""One process of the bench: trains the GPT of gpt.py in blocks, as bench.py tells it on stdin.

usage: bench_worker.py plain|MODE of floor.c, see FLOORS|gtrace|MODE of torch.profiler, see PROFILERS

A command is a line of JSON, the answer another one: {"op": "block", "steps": N} trains N steps and
answers with their milliseconds. Under gtrace every step is marked by gtrace_step(), so that
the schedule, not this program, opens the windows; "mark" is the number of marks made so far.
"""
import ctypes
import json
import os
import sys
import tempfile
import time

import torch

import gpt

HERE = os.path.dirname(os.path.abspath(__file__))

# The least that must be paid: for GPU work (None), and for operators that an observer sees without or with their inputs.
FLOORS = {'floor': None, 'floor ops': 0, 'floor shapes': 1}
PROFILERS = {
    'torch': {'activities': [torch.profiler.ProfilerActivity.CUDA]},
    'torch ops': {},
    'torch shapes': {'record_shapes': True, 'with_flops': True},
    'torch stack': {'record_shapes': True, 'with_stack': True},
}


def pin(cpus):
    for thread in os.listdir('/proc/self/task'):
        os.sched_setaffinity(int(thread), cpus)
    return {}


def memory():
    with open('/proc/self/status') as status:
        host = {k: int(v.split()[0]) * 1024 for k, v in (line.split(':', 1) for line in status)
                if k in ('VmRSS', 'VmHWM')}
    free, total = torch.cuda.mem_get_info()
    return {'device_used': total - free, **host}


class Worker:
    def __init__(self, kind):
        torch.manual_seed(0)
        self.kind, self.marks = kind, 0
        self.model = gpt.GPT().cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.data = torch.randint(0, 1024, (8, 129), device='cuda')
        self.mark = None
        if kind == 'gtrace':
            self.mark = ctypes.CDLL(os.environ['GTRACE_INJECTION']).gtrace_inject_step
        if kind in FLOORS:
            self.floor = ctypes.CDLL(os.environ['BENCH_FLOOR'])
            assert self.floor.floor_init() == 0
            self.observes = FLOORS[kind] is not None
            assert not self.observes or self.floor.floor_observe(FLOORS[kind]) == 0
        for _ in range(40):
            self.step()
        torch.cuda.synchronize()

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        gpt.loss_of(self.model, self.data).backward()
        self.optimizer.step()

    def block(self, steps):
        times = []
        torch.cuda.synchronize()
        for _ in range(steps):
            begin = time.perf_counter()
            self.step()
            torch.cuda.synchronize()
            if self.mark:
                self.mark()
                self.marks += 1
            times.append((time.perf_counter() - begin) * 1e3)
        return {'ms': times, 'end_ns': time.time_ns()}

    @staticmethod
    def export(profiler):
        with tempfile.TemporaryDirectory() as path:
            name = os.path.join(path, 'trace.json.gz')
            profiler.export_chrome_trace(name)
            return os.path.getsize(name)

    def traced(self, steps, export):
        """A block under this worker's own tracer, then the stall of its end and 3 steps after."""
        if self.kind in FLOORS:
            before = self.floor.floor_records(), self.floor.floor_operators()
            assert self.floor.floor_on() == 0
            if self.observes:
                self.floor.floor_observer(1)
            answer = self.block(steps)
            begin = time.perf_counter()
            if self.observes:
                self.floor.floor_observer(0)
            assert self.floor.floor_off() == 0
            seen = self.floor.floor_records() - before[0], self.floor.floor_operators() - before[1]
            assert seen[0] and bool(seen[1]) == self.observes, 'a mode that sees nothing is not a cheap one'
        else:
            prof = torch.profiler.profile(**PROFILERS[self.kind])
            prof.start()
            answer = self.block(steps)
            begin = time.perf_counter()
            prof.stop()
            answer['stop_ms'] = (time.perf_counter() - begin) * 1e3
            if export:
                answer['bytes'] = self.export(prof)
        answer['stall_ms'] = (time.perf_counter() - begin) * 1e3
        answer['after_ms'] = self.block(3)['ms']
        return answer


def main():
    out = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    worker = Worker(sys.argv[1])
    for line in sys.stdin:
        command = json.loads(line)
        if command['op'] == 'block':
            answer = worker.block(command['steps'])
        elif command['op'] in ('traced', 'exported'):
            answer = worker.traced(command['steps'], command['op'] == 'exported')
        elif command['op'] == 'pin':
            answer = pin(command['cpus'])
        else:
            answer = memory()
        answer['marks'] = worker.marks
        print(json.dumps(answer), file=out, flush=True)


if __name__ == '__main__':
    main()
