#!/usr/bin/env python3
"""`gtrace cut` of real and odd traces: half of the time of each is a trace that is as sound as the
whole, in which no slice has lost one of its two events.

Usage: tests/clients/cuts.py BUILD. The corpus is $GTRACE_CORPUS/data (../shared); skipped where there
is none. Prints TAP.
"""

import collections
import concurrent.futures
import glob
import json
import os
import subprocess
import sys
import tempfile

# A part has less: no GPU work, no step, launches and GPU work whose other side ran outside of it,
# the copy's name, and no rank where the file had it behind the events.
FEWER = {'G-NONE', 'P-NONE', 'L-NONE', 'L-KERNEL', 'L-LAUNCH', 'T-EVENTS', 'C-NAME', 'C-PTNAME', 'X-REF', 'X-CORR'}


def check(gtrace, path):
    done = subprocess.run([gtrace, 'check', '--format', 'json', path], stdin=subprocess.DEVNULL,
                          capture_output=True)
    if done.returncode == 1:
        return None
    return json.loads(done.stdout)['files'][0]


def unpaired(path):
    """How many beginnings have no end, and ends no beginning, by thread and in the order of the file."""
    with open(path) as file:
        events = json.load(file)['traceEvents']
    depth = collections.Counter()
    ends = 0
    for event in events:
        place = event.get('pid'), event.get('tid')
        if event.get('ph') == 'B':
            depth[place] += 1
        elif event.get('ph') == 'E' and depth[place]:
            depth[place] -= 1
        elif event.get('ph') == 'E':
            ends += 1
    return depth.total(), ends


def problem(gtrace, path):
    """What is wrong, or None."""
    whole = check(gtrace, path)
    if whole is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        def cut(name, start_ns, end_ns):
            done = subprocess.run([gtrace, 'cut', '--time', f'{start_ns}ns:{end_ns}ns', '-o', f'{folder}/{name}',
                                   path], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            return None if done.returncode in (0, 3) else f'exit status {done.returncode}: {done.stderr}'
        span_ns = whole['health']['span_ns']
        why = cut('all.json', 0, 2 ** 60) or cut('half.json', span_ns // 4, span_ns * 3 // 4)
        if why:
            return why if 'before that time' not in why else None
        half = check(gtrace, f'{folder}/half.json')
        if half is None:
            return 'the part is no trace'
        found = {finding['rule'] for finding in whole['findings']}
        new = {finding['rule'] for finding in half['findings']} - found - FEWER
        if new:
            return f'new in the part: {sorted(new)}'
        if sum(unpaired(f'{folder}/half.json')) > sum(unpaired(f'{folder}/all.json')):
            return f'events without their other: {unpaired(f"{folder}/half.json")}'
    return None


def main():
    gtrace = f'{sys.argv[1]}/gtrace'
    data = os.path.join(os.environ.get('GTRACE_CORPUS', '../shared'), 'data')
    files = sorted(path for folder in ('traces', 'hostile') for path in glob.glob(f'{data}/{folder}/*')
                   if not path.endswith(('.tsv', '.jsonl')))
    if not files:
        print(f'ok - parts of a corpus # SKIP no files in {data} (GTRACE_CORPUS)')
        return 0
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, why in zip(files, pool.map(problem, [gtrace] * len(files), files)):
            failed += bool(why)
            print(f'{"not ok" if why else "ok"} - part of {os.path.relpath(path, data)}')
            if why:
                print(f'# {why}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
