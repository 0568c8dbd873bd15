#!/usr/bin/env python3
"""`gtrace summary --by kernel` against a plain reading of the same traces with Python's json: the operator
that launched most of a kernel, the grid and block of most of its time, and its occupancy.

Usage: tests/clients/kernels.py BUILD. The corpus is $GTRACE_CORPUS/data (../shared); skipped where there
is none. Prints TAP.
"""

import collections
import concurrent.futures
import glob
import json
import os
import subprocess
import sys

import reference

RANGE = {'user_annotation'}
LEFT_OUT = {'profiler::_record_function_enter', 'profiler::_record_function_enter_new',
            'profiler::_record_function_exit', 'aten::is_leaf', 'aten::output_nr', 'aten::_version'}
CONFIG = 'grid', 'block', 'registers per thread', 'shared memory'


def args_of(event):
    args = event.get('args')
    return args if isinstance(args, dict) else {}


def external_id(event):
    keys = ('External id', 'external id') if event['cat'][:1].isupper() else ('External id',)
    return next((args_of(event)[key] for key in keys if args_of(event).get(key)), 0)


def name_of(event):
    return 'ProfilerStep*' if event['name'].startswith('ProfilerStep#') else event['name']


def operators_around(calls, operators):
    """For each call the innermost operator or range around it on its thread, None where there is none."""
    threads = collections.defaultdict(list)
    for kind, events in enumerate((operators, calls)):
        for event in events:
            start = reference.to_ns(event['ts'])
            end = start + max(reference.to_ns(event['dur']), 0)
            threads[repr(event.get('pid')), repr(event.get('tid'))].append((start, -end, kind, event))
    for slices in threads.values():
        around = []
        for start, end, kind, event in sorted(slices, key=lambda slice: slice[:3]):
            around = [(until, name) for until, name in around if until > start]
            if kind:
                yield event, next((name for until, name in reversed(around) if until >= -end), None)
            else:
                # What ends in the middle of another is not in it.
                while around and around[-1][0] < -end:
                    around.pop()
                around.append((-end, name_of(event)))


def most(times):
    """The keys of the largest time."""
    return {key for key, ns in times.items() if ns == max(times.values())}


def expected(events):
    spans = [event for event in events if isinstance(event, dict) and event.get('ph') == 'X' and
             isinstance(event.get('cat'), str) and isinstance(event.get('name'), str) and
             None not in (reference.to_ns(event.get('ts')), reference.to_ns(event.get('dur')))]
    operators = [event for event in spans if event['cat'] in reference.OPERATOR | RANGE and
                 event['name'] not in LEFT_OUT]
    by_external = {}
    for event in operators:
        by_external.setdefault(external_id(event), name_of(event))
    by_external.pop(0, None)
    by_call, by_correlation = {}, collections.defaultdict(set)
    for call, name in operators_around([event for event in spans if event['cat'] in reference.CALL], operators):
        correlation = args_of(call).get('correlation', 0)
        if name is None:
            continue
        if external_id(call) not in (0, correlation):
            by_call.setdefault(external_id(call), name)
        else:
            by_correlation[correlation].add(name)

    kernels = collections.defaultdict(lambda: {'ops': collections.Counter(), 'configs': collections.Counter(),
                                               'occupancy': []})
    for event in spans:
        if event['cat'] not in reference.KERNEL:
            continue
        kernel, args, ns = kernels[event['name']], args_of(event), max(reference.to_ns(event['dur']), 0)
        correlation = args.get('correlation', 0)
        external = external_id(event) if external_id(event) != correlation else 0
        op = by_external.get(external, by_call.get(external))
        if op is None and len(by_correlation.get(correlation, ())) == 1 and correlation:
            op, = by_correlation[correlation]
        if op is not None:
            kernel['ops'][op] += ns
        config = tuple(json.dumps(args.get(key)) for key in CONFIG)
        if set(config) != {'null'}:
            kernel['configs'][config] += ns
        percent = args.get('est. achieved occupancy %', args.get('theoretical occupancy %'))
        if percent is not None:
            kernel['occupancy'].append((float(percent), max(ns, 1)))
    return kernels


def difference(row, want):
    if row['ops'] != len(want['ops']):
        return f'{row["ops"]} operators, not {len(want["ops"])}: {dict(want["ops"])}'
    if row['op'] not in (most(want['ops']) or {None}):
        return f'operator {row["op"]}, not {most(want["ops"])}'
    if row['configs'] != len(want['configs']):
        return f'{row["configs"]} configurations, not {len(want["configs"])}'
    config = tuple(json.dumps(row[key]) for key in ('grid', 'block', 'registers', 'shared_memory'))
    if config not in (most(want['configs']) or {('null',) * 4}):
        return f'{config}, not {most(want["configs"])}'
    weight = sum(ns for _, ns in want['occupancy'])
    occupancy = sum(percent * ns for percent, ns in want['occupancy']) / weight if weight else None
    if (row['occupancy_pct'] is None) != (occupancy is None) or abs((row['occupancy_pct'] or 0) - (occupancy or 0)) > 0.001:
        return f'occupancy {row["occupancy_pct"]}, not {occupancy}'
    return None


def compare(path, gtrace):
    """What is wrong, a line each; None where Python cannot read the file or it has no kernels."""
    try:
        want = expected(reference.read(path))
    except (ValueError, EOFError, OSError):
        return None
    if not want:
        return None
    done = subprocess.run([gtrace, 'summary', '--by', 'kernel', '--format', 'json', '--limit', '0', path],
                          stdin=subprocess.DEVNULL, capture_output=True, check=True)
    rows = {row['name']: row for row in json.loads(done.stdout)['files'][0]['kernels']}
    if rows.keys() != want.keys():
        return [f'other kernels: {sorted(rows.keys() ^ want.keys())}']
    return [f'{name}: {why}' for name, row in rows.items() if (why := difference(row, want[name]))]


def main():
    gtrace = f'{sys.argv[1]}/gtrace'
    folder = os.path.join(os.environ.get('GTRACE_CORPUS', '../shared'), 'data')
    paths = sorted(glob.glob(f'{folder}/traces/*')) + sorted(glob.glob(f'{folder}/truth/*.pt.trace.json.gz'))
    paths = [path for path in paths if path.endswith(('.json', '.gz'))]
    if not paths:
        print(f'ok - kernels of real traces # SKIP none in {folder} (GTRACE_CORPUS)')
        return 0
    failed = 0
    with concurrent.futures.ProcessPoolExecutor() as pool:
        for path, wrong in zip(paths, pool.map(compare, paths, [gtrace] * len(paths))):
            if wrong is None:
                continue
            failed += bool(wrong)
            print(f'{"not ok" if wrong else "ok"} - kernels of {os.path.basename(path)}')
            for line in wrong:
                print(f'# {line}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
