"""Windows on demand in one session, and what ps tells of it."""

import os
import random
import signal
import socket

from harness import TIMEOUT_S, check, check_equal, each
from on_demand import (ask, expect_whole, files, running, session, sessions, steps_of, wait_for, wait_for_files,
                       wait_for_steps)


def test_several_in_a_row(case):
    with session(case, '--active', '2') as process:
        found, = wait_for_steps(case)
        check_equal(found['phase'], 'idle', 'phase')
        check_equal(files(case), [], 'files before the first trigger')
        windows = []
        for number, args in enumerate([[], ['--active', '4', '--warmup', '0'], ['--at-step', '+2000'],
                                       ['--session', 'train'], ['-s', str(process.pid)]], 1):
            windows.append(steps_of(ask(case, 'trigger', *args)[1]))
            wait_for_files(case, number)
        check_equal([len(w) for w in windows], [2, 4, 2, 2, 2], 'steps')
    result = case.finish(process)
    for number, steps in enumerate(windows, 1):
        trace = result.trace(f'train-rank0-cycle{number}.trace.json.gz')
        expect_whole(trace)
        check_equal(trace.step_numbers(), steps, 'steps')
        check_equal(trace.health['cycle'], number, 'cycle')
        if trace.health['complete']:
            trace.expect_checked()  # that it has GPU work, too
    check_equal(len(result.names()), 5, 'files')


def test_signal(case):
    """The gtrace process takes SIGUSR2 for itself; its program has no handler for it."""
    with session(case) as process:
        wait_for_steps(case)
        for number in 1, 2:
            process.send_signal(signal.SIGUSR2)
            wait_for_files(case, number)
    result = case.finish(process)
    check_equal(result.names(), [f'train-rank0-cycle{n}.trace.json.gz' for n in (1, 2)], 'files')
    for name in result.names():
        check_equal(len(expect_whole(result.trace(name)).steps()), 3, 'steps')


def test_nothing_triggered(case):
    result = case.gtrace(['--on-demand'], case.train('--steps', 20, tools=None, gone=False))
    check_equal(result.names(), [], 'files')
    check('no window was triggered' in result.stderr, result)


def test_after_the_schedule(case):
    """A session with a schedule takes triggers when that is over, and goes on counting files."""
    options = ['--skip-first', '0', '--wait', '20', '--active', '2', '--name', 'job']
    with running(case, options) as process:
        wait_for_files(case, 1)
        steps = steps_of(ask(case, 'trigger')[1])
        check_equal(len(steps), 2, 'steps')
        wait_for_files(case, 2)
    result = case.finish(process)
    check_equal(result.names(), ['job-rank0-cycle2.trace.json.gz', 'job-rank0.trace.json.gz'], 'files')
    trace = expect_whole(result.trace('job-rank0-cycle2.trace.json.gz'))
    check_equal(trace.step_numbers(), steps, 'steps')


def test_between_cycles(case):
    """Refused when it overlaps a cycle, and else before it."""
    options = ['--skip-first', '0', '--wait', '100000', '--active', '2', '--repeat', '0']
    with running(case, options) as process:
        wait_for_steps(case)
        stderr = ask(case, 'trigger', '--at-step', '99999', '--active', '10', status=1)[1]
        check('would overlap one of the session' in stderr, stderr)
        ask(case, 'trigger')
        wait_for_files(case, 1)
    check_equal(case.finish(process).names(), ['train-rank0-cycle1.trace.json.gz'], 'files')


def test_refused(case):
    with session(case) as process:
        wait_for_steps(case)
        wait_for('step 10', lambda: sessions(case)[0]['step'] >= 10)
        check('step 5 is over' in ask(case, 'trigger', '--at-step', '5', status=1)[1], 'step 5')
        check('on its way' not in ask(case, 'trigger', '--at-step', '+50000')[1], '+50000')
        check('on its way' in ask(case, 'trigger', status=1)[1], 'beside another one')
        check('no session is called' in ask(case, 'trigger', '-s', 'other', status=1)[1], 'other')
        for bad in '0', 'x', '+', '1x', '-1':
            ask(case, 'trigger', '--at-step', bad, status=2)
    check_equal(case.finish(process).names(), [], 'files')


