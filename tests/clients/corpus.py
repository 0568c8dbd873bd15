#!/usr/bin/env python3
"""`gtrace summary` over a corpus of real, odd and hostile traces: it reads each or refuses it in one
line, and never crashes, hangs or lets an escape sequence through.

Usage: tests/clients/corpus.py BUILD. The corpus is $GTRACE_CORPUS/data (../shared); skipped where
there is none. Prints TAP.
"""

import glob
import os
import re
import subprocess
import sys

TIMEOUT_S = 20
# Read, refused, salvaged.
STATUSES = (0, 1, 3)


def problem(gtrace, path):
    try:
        done = subprocess.run([gtrace, 'summary', path], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f'no end after {TIMEOUT_S} s'
    if done.returncode not in STATUSES:
        return f'exit status {done.returncode}: {done.stderr[-300:]!r}'
    if done.returncode == 1 and len(done.stderr.splitlines()) != 1:
        return f'refused, but not in one line: {done.stderr[:300]!r}'
    if done.returncode != 1 and not done.stdout:
        return 'read, but nothing printed'
    if re.search(rb'[\x00-\x08\x0b-\x1f\x7f]', done.stdout + done.stderr):
        return 'control characters in the output'
    return None


def main():
    gtrace = f'{sys.argv[1]}/gtrace'
    corpus = os.environ.get('GTRACE_CORPUS', '../shared')
    files = sorted(path for folder in ('traces', 'hostile', 'truth')
                   for path in glob.glob(f'{corpus}/data/{folder}/*')
                   if not path.endswith(('.tsv', '.jsonl')))
    if not files:
        print(f'ok - summary of a corpus # SKIP no files in {corpus}/data (GTRACE_CORPUS)')
    failed = 0
    for path in files:
        why = problem(gtrace, path)
        failed += bool(why)
        print(f'{"not ok" if why else "ok"} - summary of {os.path.relpath(path, corpus)}')
        if why:
            print(f'# {why}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
