"""Sessions that other gtrace commands talk to, for the tests of trigger, stop and ps."""

import contextlib
import gzip
import json
import os
import re
import signal
import subprocess
import time

from harness import TIMEOUT_S, Failure, check


def ask(case, *args, status=0):
    """Another gtrace command, to its end; (stdout, stderr)."""
    done = subprocess.run([case.gtrace_path, *map(str, args)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=TIMEOUT_S, cwd=case.directory,
                          env=case.environment())
    check(done.returncode == status, args, 'status', done.returncode, 'expected', status, done.stdout,
          done.stderr)
    return done.stdout, done.stderr


def sessions(case):
    return json.loads(ask(case, 'ps', '--json')[0])


def wait_for(what, condition):
    """Poll: what is waited for is in other processes, and tells of itself only when it is asked."""
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise Failure(f'no {what} after {TIMEOUT_S} s')


def wait_for_steps(case, ranks=1, count=1):
    """Until so many sessions have so many ranks that do steps."""
    def ready():
        found = [s for s in sessions(case) if s['ranks'] == ranks]
        return found if len(found) == count else None
    return wait_for(f'{count} sessions of {ranks} ranks', ready)


def files(case):
    return sorted(n for n in os.listdir(case.out) if n.endswith('.trace.json.gz'))


def is_finished(path):
    """A trace that is being written is neither complete nor says why it is not."""
    try:
        with gzip.open(path) as file:
            health = json.load(file)['gtrace']
    except (OSError, EOFError, ValueError):
        return False
    return health['complete'] or 'reason' in health


def wait_for_files(case, count):
    wait_for(f'{count} files', lambda: len(files(case)) >= count and
             all(is_finished(os.path.join(case.out, name)) for name in files(case)))


def endless(case, step_us=500):
    return [os.path.join(case.simgpu, 'train'), '--steps', '1000000', '--step-us', str(step_us)]


def expect_whole(trace):
    """Complete; but on a busy machine its steps are faster than gtrace's thread, which it says."""
    if 'was not on yet' not in trace.health.get('reason', ''):
        trace.expect_complete()
    return trace


def steps_of(stderr):
    first, last = re.search(r'steps (\d+) to (\d+) of', stderr).groups()
    return list(range(int(first), int(last) + 1))


def kill_children(pid):
    """And theirs: what a shell has started would outlive it, and hold the pipes of the test."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        with open(f'/proc/{pid}/task/{pid}/children') as file:
            for child in map(int, file.read().split()):
                kill_children(child)
                os.kill(child, signal.SIGKILL)


@contextlib.contextmanager
def running(case, options, command=None, **environment):
    """A session, whose program is ended at the end of the block."""
    with case.started(options, command or endless(case), **environment) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            kill_children(process.pid)
            process.wait(TIMEOUT_S)


def session(case, *options):
    return running(case, ['--on-demand', *options])
