#!/usr/bin/env python3
"""HolisticTraceAnalysis as a reader of the demo's trace: it loads it and counts the same kernels.

Usage: tests/clients/hta.py BUILD, after tests/demo BUILD. HTA comes from PyPI into build/deps/hta; where it cannot be had,
this is skipped. Prints TAP.
"""

import collections
import gzip
import json
import os
import subprocess
import sys

from packages import install

# HTA itself without its dependencies: it asks for JupyterLab and pytest, but does not import them.
HTA = 'HolisticTraceAnalysis==0.5.0'
NEEDS = ['networkx==3.6.1', 'numpy==2.4.6', 'pandas==3.1.1', 'plotly==7.1.0', 'psutil==7.2.2',
         'pydot==4.0.1', 'PyYAML==6.0.4']


def find_python():
    """As of packages.install()."""
    return install('hta', NEEDS, ['--no-deps', HTA])


def expected(path):
    """Events by category and kernels by name, counted from the JSON."""
    with gzip.open(path) as file:
        events = json.load(file)['traceEvents']
    slices = [e for e in events if e['ph'] == 'X']
    return {'categories': collections.Counter(e['cat'] for e in slices if 'dur' in e),
            'kernels': collections.Counter(e['name'] for e in slices if e['cat'] == 'kernel')}


# Runs in the venv. The last step is asked for, since HTA drops it otherwise.
COUNT = '''
import json, logging, sys
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, include_last_profiler_step=True)
events = analysis.t.get_trace(0)
text = analysis.t.symbol_table.get_sym_table()
category = events['cat'].map(lambda i: text[i])
kernels = events[category == 'kernel']
breakdown = analysis.get_gpu_kernel_breakdown(visualize=False)[1]
print(json.dumps({
    'categories': category.value_counts().to_dict(),
    'kernels': kernels['name'].map(lambda i: text[i]).value_counts().to_dict(),
    'linked': int((kernels['index_correlation'] > 0).sum()),
    'breakdown': len(breakdown),
}))
'''


def main():
    build = sys.argv[1]
    trace = f'{os.path.abspath(build)}/demo/train-rank0.trace.json.gz'
    python, why = find_python()
    if not python:
        print(f'ok - HTA counts the same kernels # SKIP {why}')
        return 0
    done = subprocess.run([python, '-c', COUNT, trace], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print('not ok - HTA loads the trace')
        return 1
    seen = json.loads(done.stdout.splitlines()[-1])
    want = expected(trace)
    print(f'# HTA: {seen}\n# file: {want}')
    kernels = sum(want['kernels'].values())
    results = {
        'HTA loads the trace': kernels > 0,
        'HTA counts the same kernels': seen['kernels'] == want['kernels'],
        'HTA finds the launch of every kernel': seen['linked'] == kernels,
        'HTA counts the same events of each category': all(
            seen['categories'].get(cat) == want['categories'][cat]
            for cat in ('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_runtime', 'cuda_driver')
            if cat in want['categories']),
        'HTA breaks the kernels down': seen['breakdown'] > 0,
    }
    for name, good in results.items():
        print(f'{"ok" if good else "not ok"} - {name}')
    return 0 if all(results.values()) else 1


if __name__ == '__main__':
    sys.exit(main())
