#!/usr/bin/env python3
"""`gtrace summary` against a plain reading of the same traces with Python's json, by the same
definitions, in integer ns.

Usage: tests/clients/reference.py BUILD. The corpus is $GTRACE_CORPUS/data (../shared); skipped where
there is none. Prints TAP.
"""

import collections
import concurrent.futures
import decimal
import glob
import gzip
import json
import os
import re
import subprocess
import sys

KERNEL = {'kernel', 'Kernel', 'mtia_ccp_events'}
MEMCPY = {'gpu_memcpy', 'Memcpy'}
MEMSET = {'gpu_memset', 'Memset'}
COMM = re.compile('nccl|rccl|cross_device_reduce', re.I)
CALL = {'cuda_runtime', 'cuda_driver', 'Runtime', 'mtia_runtime', 'xpu_runtime'}
OPERATOR = {'cpu_op', 'Operator'}
DATA = re.compile(r'enumerate\(DataLoader\)#')
DATA_RANGE = re.compile('dataload|data_load|data load|load_data', re.I)
IDLE_CAUSES = 'host_late', 'launch_latency', 'queued', 'communication', 'data_loading', 'unknown'
COMM_OP = re.compile('c10d::|_c10d_functional::|c10d_functional::|record_param_comms|(nccl|gloo|mpi|ucc|xccl):')


class Span(collections.namedtuple('Span', 'cat name device start end correlation thread')):
    pass


def to_ns(text):
    """None when it is not a number: the event has no time then."""
    try:
        return int((decimal.Decimal(text) * 1000).to_integral_value(decimal.ROUND_HALF_UP))
    except (decimal.InvalidOperation, TypeError):
        return None


def read(path):
    with open(path, 'rb') as file:
        data = file.read()
    if data[:2] == b'\x1f\x8b':
        data = gzip.decompress(data)
    trace = json.loads(data.decode('utf-8-sig', 'replace'), parse_float=str)
    return trace['traceEvents'] if isinstance(trace, dict) else trace


def spans(events):
    for event in events:
        start, dur = to_ns(event.get('ts')), to_ns(event.get('dur'))
        if event.get('ph') != 'X' or start is None or dur is None:
            continue
        args = event.get('args') or {}
        device = args.get('device', event.get('pid'))
        yield Span(event.get('cat'), event.get('name', ''), int(device) if str(device).isdigit() else 0,
                   start, start + max(dur, 0), args.get('correlation'),
                   (str(event.get('pid')), str(event.get('tid'))))


def union(intervals):
    total, covered = 0, None
    for start, end in sorted(intervals):
        if covered is None or start > covered:
            covered = start
        if end > covered:
            total, covered = total + end - covered, end
    return total


def split(gpu):
    """As the object of "gpus" in gtrace-summary(1), in ns."""
    sets = {'compute': [], 'comm': [], 'memcpy': []}
    for span in gpu:
        kind = 'memcpy' if span.cat in MEMCPY else 'comm' if COMM.search(span.name) else 'compute'
        sets[kind].append((span.start, span.end))
    every = union(sum(sets.values(), []))
    with_comm = union(sets['compute'] + sets['comm'])
    whole = max(s.end for s in gpu) - min(s.start for s in gpu)
    lengths = {kind: union(intervals) for kind, intervals in sets.items()}
    return {'span': whole, 'busy': every, 'idle': whole - every, **lengths,
            'exposed_comm': with_comm - lengths['compute'], 'exposed_memcpy': every - with_comm}


def waits(host):
    """By thread, when it waited: for data, and for data or communication."""
    found = collections.defaultdict(lambda: ([], []))
    for span in host:
        is_range = span.cat == 'user_annotation'
        if (span.cat not in OPERATOR and not is_range) or span.name.startswith('ProfilerStep#'):
            continue
        data = DATA.match(span.name) or (is_range and DATA_RANGE.search(span.name))
        if data:
            found[span.thread][0].append((span.start, span.end))
        if data or COMM_OP.match(span.name):
            found[span.thread][1].append((span.start, span.end))
    return found


