"""Tracing that is stopped: between windows, within one, before the first."""

from harness import check, check_equal, each
from on_demand import (ask, endless, expect_whole, files, running, session, sessions, steps_of, wait_for, wait_for_files,
                       wait_for_steps)


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
        last, = sessions(case)
        check_equal(last['step'], found['step'], 'step in which it was stopped')
        check_equal(last['source'], 'api', 'source of these steps')
        check('was stopped' in ask(case, 'trigger', status=1)[1], 'trigger')
        check('already' in ask(case, 'stop', status=1)[1], 'stop again')
        check(process.poll() is None, 'the program has ended')
    expect_whole(case.finish(process).trace('train-rank0-cycle1.trace.json.gz'))


def stopped_in_window(case, faults, command=None):
    with running(case, ['--on-demand'], command, faults=faults) as process:
        wait_for_steps(case)
        first = steps_of(ask(case, 'trigger', '--active', 100000)[1])[0]
        # A whole step, so that all that a step does is in it; gtrace may see later than ps that it is.
        wait_for('steps of the window', lambda: [s for s in sessions(case) if s['phase'] == 'tracing' and
                                                 s['step'] > first + 1])
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


def test_stop_before_a_buffer_is_full(case):
    """What CUPTI still holds is read where it is, and the names of its kernels are known."""
    command = endless(case, step_us=20000)
    expect_whole(stopped_in_window(case, 'in_place,late=30ms', command))


def test_stop_with_long_work_in_flight(case):
    """What is not over in time is no bad record, but work that is missing."""
    health = stopped_in_window(case, 'in_place,late=3s').expect_incomplete().health
    check_equal(health['bad_records'], 0, 'bad records')
    check(health['launches_without_gpu'] > 0, health)


def test_stop_with_bad_records(case):
    """Which are still said."""
    health = stopped_in_window(case, 'in_place,zero_time=40').expect_incomplete().health
    check(health['launches_without_gpu'] > 0, health)


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
