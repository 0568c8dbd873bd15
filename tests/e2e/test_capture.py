"""Captured ranges: --capture-range."""

import bisect
import collections
import signal

from harness import check, check_equal, compare, each, expected

PROFILER = ['--capture-range', 'cuda-profiler']
# The program waits until gtrace has all of the last range: at its end it has little time for it.
TO_THE_END = {'tools': (), 'off': ()}


def captured(case, options, ranges, steps, *args, kind='cuda', marks='api', **environment):
    """The one trace of a program with these ranges, which holds these steps of its own."""
    command = case.train('--range', kind, '--ranges', ranges, '--marks', marks, *args, **TO_THE_END)
    trace = case.gtrace(options, command, **environment).trace().expect_checked().expect_complete()
    check_equal(trace.health['step_source'], 'capture', 'step_source')
    return compare(trace, case.truth(), steps)


def kernels(trace, truth, steps):
    check_equal(dict(trace.count('kernel')), dict(expected(truth, steps)['kernels']), 'kernels')


@each(runtime=['cuda'], driver=['driver'])
def test_profiler_calls(case, kind):
    captured(case, PROFILER, '+3 -5', range(3, 6), kind=kind)


def test_profiler_calls_and_threads(case):
    captured(case, PROFILER, '+3 -5', range(3, 6), '--threads', 4)


def test_steps_by_nvtx_within(case):
    captured(case, [*PROFILER, '--step-range', '^train step$'], '+3 -5', range(3, 6), marks='nvtx')


def test_no_steps_within(case):
    """A range without steps is one."""
    command = case.train('--ranges', '+3 -5', '--marks', 'none', **TO_THE_END)
    trace = case.gtrace(PROFILER, command).trace().expect_checked().expect_complete()
    check_equal(trace.step_numbers(), [0], 'steps')
    kernels(trace, case.truth(), range(3, 6))


def test_steps_that_were_not_asked_for(case):
    command = case.train('--ranges', '+3 -5', **TO_THE_END)
    trace = case.gtrace([*PROFILER, '--step-source', 'none'], command).trace()
    check_equal(trace.expect_checked().expect_complete().step_numbers(), [0], 'steps')
    kernels(trace, case.truth(), range(3, 6))


@each(within_one_step=['+3 -3m', {'adam': 0, 'sgemm': 5}], over_the_mark=['+3m -4m', {'adam': 1, 'sgemm': 5}])
def test_parts_of_steps(case, ranges, counts):
    """Of a step only what is in the range, which begins and ends where it is, not at a mark."""
    command = case.train('--ranges', ranges, **TO_THE_END)
    trace = case.gtrace(PROFILER, command).trace().expect_checked().expect_complete()
    for word, count in counts.items():
        got = sum(n for name, n in trace.count('kernel').items() if word in name)
        check_equal(got, count, f'kernels {word}')


@each(once=[[], 1], twice=[['--capture-end', 'repeat:2'], 2], always=[['--capture-end', 'repeat'], 3])
def test_several_ranges(case, options, count):
    command = case.train('--ranges', '+1 -2 +4 -4 +6 -8', '--steps', 12, **TO_THE_END)
    result = case.gtrace([*PROFILER, *options], command)
    check_equal(len(result.names()), count, 'files')
    for name, steps in zip(result.names(), [range(1, 3), [4], range(6, 9)]):
        compare(result.trace(name).expect_checked().expect_complete(), case.truth(), steps)


@each(two_starts=['+3 +4 -5', range(3, 6)], two_stops=['+3 -4 -5', range(3, 5)],
      a_stop_first=['-1 +3 -5', range(3, 6)], by_another_thread=['+3 -5t', range(3, 6)])
def test_odd_pairs(case, ranges, steps):
    captured(case, PROFILER, ranges, steps)


def test_never_ended(case):
    command = case.train('--ranges', '+7', tools=None, gone=False)
    trace = case.gtrace(PROFILER, command).trace().expect_checked().expect_complete()
    check_equal(trace.step_numbers()[:3], [7, 8, 9], 'steps')
    kernels(trace, case.truth(), range(7, 11))


@each(no_begin=['-3'], nothing=[''])
def test_never_begun(case, ranges):
    result = case.gtrace(PROFILER, case.train('--ranges', ranges, tools=None))
    check_equal(result.names(), [], 'files')
    result.expect(stderr=r'nothing is traced: cudaProfilerStart\(\) never came')


