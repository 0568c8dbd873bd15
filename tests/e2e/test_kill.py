"""SIGKILL, at random moments, to the target and to gtrace. GTRACE_E2E_KILLS (10) sets how many of
each; 100 are worth their minutes before a release.
"""

import contextlib
import ctypes
import glob
import gzip
import json
import os
import random
import re
import select
import signal
import subprocess
import time
import zlib

from harness import check, check_equal, expected

KILLS = int(os.environ.get('GTRACE_E2E_KILLS', 10))
STEPS = 60
STEP_S = 0.003
# What was complete this long before the end is in the file.
GRACE_NS = 100_000_000
PR_SET_CHILD_SUBREAPER = 36


def times(count):
    """count tests of one, each with a seed of its own, which a failure names."""

    def decorate(function):
        seeds = [random.randrange(1 << 32) for _ in range(count)]
        function.variants = [(f'{i + 1} (seed {seed})',
                              lambda case, seed=seed: function(case, random.Random(seed)))
                             for i, seed in enumerate(seeds)]
        return function

    return decorate


class Told:
    """What the target says of its progress, as far as it was read."""

    def __init__(self, fd):
        self.fd = fd
        self.rest = b''
        self.pid = None
        self.begun = -1
        self.done = {}  # step: when, ns

    def read(self, timeout_s):
        """Read what comes next, if anything does in time; False at the end."""
        if not select.select([self.fd], [], [], timeout_s)[0]:
            return True
        data = os.read(self.fd, 65536)
        *lines, self.rest = (self.rest + data).split(b'\n')
        for line in lines:
            word, number, ns = line.split()
            if word == b'pid':
                self.pid = int(number)
            elif word == b'begin':
                self.begun = int(number)
            else:
                self.done[int(number)] = int(ns)
        return bool(data)

    def read_until(self, step):
        while self.begun < step:
            check(self.read(10), 'the target ended early, in step', self.begun)

    def read_for(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)


def start(case, command, pass_fds=(), **environment):
    read_fd, write_fd = os.pipe()
    options = ['--skip-first', 0, '--wait', 1, '--warmup', 1, '--active', 1000]
    started = case.started(options, [*command, '--tell-fd', str(write_fd)], pass_fds=[write_fd, *pass_fds],
                           **environment)
    return started, read_fd, write_fd


def command(case, *args):
    return case.train('--steps', STEPS, '--step-us', 2000, *args, tools=[1, 2], off=(), gone=False)


def expected_step(case):
    """The kernels of a step; all but the first are the same."""
    subprocess.run(case.train('--steps', 3, tools=None), check=True, stdout=subprocess.DEVNULL,
                   env=case.environment())
    return dict(expected(case.truth(), [1])['kernels'])


@times(KILLS)
def test_target(case, rng):
    """The file loads, and has all that was complete 100 ms before."""
    reference = expected_step(case)
    faults = rng.choice([None, 'in_place'])
    started, read_fd, write_fd = start(case, command(case, '--steps', 100000), faults=faults)
    with started as process, os.fdopen(read_fd):
        os.close(write_fd)
        told = Told(read_fd)
        told.read_until(3 + rng.randrange(40))
        told.read_for(rng.random() * 3 * STEP_S)
        killed_ns = time.time_ns()
        os.kill(told.pid, signal.SIGKILL)
        while told.read(10):
            pass
        result = case.finish(process)
    check_equal(result.status, -signal.SIGKILL, 'status')
    complete = [step for step, ns in told.done.items() if step >= 2 and ns < killed_ns - GRACE_NS]
    if not complete and not result.names():
        return
    trace = result.trace().expect_incomplete()
    check_equal(trace.health['bad_records'], 0, 'bad records')
    if trace.gpu():
        trace.expect_checked()
    launches = trace.launches()
    by_step = {step: {} for step in complete}
    for event in trace.of('kernel'):
        step = trace.step_of(launches[event['args']['correlation']])
        if step in by_step:
            by_step[step][event['name']] = by_step[step].get(event['name'], 0) + 1
    for step in complete:
        check_equal(by_step[step], reference, f'kernels of step {step}, of {len(complete)} complete')


def adopt_orphans():
    """The target's parent will be killed; let us be the next one, to see its status."""
    libc = ctypes.CDLL(None, use_errno=True)
    check_equal(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0, 'prctl')


@times(KILLS)
def test_gtrace(case, rng):
    """The target goes on to its own end. The file, if there is one, loads, or can be repaired. Nothing else
    is left."""
    adopt_orphans()
    gate_fd, open_fd = os.pipe()
    started, read_fd, write_fd = start(case, command(case, '--exit-status', 7, '--wait-fd', str(gate_fd)), [gate_fd])
    with started as process, os.fdopen(read_fd), os.fdopen(gate_fd), os.fdopen(open_fd):
        os.close(write_fd)
        os.write(open_fd, bytes(STEPS - 1))  # it waits in its last step until gtrace is gone
        told = Told(read_fd)
        told.read_until(rng.randrange(40))
        told.read_for(rng.random() * 3 * STEP_S)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()  # the target is ours only when its parent is gone
        os.write(open_fd, bytes(1))
        while told.read(10):
            pass
        _, status = os.waitpid(told.pid, 0)
    check_equal(os.waitstatus_to_exitcode(status), 7, 'status of the target')
    check_equal(told.begun, STEPS - 1, 'the last step of the target')
    with contextlib.suppress(ChildProcessError):
        os.wait()  # for gtrace's helper, which removes what gtrace could not
    check_equal(glob.glob(f'{case.directory}/gtrace-??????'), [], 'directories of sockets')
    for path in glob.glob(f'{case.out}/*.trace.json.gz'):
        try:
            with gzip.open(path) as file:
                json.load(file)
        except (EOFError, OSError, ValueError, zlib.error):
            # A write was cut: the reader repairs that, and has what was written before, the names of processes at least.
            done = subprocess.run([case.gtrace_path, 'summary', path], capture_output=True, text=True)
            check(done.returncode in (0, 1) and re.search(r', [1-9]\d* events\n', done.stdout), done)
