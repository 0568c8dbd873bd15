"""What the cases of check.py run gtrace with, and hold its traces against."""
import collections
import functools
import glob
import gzip
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class Trace:
    def __init__(self, path):
        with gzip.open(path) as stream:
            self.doc = json.load(stream)
        self.path = path
        self.events = self.doc['traceEvents']
        self.health = self.doc['gtrace']
        self.kernels = [e for e in self.events if e.get('cat') == 'kernel']
        self.calls = {e['args']['correlation']: e for e in self.events
                      if e.get('cat') in ('cuda_runtime', 'cuda_driver') and 'correlation' in e['args']}
        self.steps = sorted(e['name'] for e in self.events
                            if e.get('cat') == 'user_annotation' and e['name'].startswith('ProfilerStep#'))

    def expect_whole(self, steps=3):
        assert self.health['complete'], self.health
        assert not any(self.health['dropped'].values()), self.health
        assert not self.health['launches_without_gpu'] and not self.health['gpu_without_launch'], self.health
        assert len(self.steps) == steps, self.steps
        alone = [e for e in self.kernels if e['args']['correlation'] not in self.calls]
        assert not alone, '%d kernels without launch' % len(alone)

    def kernel_names(self):
        return collections.Counter(e['name'] for e in self.kernels)


def first_there(*paths):
    return next((path for path in paths if os.path.exists(path)), None)


class Runner:
    def __init__(self, build, out):
        self.build, self.out, self.gtrace = build, out, os.path.join(build, 'gtrace')
        self.train = first_there(os.path.join(build, 'train'), os.path.join(build, 'simgpu', 'train'))
        self.tracecheck = first_there(
            os.path.join(build, 'tracecheck.py'),
            os.path.join(os.environ.get('GTRACE_CORPUS', '../shared'), 'tools', 'tracecheck.py'))

    def run(self, name, options, command, timeout=120, env=None, status=0):
        """Traces of one run, by file name."""
        where = os.path.join(self.out, name)
        shutil.rmtree(where, ignore_errors=True)
        os.makedirs(where)
        with open(where + '.log', 'w') as log:
            done = subprocess.run([self.gtrace, 'run', '-o', where, *options, '--', *command], timeout=timeout,
                                  stdout=log, stderr=subprocess.STDOUT, cwd=HERE, env={**os.environ, **(env or {})})
        with open(where + '.log') as log:
            text = log.read()
        assert done.returncode == status, 'status %d: %s' % (done.returncode, text[-1500:])
        files = sorted(glob.glob(where + '/*.trace.json.gz'))
        if files and self.tracecheck:
            found = subprocess.run([sys.executable, self.tracecheck, *files], stdout=subprocess.PIPE, text=True)
            errors = [line for line in found.stdout.splitlines() if ': error ' in line]
            self.errors = errors
            self.warnings = [line.split(': ', 1)[1] for line in found.stdout.splitlines() if ': warning ' in line]
        self.log = text
        return [Trace(path) for path in files]

    def python(self, script, *args):
        return [sys.executable, os.path.join(HERE, script), *map(str, args)]


def same_kernels(trace, truth, steps=3):
    got = {name: count / steps for name, count in trace.kernel_names().items()}
    differ = {n: (got.get(n), truth.get(n)) for n in set(got) | set(truth) if got.get(n) != truth.get(n)}
    assert sum(got.values()) == sum(truth.values()), '%s a step, torch.profiler %s: %s' % (
        sum(got.values()), sum(truth.values()), dict(list(differ.items())[:5]))
    return '%d kernels a step, as torch.profiler%s' % (
        sum(got.values()), '' if not differ else ' (%d names differ)' % len(differ))


@functools.cache
def truth_of(run, mode):
    out = subprocess.run(run.python('count_torch.py', mode), stdout=subprocess.PIPE, text=True, check=True, cwd=HERE)
    return json.loads(out.stdout.splitlines()[-1])
