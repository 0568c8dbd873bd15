"""Windows on demand of several ranks, in one session and in several: all have the same steps."""

import contextlib
import os
import random
import re
import select
import signal
import subprocess

from harness import TIMEOUT_S, Failure, Result, check, check_equal
from on_demand import (ask, endless, expect_whole, files, running, sessions, steps_of, wait_for, wait_for_files,
                       wait_for_steps)

ROUNDS = int(os.environ.get('GTRACE_E2E_TRIGGERS', '3'))


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


def stop_threads(pid):
    """The signal goes to one thread: where processors are rare, the others run on until it has got one."""
    def states():
        for thread in os.listdir(f'/proc/{pid}/task'):
            with open(f'/proc/{pid}/task/{thread}/stat') as file:
                yield file.read().rpartition(')')[2].split()[0]
    os.kill(pid, signal.SIGSTOP)
    wait_for('stop of all threads', lambda: set(states()) == {'T'})


def stop_one(case, pids):
    """A rank that is stopped answers nobody."""
    pid = max(pids)
    stop_threads(pid)
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
        # the others were in its steps before it was agreed on
        said = line_with(process, 'is complete')
        check(said.count('window 1 open at') == 1, said)
        check(f'window 1 open at step {steps[0]}, for 2 steps' in said, said)
        wait_for('later steps', lambda: sessions(case)[0]['step'] > steps[-1] + 100)
        windows = traced(case, 3)
        check(all(w == steps for w in windows.values()), steps, windows)
        check('of 4 ranks' in ask(case, 'trigger')[1], 'it does not answer yet')


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


def test_a_rank_without_steps(case):
    """It agrees to each window and never comes to one; a helper of a rank that does steps is no loss."""
    one = 'RANK={} WORLD_SIZE=2 ' + ' '.join(endless(case, 1000)) + ' --marks {} & '
    command = ['sh', '-c', ''.join(one.format(*each) for each in [(0, 'api'), (0, 'none'), (1, 'none')]) + 'wait']
    with running(case, ['--on-demand', '-n', 'train'], command) as process:
        wait_for('its processes', lambda: [s for s in sessions(case) if s['ranks'] == 1 and len(s['processes']) == 4])

        def trigger():  # until its GPU is known, and no window is on its way
            return re.findall(r'warning: (.*)', subprocess.run(
                [case.gtrace_path, 'trigger'], stderr=subprocess.PIPE, text=True, env=case.environment()).stderr)
        warning, = wait_for('a warning', trigger)
        expected = r'rank 1 \(process \d+\) was seen in no step so far: without steps it has no trace'
        check(re.fullmatch(expected, warning), warning)
        line_with(process, f'warning: {expected} of the window that is triggered')


def test_a_rank_that_closed_its_descriptors(case):
    """It cannot be asked, but is traced: ps counts it, with its steps."""
    one = 'RANK={} ' + os.path.join(case.simgpu, 'train') + ' --steps 1000000 --step-us {} {} &'
    both = one.format(0, 500, '--close-at 20') + one.format(1, 20000, '')
    with running(case, ['--on-demand'], ['sh', '-c', both + ' wait']):
        wait_for('steps of the foremost', lambda: wait_for_steps(case, 2)[0]['step'] > 200)


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


def read(path):
    with open(path) as file:
        return file.read()


def told_by(meeting, node):
    """What a session says in the directory."""
    texts = [read(os.path.join(meeting, name)) for name in os.listdir(meeting) if name.startswith('gtrace-session-')]
    return next(text for text in texts if f'pid {node.pid}\n' in text)


def test_a_rank_that_dies_in_between(case):
    """After all have taken the plan, and before the decision, which others wait for."""
    with two_nodes(case, random.Random(3), '--active', '2') as (meeting, nodes):
        found = sorted(sessions(case), key=lambda s: s['session'])
        request = os.path.join(meeting, 'gtrace-request')
        # Who asks and who answers stand still in turn, so that no phase is over before it is seen.
        os.kill(nodes[1].pid, signal.SIGSTOP)
        trigger = subprocess.Popen([case.gtrace_path, 'trigger', '--rendezvous', meeting, '--at-step', '+3000'],
                                   stderr=subprocess.PIPE, text=True, env=case.environment())
        wait_for('a look', lambda: os.path.exists(request) and 'phase look' in read(request))
        os.kill(trigger.pid, signal.SIGSTOP)
        os.kill(nodes[1].pid, signal.SIGCONT)
        wait_for('its answer', lambda: 'phase look' in told_by(meeting, nodes[1]))
        os.kill(nodes[1].pid, signal.SIGSTOP)
        os.kill(trigger.pid, signal.SIGCONT)
        wait_for('a plan', lambda: 'phase prepare' in read(request))
        os.kill(trigger.pid, signal.SIGSTOP)
        os.kill(nodes[1].pid, signal.SIGCONT)
        for node in nodes:
            wait_for('its answer', lambda node=node: 'answer taken' in told_by(meeting, node))
        victim = max(found[0]['processes'][1:])
        os.kill(victim, signal.SIGKILL)
        os.kill(trigger.pid, signal.SIGCONT)
        stderr = trigger.communicate(timeout=TIMEOUT_S)[1]
        check_equal(trigger.returncode, 0, stderr)
        steps = steps_of(stderr)
        wait_for_files(case, 7)
        windows = traced(case, 7)
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


def test_a_rank_of_a_node_that_does_not_answer(case):
    """It is not counted, neither where the trigger comes from nor on its node."""
    with two_nodes(case, random.Random(6), '--active', '2') as (meeting, nodes):
        found, = [s for s in sessions(case) if s['pid'] == nodes[0].pid]
        pid = stop_one(case, found['processes'][1:])
        stderr = ask(case, 'trigger', '--rendezvous', meeting)[1]
        check('warning: 1 rank has no part in it' in stderr and '7 ranks in 2 sessions' in stderr, stderr)
        line_with(nodes[0], r'triggered: window 1, steps \d+ to \d+ of 3 processes')
        os.kill(pid, signal.SIGCONT)


def test_a_node_that_is_stopped(case):
    """By gtrace stop: it has left the meeting, and the others go on."""
    with two_nodes(case, random.Random(5), '--active', '2') as (meeting, nodes):
        ask(case, 'stop', '--session', nodes[1].pid)
        stderr = ask(case, 'trigger', '--rendezvous', meeting)[1]
        check('4 ranks in 1 session' in stderr and 'warning' not in stderr, stderr)
        wait_for_files(case, 4)


def test_same_steps_in_one_session(case):
    chance = random.Random(2)
    command = ranks_of(case, 0, 4, 4, lambda rank: chance.randrange(400, 1500))
    with running(case, ['--on-demand', '--then', 'stop', '-n', 'train'], command) as process:
        wait_for_steps(case, 4)
        steps = steps_of(ask(case, 'trigger')[1])
        wait_for_end(case, process)
        windows = traced(case, 4)
        check(all(w == steps for w in windows.values()), steps, windows)


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
