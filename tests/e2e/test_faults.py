"""What CUPTI can do wrong, and other things that are not as they should be: no fault may harm the
target, and every loss is counted and said.
"""

import os
import re

from harness import check, check_equal, compare, each, expected


def trace_of(case, faults, command=None, options=(), status=0, **environment):
    result = case.gtrace(options, command or case.train(), status=status, faults=faults, **environment)
    check('trained 10 steps' in result.stdout, 'the target did not finish:', result)
    trace = result.trace()
    trace.result = result
    return trace.expect_checked()


def kernels_and_copies(case, steps=range(3, 6)):
    want = expected(case.truth(), steps)
    return sum(want['kernels'].values()) + sum(count for count, _ in want['copies'].values())


# ---- losses ----

@each(some=['drop=10'], most=['drop=2'])
def test_dropped_records(case, faults):
    """CUPTI counts what it drops; so does the trace."""
    trace = trace_of(case, faults).expect_incomplete()
    dropped = trace.health['dropped']['cupti']
    missing = kernels_and_copies(case) - len(trace.gpu())
    check(missing > 0, 'nothing is missing')
    # The counter is CUPTI's, of all that it dropped while it was on, also outside of the window.
    check(dropped >= missing, 'dropped', dropped, 'but missing', missing)
    check(re.search(r' is not complete: .*, [1-9]\d* lost; ', trace.result.stderr), 'nothing said:', trace.result)


def test_every_record_dropped(case):
    result = case.gtrace([], case.train(), faults='drop=1')
    trace = result.trace().expect_incomplete()
    check_equal(trace.gpu(), [], 'GPU events')
    check(len(trace.calls()) > 0, 'the launches are there all the same')
    check('another profiler' not in result.stderr, 'blamed for what CUPTI counts:', result)


def test_lost_records(case):
    """Records that never come and that nobody counts: found by their launches."""
    trace = trace_of(case, 'lose=10').expect_incomplete()
    health = trace.health
    lost = kernels_and_copies(case) - len(trace.gpu())
    check(0 < health['launches_without_gpu'] <= lost, 'launches_without_gpu', health, 'lost', lost)


@each(zero_times=['zero_time=5'], end_before_start=['end_before_start=5'])
def test_bad_times(case, faults):
    trace = trace_of(case, faults).expect_incomplete()
    bad = kernels_and_copies(case) - len(trace.gpu())
    check(bad > 0, 'all records were used')
    check(trace.health['bad_records'] + trace.health['launches_without_gpu'] >= bad, trace.health, bad)
    for event in trace.gpu():
        check(event['dur'] >= 0, event)


def test_unknown_kinds(case):
    """A kind that nobody documents, but whose size is known, is passed over."""
    trace = trace_of(case, 'unknown_kind=3')
    compare(trace, case.truth(), range(3, 6))


def test_alien_kinds(case):
    """A record whose size is not known hides all behind it in its buffer. That is said."""
    result = case.gtrace([], case.train(), faults='alien_kind=40')
    trace = result.trace().expect_incomplete()
    check(kernels_and_copies(case) > len(trace.gpu()), 'nothing is missing')
    check(trace.health['bad_records'] > 0 or trace.health['launches_without_gpu'] > 0, trace.health)


# ---- lateness ----

@each(a_little=['late=20ms'], late=['late=300ms'], very=['late=1500ms'])
def test_late_records(case, faults):
    """What is complete only long after the window's end still belongs to it."""
    trace = trace_of(case, faults).expect_complete()
    compare(trace, case.truth(), range(3, 6))
    check('another profiler' not in trace.result.stderr, 'a false alarm:', trace.result)


def test_young_threads(case):
    """CUPTI loses threads that began just before its kinds are disabled. They are not, then."""
    trace = trace_of(case, 'forget_young=20ms', case.train('--threads', 8)).expect_complete()
    compare(trace, case.truth(), range(3, 6))


def test_far_behind(case):
    """The GPU is seconds behind a program that goes on: the window waits."""
    command = case.train('--steps', 40, '--step-us', 100000)
    trace = case.gtrace([], command, faults='late=2500ms').trace().expect_complete()
    compare(trace, case.truth(), range(3, 6))


