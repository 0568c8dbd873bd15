"""CUPTI's first call: when it comes, and what comes while it is under way."""

import os
import re

from harness import check, check_equal, compare, each
from on_demand import ask, running, steps_of, wait_for_files, wait_for_steps

BEGIN = '''
import ctypes, os, sys, threading, time
gtrace = ctypes.CDLL(os.environ['GTRACE_INJECTION'])
assert gtrace.gtrace_inject_start(4) == 1
def subscribe():
    cupti, subscriber = ctypes.CDLL('libcupti.so.13'), ctypes.c_void_p()
    heard = ctypes.CFUNCTYPE(None)(lambda: None)
    result = cupti.cuptiSubscribe(ctypes.byref(subscriber), heard, None)
    return cupti.cuptiUnsubscribe(subscriber) if result == 0 else result
'''
# The thread sleeps in cuptiActivityEnable(), when the callbacks are gtrace's already.
IN_CUINIT = BEGIN + '''
thread = threading.Thread(target=ctypes.CDLL('libcuda.so.1').cuInit, args=[0])
thread.start()
def asleep():
    with open('/proc/self/maps') as maps, open(f'/proc/self/task/{thread.native_id}/stat') as stat:
        return 'libcupti' in maps.read() and stat.read().rpartition(')')[2].split()[0] == 'S'
while not asleep():
    pass
'''


def environment(case):
    return {'GTRACE_LIBCUPTI': os.path.join(case.simgpu, 'libcupti.so.13')}


def test_stop_in_cuinit(case):
    """What is being switched on is switched off again: CUPTI is the program's."""
    tell_fd, told_fd = os.pipe()
    script = IN_CUINIT + ('os.write(int(sys.argv[1]), b"1")\n'
                          'thread.join()\n'
                          'end = time.monotonic() + 20\n'
                          'while subscribe() and time.monotonic() < end:\n'
                          '    pass\n'
                          'print("subscribe", subscribe())\n')
    command = [*case.python(), '-c', script, str(told_fd)]
    with case.started(['--step-source', 'none'], command, pass_fds=[told_fd], faults='slow_enable=800ms',
                      env=environment(case)) as process:
        os.close(told_fd)
        with os.fdopen(tell_fd) as tell:
            tell.read(1)
        ask(case, 'stop')
        result = case.finish(process)
    check_equal(result.stdout, 'subscribe 0\n', 'the slot')


def test_profiler_begins_in_cuinit(case):
    """It waits until what is being switched on is off again."""
    script = IN_CUINIT + ('gtrace.gtrace_inject_yield()\n'
                          'print("subscribe", subscribe())\n')
    result = case.gtrace([], [*case.python(), '-c', script], faults='slow_enable=800ms', env=environment(case))
    check_equal(result.stdout, 'subscribe 0\n', 'the slot')


def test_profiler_begins_in_cuinit_behind_the_first_step(case):
    """That CUPTI stays on for a while behind the first step does not keep it from the profiler."""
    script = IN_CUINIT + ('gtrace.gtrace_inject_step()\n'
                          'gtrace.gtrace_inject_yield()\n'
                          'print("subscribe", subscribe())\n')
    result = case.gtrace([], [*case.python(), '-c', script], faults='slow_enable=60ms', env=environment(case))
    check_equal(result.stdout, 'subscribe 0\n', 'the slot')


def test_profiler_begins_behind_a_refusal(case):
    """What was taken for captured ranges, before CUPTI refused the rest, is given back."""
    script = BEGIN + ('ctypes.CDLL("libcuda.so.1").cuInit(0)\n'
                      'ctypes.CDLL("libcudart.so.13").cudaProfilerStart()\n'
                      'gtrace.gtrace_inject_yield()\n'
                      'print("subscribe", subscribe())\n')
    result = case.gtrace(['--capture-range', 'cuda-profiler'], [*case.python(), '-c', script], faults='enable_fails',
                         env=environment(case))
    check_equal(result.stdout, 'subscribe 0\n', 'the slot')


@each(schedule=['--wait', 1000, '--step-source', 'api'], on_demand=['--on-demand'],
      time=['--capture-range', 'time', '--delay', '1h'])
def test_idle(case, *options):
    """CUPTI slows down every launch from its first call on, so it is not called without need."""
    result = case.gtrace(['-vv', *options], case.train(tools=None), faults='report')
    check('libcupti.so.13 is version' in result.stderr, 'it could not be:', result)
    check('first call' not in result.stderr, 'CUPTI is called:', result)


def step_of_first_call(result, trace):
    """By what was done before, each step of the window having done as much as another."""
    work = int(re.search(r'first call of CUPTI was over after (\d+) pieces', result.stderr)[1])
    return work * len(trace.step_numbers()) / len(trace.gpu())


