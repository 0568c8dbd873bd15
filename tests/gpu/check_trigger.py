"""Cases of check.py that trace on demand."""
import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

CASES = []
WITHIN_S = 120


def case(func):
    CASES.append(func)
    return func


class Session:
    """A program on demand, and what asks it."""

    def __init__(self, run, name, command, cwd, options=()):
        self.out = os.path.join(run.out, name)
        shutil.rmtree(self.out, ignore_errors=True)
        os.makedirs(self.out)
        self.gtrace = run.gtrace
        self.env = {**os.environ, 'GTRACE_RUNTIME_DIR': self.out}
        self.log = open(os.path.join(self.out, 'log'), 'w+')
        self.proc = subprocess.Popen([run.gtrace, 'run', '--on-demand', '-n', name, '-o', self.out, *options, '--',
                                      *command],
                                     stdout=self.log, stderr=subprocess.STDOUT, cwd=cwd, env=self.env)

    def ask(self, *words):
        return subprocess.run([self.gtrace, *words], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=WITHIN_S)

    def state(self):
        return (json.loads(self.ask('ps', '--json').stdout) or [{'ranks': 0, 'step': 0, 'phase': 'gone'}])[0]

    def await_state(self, condition):
        end = time.monotonic() + WITHIN_S
        while not condition(self.state()):
            assert time.monotonic() < end and self.proc.poll() is None, self.state()
            time.sleep(.05)

    def files(self):
        return sorted(name for name in os.listdir(self.out) if name.endswith('.trace.json.gz'))

    def await_files(self, count):
        self.await_state(lambda state: len(self.files()) >= count and all(map(self.is_finished, self.files())))

    def is_finished(self, name):
        """A trace that is being written is neither complete nor says why it is not."""
        try:
            with gzip.open(os.path.join(self.out, name)) as stream:
                health = json.load(stream)['gtrace']
        except (OSError, EOFError, ValueError):
            return False
        return health['complete'] or 'reason' in health

    def trigger(self, *options):
        asked = time.monotonic()
        done = self.ask('trigger', *options)
        assert not done.returncode, done.stdout
        first, last = map(int, re.search(r'steps (\d+) to (\d+) of', done.stdout).groups())
        return list(range(first, last + 1)), time.monotonic() - asked

    def trace(self, name):
        with gzip.open(os.path.join(self.out, name)) as stream:
            doc = json.load(stream)
        assert doc['gtrace']['complete'], doc['gtrace']
        kernels = sum(e.get('cat') == 'kernel' for e in doc['traceEvents'])
        assert kernels, name
        return sorted({int(e['name'].partition('#')[2]) for e in doc['traceEvents']
                       if e.get('cat') == 'user_annotation' and e['name'].startswith('ProfilerStep#')}), kernels


@contextlib.contextmanager
def session(run, name, command, *options):
    one = Session(run, name, command, os.path.dirname(os.path.abspath(__file__)), options)
    try:
        yield one
    finally:
        for pid in one.state().get('processes', []):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        one.proc.terminate()
        one.proc.wait(WITHIN_S)
        one.log.close()


@case
def triggered(run):
    """Windows of an eager loop by gtrace trigger and by SIGUSR2: complete, equal, and of the steps that were said."""
    with session(run, 'triggered', run.python('gpt.py', '--steps', '100000')) as one:
        one.await_state(lambda state: state['step'] > 20)
        assert not one.files(), one.files()
        windows, times = [], []
        for options in (), ('--warmup', '0'), ('--at-step', '+30'):
            steps, seconds = one.trigger(*options)
            windows.append(steps)
            times.append(seconds)
            one.await_files(len(windows))
            one.await_state(lambda state: state['phase'] == 'idle')
        one.proc.send_signal(signal.SIGUSR2)
        one.await_files(4)
        found = [one.trace(name) for name in one.files()]
    assert [steps for steps, _ in found[:3]] == windows, (found, windows)
    counts = {kernels for _, kernels in found}
    assert len(counts) == 1, found
    return 'steps %s, %d kernels each; agreed on within %s s' % (
        [steps[0] for steps, _ in found], counts.pop(), ['%.2f' % seconds for seconds in times])


@case
def stopped(run):
    """A window that gtrace stop ends is complete up to there, and says so."""
    with session(run, 'stopped', run.python('gpt.py', '--steps', '100000')) as one:
        one.await_state(lambda state: state['step'] > 20)
        one.trigger('--active', '100000')
        one.await_state(lambda state: state['phase'] == 'tracing')
        done = one.ask('stop')
        assert not done.returncode, done.stdout
        one.await_files(1)
        name, = one.files()
        steps, kernels = one.trace(name)
        with gzip.open(os.path.join(one.out, name)) as stream:
            warnings = json.load(stream)['gtrace']['warnings']
    said, = [text for text in warnings if text.startswith("stopped by 'gtrace stop' in step %d" % steps[-1])]
    return '%s; %d kernels' % (said, kernels)


@case
def stopped_graphs(run):
    """After the stop graphs that were made before it and later ones are launched, which nothing traces any more."""
    command = run.python('gpt.py', '--mode', 'graph-mid', '--steps', 1000)
    with session(run, 'stopped-graphs', command, '--cuda-graph', 'graph') as one:
        one.await_state(lambda state: state['step'] > 20)
        one.trigger('--active', '6')
        one.await_files(1)
        step = one.state()['step']
        done = one.ask('stop')
        assert not done.returncode, done.stdout
        assert one.proc.poll() is None and step < 900, step
        assert one.proc.wait(WITHIN_S) == 0, one.proc.returncode
    return 'stopped in step %d of 1000' % step


@case
def triggered_ranks(run):
    if run.gpus < 2:
        return None
    command = [sys.executable, '-m', 'torch.distributed.run', '--nproc-per-node', str(run.gpus), 'ddp.py', '100000']
    with session(run, 'triggered-ranks', command) as one:
        one.await_state(lambda state: state['ranks'] == run.gpus and state['step'] > 20)
        for number in range(1, 6):
            steps, _ = one.trigger('--active', '2')
            one.await_files(number * run.gpus)
            found = [one.trace(name)[0] for name in one.files() if 'cycle%d.' % number in name]
            assert found == [steps] * run.gpus, (found, steps)
            one.await_state(lambda state: state['phase'] == 'idle')
    return '5 windows of %d ranks, the same steps in each' % run.gpus
