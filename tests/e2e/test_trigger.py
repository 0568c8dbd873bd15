"""Windows on demand, in one session and in several."""

import contextlib
import gzip
import json
import os
import random
import re
import select
import signal
import socket
import subprocess
import time

from harness import TIMEOUT_S, Failure, check, check_equal, each

ROUNDS = int(os.environ.get('GTRACE_E2E_TRIGGERS', '3'))


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


def test_several_in_a_row(case):
    with session(case, '--active', '2') as process:
        found, = wait_for_steps(case)
        check_equal(found['phase'], 'idle', 'phase')
        check_equal(files(case), [], 'files before the first trigger')
        windows = []
        for number, args in enumerate([[], ['--active', '4', '--warmup', '0'], ['--at-step', '+60'],
                                       ['--session', 'train'], ['-s', str(process.pid)]], 1):
            windows.append(steps_of(ask(case, 'trigger', *args)[1]))
            wait_for_files(case, number)
        check_equal([len(w) for w in windows], [2, 4, 2, 2, 2], 'steps')
    result = case.finish(process)
    for number, steps in enumerate(windows, 1):
        trace = result.trace(f'train-rank0-cycle{number}.trace.json.gz')
        expect_whole(trace.expect_checked())
        check_equal(trace.step_numbers(), steps, 'steps')
        check_equal(trace.health['cycle'], number, 'cycle')
        check(trace.gpu(), 'no GPU work in', trace.path)
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
        check('overlap a window of the session' in stderr, stderr)
        ask(case, 'trigger')
        wait_for_files(case, 1)
    check_equal(case.finish(process).names(), ['train-rank0-cycle1.trace.json.gz'], 'files')


def test_refused(case):
    with session(case) as process:
        wait_for_steps(case)
        wait_for('step 10', lambda: sessions(case)[0]['step'] >= 10)
        check('too near' in ask(case, 'trigger', '--at-step', '5', status=1)[1], 'step 5')
        check('on its way' not in ask(case, 'trigger', '--at-step', '+50000')[1], '+50000')
        check('on its way' in ask(case, 'trigger', status=1)[1], 'beside another one')
        check('no session is called' in ask(case, 'trigger', '-s', 'other', status=1)[1], 'other')
        for bad in '0', 'x', '+', '1x', '-1':
            ask(case, 'trigger', '--at-step', bad, status=2)
    check_equal(case.finish(process).names(), [], 'files')


def test_stop(case):
    with session(case) as process:
        wait_for_steps(case)
        ask(case, 'trigger')
        wait_for_files(case, 1)
        step = sessions(case)[0]['step']
        ask(case, 'stop')
        found, = sessions(case)
        check_equal(found['phase'], 'stopped', 'phase')
        check(found['step'] >= step > 0, 'step', found['step'], 'after', step)
        wait_for('the end of tracing', lambda: sessions(case)[0]['ranks'] == 0)
        check_equal(sessions(case)[0]['step'], found['step'], 'step in which it was stopped')
        check('was stopped' in ask(case, 'trigger', status=1)[1], 'trigger')
        check('already' in ask(case, 'stop', status=1)[1], 'stop again')
        check(process.poll() is None, 'the program has ended')
    expect_whole(case.finish(process).trace('train-rank0-cycle1.trace.json.gz'))


def stopped_in_window(case, faults):
    with running(case, ['--on-demand'], faults=faults) as process:
        wait_for_steps(case)
        first = steps_of(ask(case, 'trigger', '--active', 100000)[1])[0]
        # A whole step, so that all that a step does is in it.
        wait_for('steps of the window', lambda: sessions(case)[0]['step'] > first + 1)
        check_equal(sessions(case)[0]['phase'], 'tracing', 'phase')
        ask(case, 'stop')
        wait_for_files(case, 1)
        check(process.poll() is None, 'the program has ended')
    result = case.finish(process)
    check('killed' not in result.stderr, result)
    trace = result.trace('train-rank0-cycle1.trace.json.gz')
    said = f"stopped by 'gtrace stop' in step {trace.step_numbers()[-1]}, before the window's last step"
    check(said in trace.health["warnings"], trace.step_numbers()[-3:], trace.health)
    return trace


