"""gtrace as a job of a shell on a terminal: its keys, and job control."""

import os
import pty
import signal
import sys

from harness import check_equal

# A shell with one job: it tells how waitpid() sees the job, and continues it when it has stopped.
SHELL = r"""
import os, signal, sys
report, argv = int(sys.argv[1]), sys.argv[2:]
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(argv[0], argv)
while True:
    status = os.waitpid(job, os.WUNTRACED)[1]
    if os.WIFSTOPPED(status):
        os.write(report, f'stopped by {os.WSTOPSIG(status)}\n'.encode())
        os.kill(-job, signal.SIGCONT)
    else:
        os.write(report, f'ended with {os.waitstatus_to_exitcode(status)}\n'.encode())
        break
"""

# Counts interrupts (and SIGUSR2) until SIGUSR1, which comes by way of gtrace, later than anything before it.
COUNTER = r"""
import os, signal, sys
report, interrupts = int(sys.argv[1]), 0
signals = {signal.SIGINT, signal.SIGUSR2, signal.SIGUSR1}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
os.write(report, f'gtrace is {os.getppid()}\n'.encode())
while signal.sigwait(signals) != signal.SIGUSR1:
    interrupts += 1
    os.write(report, b'interrupted\n')
os.write(report, f'{interrupts} interrupts\n'.encode())
sys.exit(interrupts)
"""


class Terminal:
    """A job on a terminal of its own; what it and the shell report comes line by line."""

    def __init__(self, case, program):
        read_fd, write_fd = os.pipe()
        argv = case.argv(['-q'], [sys.executable, '-c', program, str(write_fd)])
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(case.directory)
            os.set_inheritable(write_fd, True)
            os.execve(sys.executable, [sys.executable, '-c', SHELL, str(write_fd), *argv],
                      case.environment())
        os.close(write_fd)
        self.reports = os.fdopen(read_fd)

    def expect(self, *lines):
        for line in lines:
            check_equal(self.reports.readline().rstrip('\n'), line, 'report')

    def gtrace_pid(self):
        line = self.reports.readline()
        check_equal(line[:10], 'gtrace is ', 'report')
        return int(line[10:])

    def press(self, key):
        os.write(self.master, key)

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.master)
        self.reports.close()


def test_interrupt_key_reaches_the_program_once(case):
    terminal = Terminal(case, COUNTER)
    gtrace = terminal.gtrace_pid()
    terminal.press(b'\x03')
    terminal.expect('interrupted')
    os.kill(gtrace, signal.SIGUSR1)
    terminal.expect('1 interrupts', 'ended with 1')
    terminal.close()


def test_kill_to_the_job_reaches_the_program_once(case):
    terminal = Terminal(case, COUNTER)
    gtrace = terminal.gtrace_pid()
    os.kill(-os.getpgid(gtrace), signal.SIGINT)
    terminal.expect('interrupted')
    os.kill(gtrace, signal.SIGUSR2)  # not SIGINT: gtrace may not have read the first one yet
    terminal.expect('interrupted')
    os.kill(gtrace, signal.SIGUSR1)
    terminal.expect('2 interrupts', 'ended with 2')
    terminal.close()


def test_suspend_key_stops_the_job(case):
    terminal = Terminal(case, COUNTER)
    gtrace = terminal.gtrace_pid()
    terminal.press(b'\x1a')
    terminal.expect(f'stopped by {int(signal.SIGTSTP)}')
    terminal.press(b'\x03')
    terminal.expect('interrupted')
    os.kill(gtrace, signal.SIGUSR1)
    terminal.expect('1 interrupts', 'ended with 1')
    terminal.close()


def test_hangup_ends_the_program(case):
    terminal = Terminal(case, COUNTER)
    terminal.gtrace_pid()
    os.kill(terminal.pid, signal.SIGKILL)  # the session leader: its terminal hangs up
    os.waitpid(terminal.pid, 0)
    os.close(terminal.master)
    check_equal(terminal.reports.read(), '', 'last words')  # all writers are gone
    terminal.reports.close()


def test_hangup_of_the_session_leader(case):
    """As in a terminal of its own, or by ssh -t: the kernel tells the leader, gtrace, alone."""
    read_fd, write_fd = os.pipe()
    argv = case.argv(['-q'], [sys.executable, '-c', COUNTER, str(write_fd)])
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(case.directory)
        os.set_inheritable(write_fd, True)
        os.execve(argv[0], argv, case.environment())
    os.close(write_fd)
    with os.fdopen(read_fd) as reports:
        check_equal(reports.readline(), f'gtrace is {pid}\n', 'report')
        os.close(master)
        check_equal(reports.read(), '', 'last words')
    check_equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), -signal.SIGHUP, 'status')
