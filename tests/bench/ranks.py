#!/usr/bin/env python3
"""`gtrace summary DIRECTORY` of 32 and of 1,024 ranks: seconds, CPU seconds and peak memory.

Usage: tests/bench/ranks.py BUILD. Each trace has 3,000 events and is made up.
"""

import gzip
import sys
import tempfile

from measure import measure

EVENTS = 3000


def trace(rank, world_size):
    events = ['{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":9,"tid":9,"ts":0,"dur":%d}' %
              (EVENTS * 10 + rank)]
    for i in range(EVENTS // 2):
        events.append('{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":%d,"dur":4,'
                      '"args":{"correlation":%d}}' % (20 * i, i + 1))
        events.append('{"ph":"X","cat":"kernel","name":"%s","pid":0,"tid":7,"ts":%d,"dur":9,'
                      '"args":{"device":0,"stream":7,"correlation":%d}}' %
                      (f'gemm_{i % 40}' if i % 10 else 'ncclKernel_AllReduce', 20 * i + 6, i + 1))
    return '{"distributedInfo":{"rank": %d,"world_size":%d},"traceEvents":[\n%s\n]}' % (
        rank, world_size, ',\n'.join(events))


def main():
    gtrace = f'{sys.argv[1]}/gtrace'
    for count in 32, 1024:
        with tempfile.TemporaryDirectory() as folder:
            for rank in range(count):
                with gzip.open(f'{folder}/r{rank}.pt.trace.json.gz', 'wt', compresslevel=1) as file:
                    file.write(trace(rank, count))
            measure(gtrace, 'summary', folder)  # into the page cache
            seconds, cpu, peak = measure(gtrace, 'summary', folder)
            print(f'{count:5} ranks of {EVENTS} events  {seconds:6.2f} s  {cpu:6.2f} s of CPU  {peak:>6} KiB peak')


if __name__ == '__main__':
    main()