def test_too_late_records(case):
    """A program that ends does not wait for them. A window has what came, and says what is missing."""
    command = case.train(off=(), gone=False)
    trace = case.gtrace([], command, faults='late=4s').trace().expect_incomplete()
    check(trace.health['launches_without_gpu'] > 0, trace.health)


@each(flush_without_waiting=['async_flush'], withheld=['withhold'], foreign_buffers=['foreign_buffers'],
      slow_enable=['slow_enable=200ms'], long_kernels=['slow=100'], all_of_it=[
          'async_flush,foreign_buffers,slow_enable=50ms,slow=10,unknown_kind=7'])
def test_ways_of_cupti(case, faults):
    trace = trace_of(case, faults).expect_complete()
    compare(trace, case.truth(), range(3, 6))


# ---- versions ----

@each(CUDA_11_8=['11.8', 18], CUDA_12_0=['12.0', 19], CUDA_12_8=['12.8', 26], CUDA_13_0=['13.0', 130001],
      CUDA_13_3=['13.3', 130300])
def test_record_sizes(case, layout, version):
    """One binary for all layouts of the records."""
    trace = trace_of(case, f'record_sizes={layout}', case.train('--peer', 1)).expect_complete()
    check_equal(trace.json['cupti_version'], version, 'cupti_version')
    compare(trace, case.truth(), range(3, 6))


def test_cupti_newer_than_the_driver(case):
    """It would not work; the target runs, and a line says what to do."""
    result = case.gtrace([], case.train(tools=None), faults='driver=12040')
    check('trained 10 steps' in result.stdout, result)
    check('CUPTI' in result.stderr or 'cupti' in result.stderr, 'nothing said of CUPTI:', result)


# ---- no CUPTI, or not all of it ----

def test_no_libcupti(case):
    libraries = case.libraries_less('libcupti')
    result = case.gtrace([], case.train(tools=None), libraries=libraries,
                         env={'GTRACE_LIBCUPTI': '/nonexistent/libcupti.so.13'})
    check('trained 10 steps' in result.stdout, result)
    check('libcupti' in result.stderr, 'nothing said of libcupti:', result)
    for name in result.names():
        check('CUPTI' in result.trace(name).expect_incomplete().health['reason'], 'no reason')


def test_no_gpu(case):
    result = case.gtrace([], case.train(tools=None), status=99, faults='no_device')
    check_equal(result.names(), [], 'files')


@each(stream_ids=['cuptiGetStreamIdEx'], attributes=['cuptiActivitySetAttribute'],
      thread_ids=['cuptiSetThreadIdType'], dropped_records=['cuptiActivityGetNumDroppedRecords'],
      driver_filter=['cuptiActivityEnableDriverApi'], runtime_filter=['cuptiActivityEnableRuntimeApi'],
      result_strings=['cuptiGetResultString'], timestamps=['cuptiGetTimestamp'])
def test_missing_symbol(case, symbol):
    """Not every CUPTI has these: it goes without."""
    libraries = case.libraries_without('libcupti.so.13', symbol)
    result = case.gtrace([], case.train(), libraries=libraries)
    trace = result.trace().expect_checked().expect_complete()
    compare(trace, case.truth(), range(3, 6))


@each(callbacks=['cuptiActivityRegisterCallbacks'], enable=['cuptiActivityEnable'],
      next_record=['cuptiActivityGetNextRecord'], flush=['cuptiActivityFlushAll'])
def test_missing_vital_symbol(case, symbol):
    """Without these there is no GPU work; the rest is traced, and a line says so."""
    libraries = case.libraries_without('libcupti.so.13', symbol)
    result = case.gtrace([], case.train(tools=None), libraries=libraries)
    check('trained 10 steps' in result.stdout, result)
    check(symbol in result.stderr, symbol, 'is not named:', result)


@each(recording=[], near_window=['--step-source', 'api'])
def test_enable_fails(case, *options):
    result = case.gtrace([*options], case.train(tools=None), faults='enable_fails')
    check('trained 10 steps' in result.stdout, result)
    check_equal(result.stderr.count('no permission (35)'), 1, 'warnings')
    check('CUPTI' in result.trace().expect_incomplete().health['reason'], 'no reason')


# ---- other tools ----