def test_called_ahead(case):
    """50 steps before the warm-up: no window waits for what the first call takes."""
    command = case.train('--steps', 160, '--step-us', 20000, tools=(151, 152))
    result = case.gtrace(['--step-source', 'api', '--wait', 150], command, faults='report,slow_call=20ms')
    trace = result.trace().expect_complete()
    step = step_of_first_call(result, trace)
    check(trace.step_numbers()[0] == 152 and 100 <= step < 151, step, trace.step_numbers())


def test_called_ahead_of_a_trigger(case):
    """And before its plan is taken, whose warm-up is the step before its first one."""
    with running(case, ['--on-demand'], faults='report,slow_call=300ms') as process:
        wait_for_steps(case)
        first = steps_of(ask(case, 'trigger')[1])[0]
        wait_for_files(case, 1)
    result = case.finish(process)
    step = step_of_first_call(result, result.trace('train-rank0-cycle1.trace.json.gz'))
    check(0 < step < first - 2, step, first)


@each(old_cupti=[['--wait', 1000], 'record_sizes=12.8'], near=[[], ''],
      profiler=[['--capture-range', 'cuda-profiler'], ''], nvtx=[['--capture-range', 'nvtx:none'], ''],
      whole_graphs=[['--wait', 1000, '--cuda-graph', 'graph'], ''])
def test_called_at_once(case, options, faults):
    """Where the midst of the program would be too late, or not safe."""
    result = case.gtrace(['--step-source', 'api', *options], case.train(tools=None),
                         faults=f'report,slow_call=100ms,{faults}')
    check('first call of CUPTI was over after 0 pieces' in result.stderr, 'CUPTI is not called:', result)


def test_called_ahead_of_a_time(case):
    """And before a range of time, which begins at its moment."""
    command = case.train('--steps', 100000, '--step-us', 2000, tools=None)
    result = case.gtrace(['--delay', '1500ms', '--duration', '200ms', '--then', 'stop'], command,
                         faults='report,slow_call=300ms')
    trace = result.trace()
    step = step_of_first_call(result, trace)
    check(step < trace.step_numbers()[0] * 0.8, step, trace.step_numbers())


def test_called_beside_a_profiler(case):
    """One that tells nobody keeps its buffers until a window opens."""
    command = case.train('--steps', 80, '--step-us', 2000, '--profiler-at', 5, '--profiler-steps', 10, tools=None)
    plain = case.gtrace(['--on-demand'], command)
    result = case.gtrace(['--step-source', 'api', '--wait', 60], command)
    check_equal(re.findall('profiler: .*', result.stdout), re.findall('profiler: .*', plain.stdout), 'its records')
    check('profiler: 0' not in plain.stdout, plain)


TWO_MARK = BEGIN + """
cuda, begun = ctypes.CDLL('libcudart.so.13'), threading.Event()
cuda.cudaFree(None)
def work():
    data = ctypes.c_void_p()
    cuda.cudaMalloc(ctypes.byref(data), 4096)
    for _ in range(20):
        cuda.cudaMemsetAsync(data, 0, 4096, None)
        gtrace.gtrace_inject_step()
def other():
    begun.wait()
    time.sleep(float(sys.argv[1]))
    work()
thread = threading.Thread(target=other)
thread.start()
for _ in range(60):
    gtrace.gtrace_inject_step()
begun.set()
work()
thread.join()
cuda.cudaDeviceSynchronize()
"""


def two_mark(case, active, faults, behind_s=0):
    options = ['--step-source', 'api', '--skip-first', 61, '--wait', 0, '--warmup', 0, '--active', active]
    return case.gtrace(options, [*case.python(), '-c', TWO_MARK, str(behind_s)], faults=faults, env=environment(case))


@each(short=[3, 0], long=[20, 15])
def test_first_window_waits_for_all_marks(case, active, least):
    """Not only for the one that opens it: the window would be over."""
    trace = two_mark(case, active, 'slow_call=500ms').trace().expect_complete()
    check(len(trace.gpu()) > least, len(trace.gpu()), 'of', active)


def test_first_window_does_not_wait_again(case):
    """The program ends long before CUPTI's first call does: no mark waits longer than that which opens the window."""
    result = two_mark(case, 20, 'report,slow_call=8s', behind_s=0.4)
    check('first call of CUPTI was over' not in result.stderr, result)
    check(not result.trace().health['complete'], result)


def test_first_window_waits(case):
    """What CUPTI does as a kind is first enabled takes longer than the warm-up."""
    command = case.train('--steps', 80, tools=None)
    result = case.gtrace(['--step-source', 'api', '--wait', 60], command, faults='slow_enable=400ms')
    compare(result.trace().expect_complete(), case.truth(), range(62, 65))