def calls_of(host):
    """By correlation; one that several calls have is left out."""
    calls = collections.defaultdict(list)
    for span in host:
        if span.cat in CALL and span.correlation:
            calls[span.correlation].append(span)
    return {correlation: some[0] for correlation, some in calls.items() if len(some) == 1}


def within(intervals, start, end):
    return union((max(a, start), min(b, end)) for a, b in intervals if a < end and b > start)


def idle_causes(gpu, calls, waiting):
    """As "idle" in gtrace-summary(1), in ns; a gap at a time."""
    causes = dict.fromkeys(IDLE_CAUSES, 0)
    by_start = collections.defaultdict(list)
    for span in gpu:
        by_start[span.start].append(span)
    busy = sorted((s.start, s.end) for s in gpu)
    covered = busy[0][1]
    for start, end in busy:
        if start > covered:
            known = [calls[s.correlation] for s in by_start[start] if s.correlation in calls]
            if known:
                call = min(known, key=lambda c: c.start)
                if call.start <= covered:
                    causes['queued'] += start - covered
                    covered = max(covered, end)
                    continue
                launch = min(call.start, start)
                data, either = waiting[call.thread] if call.thread in waiting else ([], [])
                data = within(data, covered, launch)
                either = within(either, covered, launch)
                causes['data_loading'] += data
                causes['communication'] += either - data
                causes['host_late'] += launch - covered - either
                causes['launch_latency'] += start - launch
            else:
                causes['unknown'] += start - covered
        covered = max(covered, end)
    return causes