def test_subscriber_taken(case):
    """Error 39: launches come from the API activity kinds, and the trace says so."""
    trace = trace_of(case, 'subscriber_taken')
    check(trace.of('cuda_runtime'), 'no runtime calls')
    want = expected(case.truth(), range(3, 6))
    check_equal(dict(trace.count('kernel')), dict(want['kernels']), 'kernels')
    check(any('CUPTI' in w for w in trace.health.get('warnings', [])), 'no warning:', trace.health)


@each(before_the_window=[1], in_warm_up=[2], inside=[4])
def test_profiler_takes_cupti_over(case, step):
    """The program's own profiler, which gtrace cannot see coming in C, comes and goes. Nothing breaks
    and what is lost is said."""
    command = case.train('--profiler-at', step, gone=False, tools=None)
    result = case.gtrace([], command)
    check('trained 10 steps' in result.stdout, result)
    check('profiler: subscribe' in result.stdout, result)
    for name in result.names():
        trace = result.trace(name)
        check(all(event['dur'] > 0 for event in trace.of('kernel')), 'times of another clock')
        want = expected(case.truth(), range(3, 6))
        if sum(trace.count('kernel').values()) == sum(want['kernels'].values()):
            continue
        # Without callbacks of its own it cannot see that records are missing, but it says that much.
        if trace.health.get('fallback'):
            check('CUPTI' in str(trace.health['warnings']), 'nothing said:', trace.health)
        else:
            trace.expect_incomplete()


def test_callbacks_are_free_again(case):
    """The program's profiler came between windows, from C, and is gone by the second one."""
    options = ['--skip-first', 0, '--wait', 4, '--warmup', 1, '--active', 2, '--repeat', 2, '--step-source', 'api']
    # Step 7 is long enough to show that all records of the first window have come.
    command = case.train('--steps', 16, '--step-us', 30000, '--profiler-at', 2, '--profiler-steps', 7,
                         tools=(4, 11), off=(1, 8), gone=False)
    result = case.gtrace(options, command)
    first, second = (result.trace(f'train-rank0-cycle{cycle}.trace.json.gz').expect_complete() for cycle in (1, 2))
    check(first.health.get('fallback') and not second.health.get('fallback'), first.health, second.health)
    compare(second, case.truth(), [12, 13])


def test_takeover_by_a_daemon(case):
    """As Kineto's daemon makes it: from C, when gtrace is on and has no buffer yet, and for long."""
    command = case.train('--profiler-at', 2, '--profiler-steps', 7, gone=False, tools=[2])
    for env, who in ({}, 'another profiler'), ({'KINETO_USE_DAEMON': '1'}, 'daemon of KINETO_USE_DAEMON'):
        result = case.gtrace(['--force', '--step-source', 'api'], command, env=env)
        check(re.search(f'no record for .* launches: .*{who}.* may have taken it over', result.stderr), result)
        result.trace().expect_incomplete()


def profiled_kernels(result):
    """Of each of the program's own profiles."""
    return [int(line.split()[1]) for line in result.stdout.splitlines() if line.endswith(' kernels')]


def expect_profiles(result, truth, *steps):
    """They are whole but for the optimizer's kernel, which belongs to the next step."""
    want = [sum(sum(s['kernels'].values()) for s in truth['steps'][step:step + 2]) for step in steps]
    got = profiled_kernels(result)
    check_equal(len(got), len(want), 'profiles')
    check(all(abs(a - b) <= 2 for a, b in zip(got, want)), got, 'of', want, 'kernels')


def expect_left_out(result, name):
    """There is no such file; where the collector was steps behind, it has a step, and says why no more."""
    if name in result.names():
        check('torch.profiler' in result.trace(name).expect_incomplete().health['reason'], name, result)