@each(quick=[None], in_flight=['in_place,slow=20'], late=['in_place,late=30ms'], kept=['in_place,withhold'])
def test_stop_within_a_window(case, faults):
    """It ends at this step, and is complete up to there: work in flight is waited for."""
    trace = expect_whole(stopped_in_window(case, faults))
    check([e for e in trace.gpu() if e['name'].startswith('void adam_update<')], 'names of kernels')


def test_stop_with_long_work_in_flight(case):
    """What is not over in time is no bad record, but work that is missing."""
    health = stopped_in_window(case, 'in_place,late=3s').expect_incomplete().health
    check_equal(health['bad_records'], 0, 'bad records')
    check(health['launches_without_gpu'] > 0, health)


def test_stop_with_bad_records(case):
    """Which are still said."""
    health = stopped_in_window(case, 'in_place,zero_time=40').expect_incomplete().health
    check(health['bad_records'] > 0, health)


def test_stop_of_a_whole_run(case):
    with running(case, ['--step-source', 'none', '-n', 'train'], faults='in_place') as process:
        wait_for('GPU work', lambda: files(case))
        ask(case, 'stop')
        wait_for_files(case, 1)
        check(process.poll() is None, 'the program has ended')
    trace = case.finish(process).trace().expect_complete()
    check("stopped by 'gtrace stop'" in trace.health['warnings'], trace.health)


def test_stop_before_the_window(case):
    with session(case) as process:
        wait_for_steps(case)
        ask(case, 'trigger', '--at-step', 1000000)
        ask(case, 'stop')
    result = case.finish(process)
    check_equal(result.names(), [], 'files')
    check('window 1, steps 1000000 to 1000002, never began: process ' in result.stderr, result)
    check('when tracing ended' in result.stderr, result)


def test_near_beside_one_that_stands_still(case):
    """The second proposal, soon after the first, is by how fast steps are, not by one step in a ms."""
    meeting = os.path.join(case.directory, 'meeting')
    os.mkdir(meeting)
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(running(case, ['--on-demand', '--rendezvous', meeting],
                                             endless(case, 20000))) for _ in range(2)]
        wait_for_steps(case, count=2)
        nodes[0].send_signal(signal.SIGSTOP)
        told = ask(case, 'trigger', '--rendezvous', meeting)[1]
        check(steps_of(told)[0] < 1000, told)


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


# ---- several ranks ----

def ranks_of(case, first, count, world, speed):
    """A shell that runs ranks, each as fast as it likes; each tells in a file of its steps."""
    one = 'RANK={0} WORLD_SIZE={1} {2} --steps 1000000 --step-us {3} --tell-fd 9 9>{4}-{0} &'
    train = os.path.join(case.simgpu, 'train')
    told = os.path.join(case.directory, 'told')
    return ['sh', '-c', ' '.join(one.format(rank, world, train, speed(rank), told)
                                 for rank in range(first, first + count)) + ' wait']


def told_steps(case):
    """By process: the step that each rank has begun by its own account."""
    steps = {}
    for name in os.listdir(case.directory):
        if name.startswith('told-'):
            with open(os.path.join(case.directory, name)) as file:
                lines = file.read().split('\n')[:-1]
            pid, = [line.split()[1] for line in lines if line.startswith('pid ')]
            steps[int(pid)] = max((int(line.split()[1]) for line in lines if line.startswith('begin ')), default=0)
    return steps


@contextlib.contextmanager
def two_nodes(case, chance, *options):
    """Eight ranks in two sessions that meet in a directory; they end with their first window."""
    meeting = os.path.join(case.directory, 'meeting')
    os.mkdir(meeting)
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(running(
            case, ['--on-demand', '--rendezvous', meeting, '--name', f'node{node}', *options],
            ranks_of(case, 4 * node, 4, 8, lambda rank: chance.randrange(400, 1500))))
            for node in range(2)]
        wait_for_steps(case, 4, 2)
        yield meeting, nodes