def test_before_any_context(case):
    """The call is the program's first one: by it we come in."""
    command = case.train('--ranges', '+s -2', **TO_THE_END)
    trace = case.gtrace(PROFILER, command).trace().expect_checked().expect_complete()
    check_equal(trace.step_numbers(), [0, 1, 2], 'steps')
    kernels(trace, case.truth(), range(0, 3))


def test_killed_within(case):
    command = case.train('--ranges', '+3', '--die-at', 6, tools=None)
    trace = case.gtrace(PROFILER, command, status=-signal.SIGKILL).trace().expect_incomplete()
    check('killed' in trace.health['reason'], 'reason', trace.health)
    check(3 in trace.step_numbers(), 'steps', trace.step_numbers())


def test_stop_after_the_range(case):
    command = case.train('--ranges', '+3 -5', '--steps', 100000, '--step-us', 1000, tools=None)
    trace = case.gtrace([*PROFILER, '--then', 'stop'], command).trace()
    check_equal(trace.expect_checked().expect_complete().step_numbers(), [3, 4, 5], 'steps')


# ---- in Python ----

@each(optimizer=['optimizer', range(3, 6)], none=['none', [0]])
def test_python(case, marks, steps):
    command = case.train_py('--range', '3:5', '--marks', marks, **TO_THE_END)
    trace = case.gtrace(PROFILER, command).trace().expect_checked().expect_complete()
    check_equal(trace.step_numbers(), list(steps), 'steps')
    kernels(trace, case.truth(), range(3, 6))


def test_torch_profiler_after(case):
    """It finds CUPTI's only place free, though gtrace held it."""
    result = case.gtrace(PROFILER, case.train_py('--range', '4:5', '--profile', 7, tools=None))
    check('profiler: subscribe 0' in result.stdout, 'the slot was taken:', result)
    trace = result.trace().expect_checked().expect_complete()
    check_equal(trace.step_numbers(), [4, 5], 'steps')
    kernels(trace, case.truth(), [4, 5])


def test_torch_profiler_before(case):
    """It keeps the place, as that of PyTorch 2.13 and older does, and that is said."""
    result = case.gtrace(PROFILER, case.train_py('--range', '4:5', '--profile', 1, tools=None))
    check('profiler: subscribe 0' in result.stdout, 'the slot was taken:', result)
    check_equal(result.names(), [], 'files')
    result.expect(stderr="another tool holds CUPTI's callbacks")


def test_torch_profiler_within(case):
    command = case.train_py('--range', '3:6', '--profile', 4, tools=None)
    result = case.gtrace(PROFILER, command)
    check('profiler: subscribe 0' in result.stdout, 'the slot was taken:', result)
    check('torch.profiler' in result.trace().expect_incomplete().health['reason'], result)


def test_place_is_taken(case):
    """Another tool has it: the calls are not heard, and that is said."""
    command = case.train('--ranges', '+3 -5', tools=None)
    result = case.gtrace(PROFILER, command, faults='subscriber_taken=1')
    check_equal(result.names(), [], 'files')
    result.expect(stderr='another tool holds CUPTI')


# ---- without being asked ----

def test_obeyed_before_the_first_step(case):
    """The recording from the start is thrown away."""
    command = case.train('--ranges', '+3 -5 +7 -8', '--marks', 'none', **TO_THE_END)
    result = case.gtrace([], command)
    trace = result.trace().expect_checked().expect_complete()
    check_equal(trace.step_numbers(), [0], 'steps')
    kernels(trace, case.truth(), range(3, 6))
    check('no step was seen' not in result.stderr, result)


@each(steps_rule=[[], '+1 -1'], steps_were_asked_for=[['--capture-range', 'steps'], '+s -1'],
      a_source_was_asked_for=[['--step-source', 'api'], '+s -1'])
def test_not_obeyed(case, options, ranges):
    trace = case.gtrace(options, case.train('--ranges', ranges)).trace()
    check_equal(trace.expect_checked().expect_complete().step_numbers(), [3, 4, 5], 'steps')
    check_equal(trace.health['step_source'], 'api', 'step_source')


def test_not_obeyed_by_none(case):
    command = case.train('--ranges', '+3 -5', '--marks', 'none', tools=None)
    trace = case.gtrace(['--capture-range', 'none'], command).trace()
    check(trace.expect_checked().expect_complete().health['whole_run'], trace.health)


# ---- NVTX ----

@each(push=['nvtx', 'to be traced'], start=['start', '^to be'], domain=['domain', 'traced@train.capture'],
      any_domain=['domain', 'traced@*'], default_domain=['nvtx', 'traced@'])
def test_nvtx(case, kind, regex):
    captured(case, ['--capture-range', f'nvtx:{regex}'], '+3 -5', range(3, 6), kind=kind)


