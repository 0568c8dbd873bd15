#!/usr/bin/env python3
"""`gtrace summary`'s operators beside torch's own tables: calls and FLOPs are equal, times within
0.01 us, memory where the profile has it, for every row, by operator, by shape and by stack.

Usage: tests/clients/truth.py BUILD [FOLDER]. A pair is NAME.pt.trace.json.gz, a trace, and
NAME.key_averages.json.gz, the rows of torch's key_averages() of the same profile. FOLDER is
$GTRACE_CORPUS/data/truth (../shared); skipped where there is none. Prints TAP.
"""

import glob
import gzip
import json
import os
import subprocess
import sys

TOLERANCE_US = 0.01
TIMES = {'self_cpu': 'self_cpu_us', 'cpu': 'cpu_us', 'self_dev': 'self_cuda_us', 'dev': 'cuda_us'}
BYTES = {'self_cpu_mem': 'self_cpu_mem', 'cpu_mem': 'cpu_mem', 'self_dev_mem': 'self_cuda_mem',
         'dev_mem': 'cuda_mem'}
TABLES = {'key_averages': 'op', 'by_shape': 'op,shape', 'by_stack': 'op,stack'}


def written(name):
    """The names under which torch writes this one into its traces: it does not escape quotes."""
    yield name
    if '"' in name or '\\' in name:
        yield name.replace('"', "'")
        yield 'unknown'


def rows_of(gtrace, trace, by):
    done = subprocess.run([gtrace, 'summary', '--by', by, '--format', 'json', '--limit', '0', trace],
                          stdin=subprocess.DEVNULL, capture_output=True, check=True)
    rows = {}
    for row in json.loads(done.stdout)['files'][0]['ops']:
        key = (row['name'], row['device'], row['user_annotation'], row.get('input_shapes'),
               tuple(row.get('stack', ())))
        assert key not in rows, f'{key} is there twice'
        rows[key] = row
    return rows


def difference(row, truth):
    if row['calls'] != truth['count']:
        return f'{row["calls"]} calls, not {truth["count"]}'
    if row['flops'] != truth['flops']:
        return f'{row["flops"]} FLOPs, not {truth["flops"]}'
    for theirs, ours in TIMES.items():
        if abs(row[ours] - truth[theirs]) > TOLERANCE_US:
            return f'{ours} is {row[ours]}, not {truth[theirs]}'
    for theirs, ours in BYTES.items():
        if row.get(ours, 0) != truth.get(theirs, row.get(ours, 0)):
            return f'{ours} is {row.get(ours, 0)}, not {truth[theirs]}'
    return None


def compare(gtrace, trace, by, truths):
    rows = rows_of(gtrace, trace, by)
    for truth in truths:
        rest = (truth['device_type'].removeprefix('DeviceType.'), truth['user'],
                truth['shapes'] if 'shape' in by else None,
                tuple(truth['stack'] or ()) if 'stack' in by else ())
        keys = [key for name in written(truth['name']) if (key := (name, *rest)) in rows]
        if not keys:
            yield f'{truth["name"]} {rest}: no such row'
            continue
        why = difference(rows.pop(keys[0]), truth)
        if why:
            yield f'{truth["name"]} {rest}: {why}'
    for key in rows:
        yield f'{key}: torch has no such row'


def main():
    gtrace = f'{sys.argv[1]}/gtrace'
    folder = (sys.argv[2] if len(sys.argv) > 2 else
              os.path.join(os.environ.get('GTRACE_CORPUS', '../shared'), 'data/truth'))
    suffix = '.key_averages.json.gz'
    tables = sorted(glob.glob(f'{folder}/*{suffix}'))
    if not tables:
        print(f"ok - torch's tables # SKIP none in {folder} (GTRACE_CORPUS)")
    failed = 0
    for path in tables:
        with gzip.open(path) as file:
            truth = json.load(file)
        for table, by in TABLES.items():
            if not truth.get(table):
                continue
            wrong = list(compare(gtrace, path.removesuffix(suffix) + '.pt.trace.json.gz', by,
                                 truth[table]))
            failed += bool(wrong)
            name = os.path.basename(path).removesuffix(suffix)
            print(f'{"not ok" if wrong else "ok"} - {len(truth[table])} rows of {name} by {by}')
            for line in wrong:
                print(f'# {line}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
