#!/usr/bin/env python3
"""`gtrace summary` and `gtrace check` over a corpus of real, odd and hostile traces: they read each or
refuse it in one line, and never crash, hang or let an escape sequence through. They agree on what is
a trace, and what PyTorch wrote (data/truth) is sound.

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


def run(gtrace, command, path):
    """The exit status, and what is wrong or None."""
    try:
        done = subprocess.run([gtrace, command, path], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return None, f'no end after {TIMEOUT_S} s'
    why = None
    if done.returncode not in STATUSES:
        why = f'exit status {done.returncode}: {done.stderr[-300:]!r}'
    elif done.returncode == 1 and len(done.stderr.splitlines()) != 1:
        why = f'refused, but not in one line: {done.stderr[:300]!r}'
    elif done.returncode != 1 and not done.stdout:
        why = 'read, but nothing printed'
    elif re.search(rb'[\x00-\x08\x0b-\x1f\x7f]', done.stdout + done.stderr):
        why = 'control characters in the output'
    return done.returncode, why and f'{command}: {why}'


def problem(gtrace, path):
    status, why = run(gtrace, 'summary', path)
    if why:
        return why
    checked, why = run(gtrace, 'check', path)
    if why:
        return why
    if (status == 1) != (checked == 1):
        return f'summary: exit status {status}, check: {checked}'
    if status == 3 and checked == 0:
        return 'summary: something was lost, check: sound'
    if checked == 3 and '/truth/' in path:
        return 'check: not sound'
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
        print(f'{"not ok" if why else "ok"} - summary and check of {os.path.relpath(path, corpus)}')
        if why:
            print(f'# {why}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
