#!/usr/bin/env python3
"""The GPU's time of `gtrace summary` beside what TraceLens and HTA said of the same traces.

TraceLens counts only GPU work whose launch it finds, and computes in double, where times as large as
those of many files have steps of up to 1 ns. So its answer must be, to 0.002 us, that of the
definitions in double over the linked events; and gtrace's that of the same definitions in integer
ns over the same events: where some have no launch, it reads a copy without them.

HTA cuts times down to whole us, counts what is on a stream, sets as copies, and leaves the last step
out: gtrace reads a copy that says so.

Usage: tests/clients/recorded.py BUILD. The traces and TraceLens's answers
(expected_tracelens.jsonl) are in $GTRACE_CORPUS/data/traces (../shared); skipped where there are
none. Prints TAP.
"""

import concurrent.futures
import json
import math
import os
import subprocess
import sys
import tempfile

import reference

TOLERANCE_US = 0.002
GPU = reference.KERNEL | reference.MEMCPY | reference.MEMSET
HOST = {'cuda_runtime', 'cuda_driver'}
GRAPH_LAUNCHES = ('cudaGraphLaunch', 'hipGraphLaunch')
TRACELENS_KEYS = {
    'computation_time': 'compute', 'exposed_comm_time': 'exposed_comm', 'exposed_memcpy_time': 'exposed_memcpy',
    'busy_time': 'busy', 'idle_time': 'idle', 'total_time': 'span', 'total_comm_time': 'comm',
    'total_memcpy_time': 'memcpy'}

DLRM = 'param__dlrm8__worker0_step_12.1694128201545.pt.trace.json.gz'
NCCL = 'hta__nccl_parser_config__nccl_data.json.gz'
# What they print of these two, in ms.
TRACELENS_MS = {
    DLRM: {'compute': 1.034, 'exposed_comm': 5.537, 'exposed_memcpy': 0.019, 'idle': 6.419, 'span': 13.009,
           'comm': 5.798},
    NCCL: {'compute': 116.047, 'exposed_comm': 39.529, 'exposed_memcpy': 1.924, 'idle': 503.051, 'span': 660.551,
           'comm': 46.876},
}
HTA_MS = {
    DLRM: {'idle': 6.419, 'compute': 1.034, 'not_compute': 5.556, 'span': 13.009, 'overlap_pct': 4.50},
    NCCL: {'idle': 338.781, 'compute': 75.169, 'not_compute': 21.636, 'span': 435.586, 'overlap_pct': 14.31},
}


def args_of(event):
    return event.get('args') or {}


def events_of(path):
    return [event for event in reference.read(path) if isinstance(event, dict)]


def is_gpu(event):
    return event.get('ph') == 'X' and event.get('cat') in GPU


def launch_of(event):
    args = args_of(event)
    return args.get('correlation', args.get('External id'))


def without_unlinked(events):
    """The events less the GPU work without a launch: flows begin at a launch, or it is a graph's; in
    a trace without flows the same id on the host says it."""
    launches = {event.get('id') for event in events if event.get('ph') == 's' and event.get('cat') == 'ac2g'}
    launches |= {launch_of(event) for event in events if event.get('ph') == 'X' and
                 (event.get('name') in GRAPH_LAUNCHES or (not launches and event.get('cat') in HOST))}
    return [event for event in events if not is_gpu(event) or launch_of(event) in launches]


def as_doubles(events):
    """The GPU spans in us."""
    for event in filter(is_gpu, events):
        start = float(event['ts'])
        yield reference.Span(event['cat'], event['name'], 0, start, start + float(event['dur']), None,
                             None)


def gpu_row(gtrace, path):
    """The one GPU's row of a summary in ns, and the share of its communication that is overlapped."""
    done = subprocess.run([gtrace, 'summary', '--format=json', '--limit=0', path],
                          stdin=subprocess.DEVNULL, capture_output=True, check=True)
    row, = json.loads(done.stdout, parse_float=str)['files'][0]['gpus']
    times = {key.removesuffix('_us'): reference.to_ns(value) for key, value in row.items() if key.endswith('_us')}
    return times, row['overlap_pct']