@each(another_name=['nvtx:something'], another_domain=['nvtx:traced@train.capture'])
def test_nvtx_of_another_name(case, capture):
    command = case.train('--range', 'nvtx', '--ranges', '+3 -5', tools=None)
    result = case.gtrace(['--capture-range', capture], command)
    check_equal(result.names(), [], 'files')
    result.expect(stderr='nothing is traced: the NVTX range')


def test_nvtx_within_itself(case):
    """The outermost one rules."""
    captured(case, ['--capture-range', 'nvtx:traced'], '+3 +4 -4 -5', range(3, 6), kind='nvtx')


def test_nvtx_of_every_step(case):
    """Ranges of the program itself, each a file."""
    options = ['--capture-range', 'nvtx:^train step$', '--capture-end', 'repeat:3']
    result = case.gtrace(options, case.train('--marks', 'nvtx', tools=None, gone=False))
    check_equal(len(result.names()), 3, 'files')
    for step, name in enumerate(result.names()):
        kernels(result.trace(name).expect_checked().expect_complete(), case.truth(), [step])


# ---- time ----

def whole_steps(case, length):
    """How many steps begin and end in ranges of this length; they are there whole."""
    options = ['--delay', length, '--duration', length, '--capture-end', 'repeat', '-n', length]
    result = case.gtrace(options, case.train('--steps', 120, '--layers', 1, tools=None, gone=False))
    truth, compared = case.truth(), 0
    for name in result.names():
        if not name.startswith(length):
            continue
        trace = result.trace(name).expect_complete()
        numbers = trace.step_numbers()
        check_equal(numbers, list(range(numbers[0], numbers[0] + len(numbers))), 'steps')
        if not trace.of('kernel'):
            continue
        trace.expect_checked()
        launches = trace.launches()
        begins = [first for _, first, _ in trace.steps()]
        seen = collections.Counter(bisect.bisect(begins, launches[e['args']['correlation']]['ts']) - 1
                                   for e in trace.of('kernel'))
        for i in range(1, len(numbers) - 1):
            want = sum(expected(truth, [numbers[i]])['kernels'].values())
            check_equal(seen[i], want, f'kernels of step {numbers[i]} in {name}')
            compared += 1
    return compared


def test_time(case):
    """Again and again, so that a slow machine has its GPU in use in some of them."""
    check(whole_steps(case, '200ms') or whole_steps(case, '2s'), 'no step to compare')


def test_time_from_the_start(case):
    """Without a delay nothing is missing from the beginning, without a duration nothing at the end."""
    command = case.train('--marks', 'none', tools=None, gone=False)
    trace = case.gtrace(['--duration', '1h'], command).trace().expect_checked().expect_complete()
    kernels(trace, case.truth(), range(0, 11))
    trace = case.gtrace(['--capture-range', 'time', '--delay', '1ms', '--force'], command).trace()
    trace.expect_checked().expect_complete()


def late(case, after_s):
    """A program that comes so late, and when it does."""
    script = f'sleep {after_s}; date +%s%N >{case.directory}/begun; exec "$@"'
    return ['sh', '-c', script, 'late', *case.train('--steps', 100000, '--step-us', 1000, tools=None)]


def expect_range(case, trace, length_ms):
    """It ends so long after the program came, but for the clocks' rounding."""
    with open(f'{case.directory}/begun') as file:
        begun_ns = int(file.read())
    length_ns = trace.json['baseTimeNanoseconds'] + 1000 * trace.steps()[-1][2] - begun_ns
    check(length_ns >= (length_ms - 2) * 1000000, 'the range has', length_ns, 'ns of', length_ms, 'ms')


def test_time_that_is_over(case):
    """A program whose start takes longer than until the end of the range has all of it from then on."""
    options = ['--delay', '100ms', '--duration', '200ms', '--then', 'stop']
    result = case.gtrace(options, late(case, 0.4)).expect(stderr='warning: train .*: its range begins only now')
    expect_range(case, result.trace().expect_complete(), 200)


def test_time_that_has_begun(case):
    """And so has one that starts within it."""
    trace = case.gtrace(['--duration', '300ms', '--then', 'stop'], late(case, 0.2)).trace()
    expect_range(case, trace.expect_complete(), 300)


def test_time_and_no_more(case):
    options = ['--delay', '50ms', '--duration', '50ms', '--capture-end', 'repeat:2', '--then', 'stop']
    result = case.gtrace(options, case.train('--steps', 100000, '--step-us', 1000, tools=None))
    check_equal(len(result.names()), 2, 'files')
    for name in result.names():
        result.trace(name).expect_complete()