def test_no_session(case):
    check_equal(ask(case, 'ps'), ('', ''), 'ps')
    check_equal(ask(case, 'ps', '--json')[0], '[]\n', 'ps --json')
    check('there is no session' in ask(case, 'trigger', status=1)[1], 'trigger')
    check('there is no session' in ask(case, 'stop', status=1)[1], 'stop')


def test_which_session(case):
    with session(case, '--name', 'one') as one, session(case, '--name', 'two') as two:
        wait_for_steps(case, count=2)
        stderr = ask(case, 'trigger', status=1)[1]
        check('which session?' in stderr and f'{one.pid} one: ' in stderr and
              f'{two.pid} two: ' in stderr, stderr)
        child = [s for s in sessions(case) if s['session'] == 'two'][0]['processes'][0]
        ask(case, 'trigger', '--session', child)
        wait_for_files(case, 1)
        check_equal(files(case), ['two-rank0-cycle1.trace.json.gz'], 'files')
        rows = ask(case, 'ps')[0].splitlines()
        check_equal(rows[0].split(), ['pid', 'session', 'ranks', 'step', 'phase', 'command'], 'ps')
        check_equal(len(rows), 3, 'ps')


@each(of_time=['--delay', '0.1'], the_whole=['--step-source', 'none'])
def test_no_steps_to_show(case, option, value):
    """Where the steps of the program are not counted, none is shown."""
    with running(case, [option, value]):
        found, = wait_for('tracing', lambda: [s for s in sessions(case) if s['phase'] == 'tracing'])
        check_equal(found['step'], None, 'step')
        title, row = ask(case, 'ps')[0].splitlines()
        check_equal(row.split()[title.split().index('step')], '-', 'step')


@each(of_time=['--delay', '1h'], of_nvtx=['--capture-range', 'nvtx:^never$'])
def test_waiting_for_a_range(case, option, value):
    """As long as there was none, which no step and no GPU work tells of."""
    with running(case, [option, value]):
        wait_for('waiting', lambda: [s for s in sessions(case) if s['phase'] == 'waiting'])
        title, row = ask(case, 'ps')[0].splitlines()
        check_equal(row.split()[title.split().index('phase')], 'waiting', 'phase')


def test_killed_session_leaves_nothing(case):
    with session(case) as process:
        found, = wait_for_steps(case)
        process.kill()
        process.wait(TIMEOUT_S)
        left = os.path.join(case.directory, 'gtrace', f'{process.pid}.session')
        check(os.path.exists(left), 'no', left)
        check_equal(sessions(case), [], 'sessions')
        check(not os.path.exists(left), left, 'is still there')
        os.kill(found['processes'][0], signal.SIGKILL)


def test_hostile_control(case):
    """Whatever comes on the control socket, the session goes on."""
    chance = random.Random(1)
    bad = [b'', b'\n', b'do', b'do status', b'do nothing\n', b'do trigger\nactive 0\n',
           b'do trigger\nactive 99999999999999999999\nwarmup -1\n', b'do trigger\nat never\n',
           b'do trigger\nat step\nstep 999999999999999999\n', b'do trigger\nwarmup 1000\n',
           b'do status\0\n', b'x' * 16383 + b'\n', b'do ' + b'y' * 65000, b'\xff\xfe\n',
           *[bytes(chance.randrange(256) for _ in range(chance.randrange(300))) for _ in range(50)]]
    with session(case) as process:
        wait_for_steps(case)
        path = os.path.join(case.directory, 'gtrace', f'{process.pid}.session')
        silent = []
        for data in bad:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            sock.settimeout(TIMEOUT_S)
            sock.connect(path)
            if data:
                sock.send(data)
                answer = sock.recv(20000)
                check(answer == b'' or answer.startswith(b'result failed\nwhy '), data, answer)
                sock.close()
            else:
                silent.append(sock)
        wait_for_steps(case)
        ask(case, 'trigger')
        wait_for_files(case, 1)
        check(process.poll() is None, 'it has ended')
        for sock in silent:
            sock.close()
    case.finish(process)