def row_of_copy(gtrace, events):
    with tempfile.NamedTemporaryFile('w', suffix='.json') as copy:
        json.dump({'traceEvents': events}, copy)
        copy.flush()
        return gpu_row(gtrace, copy.name)


def compare_tracelens(gtrace, path, recorded):
    """What is wrong, or None."""
    events = events_of(path)
    linked = without_unlinked(events)
    doubles = reference.split(list(as_doubles(linked)))
    for row in recorded:
        got, want = doubles[TRACELENS_KEYS[row['type']]], row['time ms'] * 1000
        if abs(got - want) > TOLERANCE_US:
            return f'the definitions in double: {row["type"]} {got:.4f} us, not {want:.4f}'
    want = reference.split([span for span in reference.spans(linked) if span.cat in GPU])
    times, _ = gpu_row(gtrace, path) if len(linked) == len(events) else row_of_copy(gtrace, linked)
    got = {key: times[key] for key in want}
    return None if got == want else f'{got}, not {want}'


def for_hta(events):
    """The events that HTA counts, as it counts them."""
    slices = [event for event in events if event.get('ph') == 'X' and reference.to_ns(event.get('dur')) is not None]
    whole_us = all(isinstance(event['ts'], int) for event in slices)
    for event in slices:
        start, dur = float(event['ts']), float(event['dur'])
        end = start + dur if whole_us else math.floor(start + dur)
        event['ts'] = math.ceil(start)
        event['dur'] = end - event['ts']
    steps = sorted(event['ts'] for event in slices if event['name'].startswith('ProfilerStep#'))
    launched_at = {args_of(event).get('correlation'): event['ts'] for event in slices if event['cat'] in HOST}
    for event in slices:
        args = args_of(event)
        if not isinstance(args.get('stream'), int) or args['stream'] < 0:
            continue
        if len(steps) > 1 and launched_at.get(args.get('correlation'), steps[-1]) >= steps[-1]:
            continue
        yield {**event, 'cat': 'gpu_memcpy' if event['cat'] in reference.MEMSET else event['cat']}


def compare_ms(got, want):
    for key, value in want.items():
        digits = 2 if key == 'overlap_pct' else 3
        if round(got[key], digits) != value:
            return f'{key}: {got[key]}, not {value}'
    return None


def compare_printed(gtrace, path, want):
    times, _ = gpu_row(gtrace, path)
    return compare_ms({key: ns / 1e6 for key, ns in times.items()}, want)


def compare_hta(gtrace, path, want):
    times, overlap_pct = row_of_copy(gtrace, list(for_hta(events_of(path))))
    got = {key: ns / 1e6 for key, ns in times.items()}
    return compare_ms({**got, 'not_compute': (times['busy'] - times['compute']) / 1e6,
                       'overlap_pct': float(overlap_pct)}, want)


def main():
    gtrace = f'{sys.argv[1]}/gtrace'
    folder = os.path.join(os.environ.get('GTRACE_CORPUS', '../shared'), 'data/traces')
    if not os.path.exists(f'{folder}/expected_tracelens.jsonl'):
        print(f'ok - GPU time as recorded # SKIP no expected_tracelens.jsonl in {folder} (GTRACE_CORPUS)')
        return 0
    with open(f'{folder}/expected_tracelens.jsonl') as lines:
        tracelens = {row['file']: row['gpu'] for row in map(json.loads, lines) if isinstance(row.get('gpu'), list)}

    jobs = [(f'TraceLens: {name}', compare_tracelens, name, row) for name, row in tracelens.items()]
    jobs += [(f"TraceLens's figures: {name}", compare_printed, name, row) for name, row in TRACELENS_MS.items()]
    jobs += [(f"HTA's figures: {name}", compare_hta, name, row) for name, row in HTA_MS.items()]
    failed = 0
    with concurrent.futures.ProcessPoolExecutor() as pool:
        results = [pool.submit(test, gtrace, f'{folder}/{name}', row) for _, test, name, row in jobs]
        for (what, *_), result in zip(jobs, results):
            why = result.result()
            failed += bool(why)
            print(f'{"not ok" if why else "ok"} - {what}')
            if why:
                print(f'# {why}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
