"""What a program takes."""

import os
import subprocess
import sys
import time

TIME = '/usr/bin/time'


def measure(*argv):
    """Seconds, CPU seconds and peak KiB. A child's own peak is at least that of the Python which
    starts it, so GNU time must stand between; without it the peak is '-'."""
    timed = [TIME, '-f', '%M'] if os.path.exists(TIME) else []
    before, start = os.times(), time.monotonic()
    done = subprocess.run([*timed, *argv], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seconds, after = time.monotonic() - start, os.times()
    if done.returncode:
        sys.exit(f'{" ".join(argv)}: {done.stderr}')
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, cpu, done.stderr.split()[-1] if timed else '-'