def traced(case, count):
    """The steps that each file has, all complete."""
    from harness import Result

    result = Result(0, '', '', case.out)
    check_equal(len(result.names()), count, 'files')
    return {name: expect_whole(result.trace(name)).step_numbers() for name in result.names()}


def wait_for_end(case, process):
    try:
        process.wait(TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise Failure('no end:', sessions(case), files(case)) from None


def test_same_steps_in_two_sessions(case):
    seed = random.SystemRandom().randrange(1 << 30)
    chance = random.Random(seed)
    base = case.directory
    for number in range(ROUNDS):
        case.directory = os.path.join(base, str(number))
        case.out = os.path.join(case.directory, 'out')
        os.makedirs(case.out)
        with two_nodes(case, chance, '--active', '2', '--then', 'stop') as (meeting, nodes):
            steps = steps_of(ask(case, 'trigger', '--rendezvous', meeting)[1])
            for node in nodes:
                wait_for_end(case, node)
            windows = traced(case, 8)
            check(all(w == steps for w in windows.values()), f'seed {seed}, round {number}:', steps, windows)
            check_equal(len(steps), 2, 'steps')


def stop_one(case, pids):
    """A rank that is stopped answers nobody."""
    pid = max(pids)
    os.kill(pid, signal.SIGSTOP)
    return pid


def test_a_rank_that_does_not_answer(case):
    """It holds nobody for longer than 2 s, is told of, and has no window when it goes on."""
    command = ranks_of(case, 0, 4, 4, lambda rank: 1000)
    with running(case, ['--on-demand', '-n', 'train'], command) as process:
        found, = wait_for_steps(case, 4)
        pid = stop_one(case, found['processes'][1:])
        stderr = ask(case, 'trigger', '--active', '2')[1]
        check(re.search(rf'warning: rank \d \(process {pid}\) does not answer', stderr), stderr)
        steps = steps_of(stderr)
        check('of 3 ranks' in stderr, stderr)
        os.kill(pid, signal.SIGCONT)
        wait_for_files(case, 3)
        wait_for('later steps', lambda: sessions(case)[0]['step'] > steps[-1] + 100)
        windows = traced(case, 3)
        check(all(w == steps for w in windows.values()), steps, windows)
        check('does not answer' in ask(case, 'trigger')[1] or len(files(case)) >= 3, 'again')


def line_with(process, words):
    """Of what it says, while it runs."""
    said = b''
    while not re.search(words.encode() + b'.*\n', said):
        check(select.select([process.stderr], [], [], TIMEOUT_S)[0], 'no', words, 'in', said)
        data = os.read(process.stderr.fileno(), 4096)
        check(data, 'no', words, 'in', said)
        said += data
    return said.decode()


def expect_absent(line, pid, what, steps):
    window = f'it has no trace of window 1, steps {steps[0]} to {steps[-1]}'
    check(re.search(rf'warning: rank \d \(process {pid}\) {what} in step \d+: {window}', line), line)


def test_a_rank_that_dies_before_the_window(case):
    """Which it has agreed to: it is named, once others have that window."""
    command = ranks_of(case, 0, 4, 4, lambda rank: 1000)
    with running(case, ['--on-demand', '-n', 'train'], command) as process:
        found, = wait_for_steps(case, 4)
        steps = steps_of(ask(case, 'trigger', '--at-step', '+2000')[1])
        victim = max(found['processes'][1:])
        os.kill(victim, signal.SIGKILL)
        expect_absent(line_with(process, 'no trace of window'), victim, 'was killed', steps)
        wait_for_files(case, 3)


def test_a_rank_that_stands_still_before_the_window(case):
    command = ranks_of(case, 0, 4, 4, lambda rank: 1000)
    with running(case, ['--on-demand', '-n', 'train'], command) as process:
        found, = wait_for_steps(case, 4)
        steps = steps_of(ask(case, 'trigger', '--at-step', '+2000')[1])
        pid = stop_one(case, found['processes'][1:])
        expect_absent(line_with(process, 'no trace of window'), pid, 'stands still', steps)
        os.kill(pid, signal.SIGCONT)
        wait_for_files(case, 4)  # late, but it has its own
    check('no trace of window' not in case.finish(process).stderr, 'said again')


def test_ranks_that_all_end_before_the_window(case):
    """Then the hindmost is named, which may have held up the others."""
    command = ranks_of(case, 0, 4, 4, lambda rank: 1000)
    with running(case, ['--on-demand', '-n', 'train'], command) as process:
        found, = wait_for_steps(case, 4)
        ask(case, 'trigger', '--at-step', 1000000)
        victim = max(found['processes'][1:])
        os.kill(victim, signal.SIGKILL)
        wait_for('its end', lambda: [s for s in sessions(case) if s['ranks'] == 3])
        # Its mark of the step after the one it told of may just have been made.
        last = told_steps(case)[victim] + 1
        wait_for('later steps', lambda: all(step > last for pid, step in told_steps(case).items() if pid != victim))
    stderr = case.finish(process).stderr
    check(re.search(rf'window 1, steps 1000000 to 1000002, never began: rank \d \(process {victim}\) '
                    r'was killed in step \d+; the other 3 came to step \d+', stderr), stderr)
    check('no trace of window' not in stderr, stderr)


def test_a_rank_that_dies_in_between(case):
    """After all have taken the plan, and before the decision, which others wait for."""
    with two_nodes(case, random.Random(3), '--active', '2') as (meeting, nodes):
        found = sorted(sessions(case), key=lambda s: s['session'])
        request = os.path.join(meeting, 'gtrace-request')
        # One node cannot answer, so that the other one has to wait for the decision.
        os.kill(nodes[1].pid, signal.SIGSTOP)
        trigger = subprocess.Popen([case.gtrace_path, 'trigger', '--rendezvous', meeting],
                                   stderr=subprocess.PIPE, text=True, env=case.environment())
        wait_for('a look', lambda: os.path.exists(request) and 'phase look' in open(request).read())
        os.kill(nodes[1].pid, signal.SIGCONT)
        wait_for('a plan', lambda: 'phase prepare' in open(request).read())
        victim = max(found[0]['processes'][1:])
        os.kill(victim, signal.SIGKILL)
        stderr = trigger.communicate(timeout=TIMEOUT_S)[1]
        check_equal(trigger.returncode, 0, stderr)
        steps = steps_of(stderr)
        wait_for_files(case, 7)
        windows = traced(case, len(files(case)))
        check(all(w == steps for w in windows.values()), steps, windows)


def test_a_node_that_dies(case):
    """What it leaves in the directory is no session; one that stands still is left out."""
    with two_nodes(case, random.Random(4), '--active', '2') as (meeting, nodes):
        os.kill(nodes[1].pid, signal.SIGSTOP)
        stderr = ask(case, 'trigger', '--rendezvous', meeting)[1]
        check('does not answer: it is left out' in stderr and '4 ranks in 1 session' in stderr, stderr)
        steps = steps_of(stderr)
        os.kill(nodes[1].pid, signal.SIGCONT)
        wait_for_files(case, 4)
        check(all(w == steps for w in traced(case, 4).values()), steps, traced(case, 4))
        dead, = [s for s in sessions(case) if s['pid'] == nodes[1].pid]
        os.kill(nodes[1].pid, signal.SIGKILL)
        nodes[1].wait(TIMEOUT_S)
        for pid in dead['processes']:
            os.kill(pid, signal.SIGKILL)
        stderr = ask(case, 'trigger', '--rendezvous', meeting)[1]
        check('4 ranks in 1 session' in stderr and 'does not answer' not in stderr, stderr)


def test_same_steps_in_one_session(case):
    chance = random.Random(2)
    command = ranks_of(case, 0, 4, 4, lambda rank: chance.randrange(400, 1500))
    with running(case, ['--on-demand', '--then', 'stop', '-n', 'train'], command) as process:
        wait_for_steps(case, 4)
        steps = steps_of(ask(case, 'trigger')[1])
        wait_for_end(case, process)
        windows = traced(case, 4)
        check(all(w == steps for w in windows.values()), steps, windows)
