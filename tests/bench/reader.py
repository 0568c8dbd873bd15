#!/usr/bin/env python3
"""A whole `gtrace summary` of a trace, beside Python's json and HTA in the same run; then of the trace
repeated twice and four times; then its instructions, where valgrind is here.

Usage: tests/bench/reader.py BUILD TRACE. Each row: seconds, of CPU, peak memory.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from measure import measure

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '../clients'))
import hta

LOAD = 'import gzip, json, sys; json.load(gzip.open(sys.argv[1]))'
# Without the variable HTA rounds to whole us, and gives up on traces of short kernels.
ANALYSE = '''
import logging, os, sys
os.environ['HTA_DISABLE_NS_ROUNDING'] = '1'
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
TraceAnalysis(trace_files={0: os.path.abspath(sys.argv[1])}).get_temporal_breakdown(visualize=False)
'''
IDS = 'correlation', 'External id'


def row(what, argv, note=''):
    measured = seconds, cpu, peak = measure(*argv)
    print(f'{what:32}  {seconds:6.2f} s  {cpu:6.2f} s of CPU  {peak:>7} KiB peak{note}', flush=True)
    return measured


def repeated(trace, times):
    """The trace's members and events, each repetition after the one before and with ids of its own."""
    events = trace['traceEvents']
    timed = [event for event in events if 'ts' in event]
    start = min(event['ts'] for event in timed)
    span = max(event['ts'] + event.get('dur', 0) for event in timed) - start
    largest = max(event.get('args', {}).get('correlation', 0) for event in timed)
    yield json.dumps({key: value for key, value in trace.items() if key != 'traceEvents'})[:-1]
    yield ', "traceEvents": [\n'
    for i in range(times):
        for event in events if i == 0 else timed:
            event = dict(event)
            if 'ts' in event:
                event['ts'] = round(event['ts'] + i * span, 3)
            if isinstance(event.get('id'), int):
                event['id'] += i * largest
            if 'args' in event:
                event['args'] = {key: value + i * largest if key in IDS else value
                                 for key, value in event['args'].items()}
            yield json.dumps(event) + ',\n'
    yield '{}]}'


def growth(gtrace, path):
    with gzip.open(path) as file:
        trace = json.load(file)
    with tempfile.TemporaryDirectory() as folder:
        for times in 1, 2, 4:
            name = f'{folder}/{times}.json.gz'
            with gzip.open(name, 'wt', compresslevel=1) as file:
                file.writelines(repeated(trace, times))
            row(f'gtrace summary, {times} times', [gtrace, 'summary', name],
                f', {times * len(trace["traceEvents"])} events')


def instructions(gtrace, path):
    done = subprocess.run(['valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null', gtrace, 'summary', path],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    count = int(re.search(r'Collected : (\d+)', done.stderr)[1])
    with gzip.open(path) as file:
        size = sum(map(len, iter(lambda: file.read(1 << 20), b'')))
    print(f'instructions: {count / 1e6:.0f} million, {count / size:.1f} a byte of JSON')


def main():
    build, path = sys.argv[1:]
    gtrace = f'{build}/gtrace'
    measure(gtrace, 'summary', path)  # into the page cache
    row('gtrace summary', [gtrace, 'summary', path])
    row('json.load(gzip.open())', [sys.executable, '-c', LOAD, path])
    python, why = hta.find_python()
    if python:
        row('HTA', [python, '-c', ANALYSE, path])
    else:
        print(f'HTA: {why}')
    growth(gtrace, path)
    if shutil.which('valgrind'):
        instructions(gtrace, path)


if __name__ == '__main__':
    main()