@each(before=[0], in_warm_up=[1], inside=[4], after=[7])
def test_torch_profiler_gets_its_data(case, step):
    """In Python gtrace steps aside first: torch.profiler sees all of its two steps."""
    result = case.gtrace([], case.train_py('--profile', step, tools=None))
    check('profiler: subscribe 0' in result.stdout, 'the slot was taken:', result)
    expect_profiles(result, case.truth(), step)
    # The window begins with the end of step 2, while the profile ends with the beginning of 3.
    check_equal('the window at step 3 is left out' in result.stderr, step == 1, 'left out')
    if step == 1:
        expect_left_out(result, 'train-rank0.trace.json.gz')
        check('nothing is traced' not in result.stderr, 'a second reason:', result)
    if step == 4:
        trace = result.trace().expect_incomplete()
        check('torch.profiler' in trace.health['reason'], 'nothing said:', trace.health)
        # The profiler may start before anything of step 4 was seen.
        check(trace.step_numbers() in ([3], [3, 4]), 'steps', trace.step_numbers())


def test_torch_profiler_on_other_threads(case):
    result = case.gtrace([], case.train_py('--profile', 4, '--profile-thread', tools=None))
    expect_profiles(result, case.truth(), 4)
    check('torch.profiler' in result.trace().expect_incomplete().health['reason'], result)


def test_torch_profiler_again_and_again(case):
    """Of four windows the first and the last have nothing to do with its profiles, which are whole."""
    options = ['--skip-first', 0, '--wait', 1, '--active', 2, '--repeat', 4]
    command = case.train_py('--steps', 18, '--profile', 5, '--profile', 11, tools=(1, 2, 13, 14), off=(), gone=False)
    result = case.gtrace(options, command)
    truth = case.truth()
    expect_profiles(result, truth, 5, 11)
    # Windows: 2 to 3, 6 to 7, 10 to 11, 14 to 15. The second begins within a profile.
    expect_left_out(result, 'train-rank0-cycle2.trace.json.gz')
    check('the window at step 6 is left out' in result.stderr, result)
    for cycle, steps in (1, range(2, 4)), (4, range(14, 16)):
        compare(result.trace(f'train-rank0-cycle{cycle}.trace.json.gz').expect_complete(), truth, steps)
    check('torch.profiler' in result.trace('train-rank0-cycle3.trace.json.gz').expect_incomplete()
          .health['reason'], result)


def test_window_after_torch_profiler(case):
    """Kineto keeps the subscription, and leaves a clock of its own in CUPTI. The window is whole all the same."""
    result = case.gtrace([], case.train_py('--profile', 0, off=()))
    check('profiler: subscribe 0' in result.stdout, 'the slot was taken:', result)
    trace = result.trace()
    check(trace.health.get('fallback'), 'no fall-back:', trace.health, result)
    trace.expect_complete()
    compare(trace, case.truth(), range(3, 6))


def test_torch_profiler_around_the_first_cuda(case):
    """It began before the program first used CUDA, and finds CUPTI free: gtrace waits until it is over."""
    script = ('import ctypes, os\n'
              'cupti = ctypes.CDLL("libcupti.so.13")\n'
              'gtrace = ctypes.CDLL(os.environ["GTRACE_INJECTION"])\n'
              'assert gtrace.gtrace_inject_start(4) == 1\n'
              'gtrace.gtrace_inject_yield()\n'
              'assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0\n'
              'heard = ctypes.CFUNCTYPE(None)(lambda: None)\n'
              'subscriber = ctypes.c_void_p()\n'
              'print("subscribe", cupti.cuptiSubscribe(ctypes.byref(subscriber), heard, None))\n'
              'cupti.cuptiUnsubscribe(subscriber)\n')
    for graphs in 'node', 'graph':
        result = case.gtrace(['--cuda-graph', graphs], [*case.python(), '-c', script])
        check_equal(result.stdout, 'subscribe 0\n', 'the slot')
        check_equal('graphs are traced node by node' in result.stderr, graphs == 'graph', result.stderr)


# ---- the environment ----

def test_environment_that_falsifies_times(case):
    trace = trace_of(case, None, env={'CUDA_LAUNCH_BLOCKING': '1'})
    check('CUDA_LAUNCH_BLOCKING=1' in str(trace.health), trace.health)


def test_libcupti_by_hand(case):
    """GTRACE_LIBCUPTI names the one to use, where none would be found."""
    libraries = case.libraries_less('libcupti')
    path = os.path.join(case.simgpu, 'libcupti.so.13')
    trace = case.gtrace([], case.train(), libraries=libraries, env={'GTRACE_LIBCUPTI': path}).trace()
    compare(trace.expect_checked().expect_complete(), case.truth(), range(3, 6))