def launch_stats(gpu, every, calls):
    """As "launch" in gtrace-summary(1); every: the work of all GPUs."""
    pieces = collections.Counter(s.correlation for s in every)
    linked = [(s, calls[s.correlation]) for s in gpu if s.correlation in calls]
    kernels = [s for s in gpu if s.cat in KERNEL]
    first = {}
    for span, call in linked:
        if span.cat in KERNEL:
            first[call] = min(first.get(call, span.start), span.start)
    delays = sorted(max(start - call.end, 0) for call, start in first.items())
    alone = [(s, c) for s, c in linked if s.cat in KERNEL and pieces[s.correlation] == 1]
    queued = [(min(c.start, s.start), s.end) for s, c in linked]
    changes = sorted([(end, 0) for start, end in queued if end > start] +
                     [(start, 1) for start, end in queued if end > start])
    depth = deepest = 0
    for _, up in changes:
        depth += 1 if up else -1
        deepest = max(deepest, depth)
    begin, end = min(s.start for s in gpu), max(s.end for s in gpu)
    area = sum(b - max(a, begin) for a, b in queued)
    count = len(delays)
    return {'linked': len(linked), 'launches': count, 'kernels': len(kernels),
            'short_kernels': sum(s.end - s.start < 10000 for s in kernels), 'alone': len(alone),
            'shorter_than_call': sum(s.end - s.start < c.end - c.start for s, c in alone),
            'queue_max': max(deepest, int(bool(queued))),
            'queue_mean': area / (end - begin) if end > begin else 0,
            'delay_median_us': count and (delays[(count - 1) // 2] + delays[count // 2]) // 2,
            'delay_p99_us': count and delays[-(-99 * count // 100) - 1],
            'delay_max_us': count and delays[-1]}


def wrong_launches(row, gpu, every, host):
    """What is wrong with "idle" and "launch" of a GPU, or None."""
    calls = calls_of(host)
    want = launch_stats(gpu, every, calls)
    if not want['linked']:
        return None if row['idle'] is None and row['launch'] is None else 'links without correlations'
    got = {key: to_ns(row['idle'][f'{key}_us']) for key in IDLE_CAUSES}
    if got != idle_causes(gpu, calls, waits(host)):
        return f'idle: {got}, not {idle_causes(gpu, calls, waits(host))}'
    if sum(got.values()) != to_ns(row['idle_us']):
        return f'idle: {got} is not {row["idle_us"]}'
    got = {key: to_ns(value) or 0 if key.endswith('_us') else float(value)
           for key, value in row['launch'].items()}
    got['queue_mean'] -= want.pop('queue_mean')
    if abs(got.pop('queue_mean')) > 0.0001 or got != want:
        return f'launch: {got}, not {want}'
    return None


def table(some):
    rows = {}
    for span in some:
        rows.setdefault(span.name, []).append(span.end - span.start)
    return {name: (len(times), sum(times), min(times), max(times)) for name, times in rows.items()}


def printed(name):
    """A name as gtrace's JSON has it: lone surrogates cannot be written."""
    return re.sub('[\ud800-\udfff]', '\ufffd', name)


def their_table(rows):
    return {row['name']: (row['calls'], *(to_ns(row[key]) for key in ('total_us', 'min_us', 'max_us')))
            for row in rows}


def compare(path, gtrace):
    """What is wrong, or None."""
    done = subprocess.run([gtrace, 'summary', '--format=json', '--limit=0', path],
                          stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode not in (0, 3):
        return f'exit status {done.returncode}: {done.stderr[:300]!r}'
    try:
        events = [event for event in read(path) if isinstance(event, dict)]
    except ValueError:  # a format for which Python's json is too strict
        return None
    all_spans = [span for span in spans(events) if span.cat]
    gpu = [span for span in all_spans if span.cat in KERNEL | MEMCPY | MEMSET]
    ours = json.loads(done.stdout, parse_float=str)['files'][0]

    untimed = sum(event.get('ph') == 'X' and None in (to_ns(event.get('ts')), to_ns(event.get('dur')))
                  for event in events)
    if ours['health']['skipped'] != untimed or done.returncode != (3 if untimed else 0):
        return f'exit status {done.returncode}, {ours["health"]["skipped"]} skipped, not {untimed}'

    for key, cats in ('kernels', KERNEL), ('copies', MEMCPY | MEMSET):
        want = {printed(name): row for name, row in table(s for s in gpu if s.cat in cats).items()}
        got = their_table(ours[key])
        if got != want:
            name = next(n for n in want.keys() | got.keys() if want.get(n) != got.get(n))
            return f'{key}: {name!r}: {got.get(name)}, not {want.get(name)}'

    if sorted({span.device for span in gpu}) != [g['device'] for g in ours['gpus']]:
        return f'devices: {[g["device"] for g in ours["gpus"]]}'
    for row in ours['gpus']:
        want = split([span for span in gpu if span.device == row['device']])
        got = {key: to_ns(row[f'{key}_us']) for key in want}
        if got != want:
            return f'GPU {row["device"]}: {got}, not {want}'
        why = wrong_launches(row, [span for span in gpu if span.device == row['device']], gpu, all_spans)
        if why:
            return f'GPU {row["device"]}: {why}'

    steps = sorted(s.start for s in all_spans if s.name.startswith('ProfilerStep#') and
                   s.cat in ('user_annotation', 'cpu_op', 'Operator'))
    if [to_ns(step['start_us']) for step in ours['steps']] != steps:
        return f'{len(ours["steps"])} steps, not {len(steps)}'
    return None


def main():
    gtrace = f'{sys.argv[1]}/gtrace'
    data = os.path.join(os.environ.get('GTRACE_CORPUS', '../shared'), 'data')
    files = sorted(path for folder in ('traces', 'truth')
                   for path in glob.glob(f'{data}/{folder}/*')
                   if not path.endswith(('.tsv', '.jsonl')) and '.key_averages.' not in path)
    if not files:
        print(f'ok - summary against a reference # SKIP no files in {data} (GTRACE_CORPUS)')
        return 0
    failed = 0
    with concurrent.futures.ProcessPoolExecutor() as pool:
        for path, why in zip(files, pool.map(compare, files, [gtrace] * len(files))):
            failed += bool(why)
            print(f'{"not ok" if why else "ok"} - reference of {os.path.relpath(path, data)}')
            if why:
                print(f'# {why}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
