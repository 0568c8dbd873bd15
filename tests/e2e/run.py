#!/usr/bin/env python3
"""run.py - end-to-end tests on the simulated GPU: tests/e2e/run.py [BUILD] [-k PATTERN] [-j N].

A test is a function test_* of a module test_*.py here, with a Case; @each makes several of one. One
line a test, in the order in which they end; the last line is their sum.
"""

import argparse
import concurrent.futures
import glob
import importlib
import os
import re
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import harness  # noqa: E402


def discover():
    tests = []
    for path in sorted(glob.glob(os.path.join(HERE, 'test_*.py'))):
        module = importlib.import_module(os.path.basename(path)[:-3])
        group = module.__name__.removeprefix('test_')
        for name, function in vars(module).items():
            if not name.startswith('test_'):
                continue
            title = f'{group}: {name.removeprefix("test_").replace("_", " ")}'
            for label, call in getattr(function, 'variants', [(None, function)]):
                tests.append((f'{title}: {label}' if label else title, call))
    return tests


def main():
    # In the background, or under nohup, they are ignored, and would be by the tests' programs.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser()
    parser.add_argument('build', nargs='?', default='build')
    parser.add_argument('-k', metavar='PATTERN', help='only tests whose name matches')
    parser.add_argument('-j', metavar='N', type=int, default=max(4, os.cpu_count() or 1))
    parser.add_argument('-v', action='store_true', help='with the time of each')
    parser.add_argument('--repeat', metavar='N', type=int, default=1, help='run each N times')
    parser.add_argument('--keep', action='store_true', help='leave the directories of failed tests')
    options = parser.parse_args()
    tests = [t for t in discover() if not options.k or re.search(options.k, t[0])] * options.repeat
    if not os.path.exists(os.path.join(options.build, 'simgpu', 'train')):
        sys.exit(f"e2e: {options.build} has no gtrace and simulated GPU: run 'make all simgpu'")
    if not tests:
        parser.error(f"no test's name matches '{options.k}'")
    totals = {'ok': 0, 'fail': 0, 'skip': 0}

    def run(test):
        begun = time.monotonic()
        return *harness.run_one(options.build, test[1], options.keep), time.monotonic() - begun

    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        pending = {pool.submit(run, test): test[0] for test in tests}
        for done in concurrent.futures.as_completed(pending):
            what, text, seconds = done.result()
            totals[what] += 1
            name = pending[done] + (f' ({seconds:.1f} s)' if options.v else '')
            if what == 'skip':
                print(f'ok - e2e {name} # SKIP {text}')
            else:
                print('ok' if what == 'ok' else 'not ok', '-', 'e2e', name)
            for line in text.splitlines() if what == 'fail' else []:
                print('#', line)
            sys.stdout.flush()
    if harness.Trace.unchecked:
        print(f'ok - e2e tracecheck of {harness.Trace.unchecked} traces # SKIP no tracecheck.py in '
              f'{harness.corpus()}')
        totals['skip'] += 1
    skipped = f', {totals["skip"]} skipped' if totals['skip'] else ''
    print(f'{totals["ok"]} passed, {totals["fail"]} failed{skipped}')
    return 1 if totals['fail'] else 0


if __name__ == '__main__':
    sys.exit(main())
