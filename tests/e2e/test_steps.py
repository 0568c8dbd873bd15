"""Schedules and what marks a step."""

import os

from harness import ROOT, check, check_equal, compare, each, trace_and_compare

SIMGPU = os.path.join(ROOT, 'tests/simgpu')


# ---- schedules ----

@each(no_wait=[['--wait', 0], [1, 2], range(2, 5)],
      no_warm_up=[['--warmup', 0], [1, 2], range(2, 5)],
      long_warm_up=[['--warmup', 3], [2, 5], range(5, 8)],
      one_step=[['--active', 1], [2, 3], range(3, 4)],
      late=[['--skip-first', 4, '--active', 2], [5, 6], range(6, 8)],
      first_cycle_without_wait=[['--wait', 5, '--skip-first-wait'], [1, 2], range(2, 5)])
def test_schedule(case, options, tools, steps):
    trace_and_compare(case, options, case.train(tools=tools, off=[tools[0] - 1] if tools[0] > 1 else []), steps)


def test_window_at_the_very_start(case):
    options = ['--skip-first', 0, '--wait', 0, '--warmup', 0, '--active', 2]
    trace_and_compare(case, options, case.train(tools=[], off=()), range(0, 2))


def test_program_ends_in_its_window(case):
    trace = case.gtrace(['--active', 100], case.train(gone=False)).trace().expect_checked().expect_complete()
    # Step 10 is what follows the last mark: nothing but the end of the program.
    check_equal(trace.step_numbers()[:7], list(range(3, 10)), 'steps')
    cut = [e['name'] for e in trace.of('user_annotation') if e['args'].get('cut')]
    check_equal(cut, ['ProfilerStep#10'], 'steps that are cut')
    compare_prefix(trace, case.truth(), range(3, 10))


def compare_prefix(trace, truth, steps):
    from harness import expected

    want = expected(truth, steps)['kernels']
    check_equal(dict(trace.count('kernel')), dict(want), 'kernels')


@each(three=[3], without_end=[0])
def test_repeat(case, repeat):
    """Each cycle has a file of its own, numbered from 1."""
    options = ['--skip-first', 0, '--wait', 2, '--warmup', 1, '--active', 2, '--repeat', repeat]
    cycles = repeat or 4
    tools = [step for cycle in range(cycles) for step in (5 * cycle + 2, 5 * cycle + 3)]
    off = [5 * cycle + 1 for cycle in range(cycles)]
    result = case.gtrace(options, case.train('--steps', 20, '--step-us', 2000, tools=tools, off=off,
                                             gone=repeat != 0))
    check_equal(result.names(), [f'train-rank0-cycle{c}.trace.json.gz' for c in range(1, cycles + 1)],
                'files')
    for cycle in range(1, cycles + 1):
        trace = result.trace(f'train-rank0-cycle{cycle}.trace.json.gz')
        trace.expect_checked().expect_complete()
        check_equal(trace.health['cycle'], cycle, 'cycle')
        compare(trace, case.truth(), range(5 * cycle - 2, 5 * cycle))


def test_windows_back_to_back(case):
    """The next cycle warms up while the last records of this one are still awaited."""
    options = ['--skip-first', 0, '--wait', 0, '--warmup', 1, '--active', 1, '--repeat', 0]
    command = case.train('--steps', 20, tools=range(1, 20), off=(), gone=False)
    result = case.gtrace(options, command, faults='slow=3')
    check_equal(len(result.names()), 10, 'files')
    for name in result.names():
        trace = result.trace(name).expect_checked().expect_complete()
        compare(trace, case.truth(), [2 * trace.health['cycle'] - 1])


def test_every_step_a_window(case):
    """The next window opens at once, and the last records of the ones before still come in time."""
    options = ['--skip-first', 0, '--wait', 0, '--warmup', 0, '--active', 1, '--repeat', 0]
    command = case.train('--steps', 24, '--step-us', 100000, tools=None, gone=False)
    result = case.gtrace(options, command)
    check(len(result.names()) >= 24, 'files', result.names())
    check('too many windows' not in result.stderr, 'windows did not end:', result)


def test_window_beyond_the_program(case):
    result = case.gtrace(['--skip-first', 1000], case.train(tools=None))
    check_equal(result.names(), [], 'files')
    check('step' in result.stderr, 'nothing said about the missing window:', result)


def test_stop_after_the_window(case):
    """--then stop: the target gets SIGTERM once the files are complete."""
    command = case.train('--steps', 100000, '--step-us', 1000)
    result = case.gtrace(['--then', 'stop'], command)
    trace = result.trace().expect_checked().expect_complete()
    check_equal(trace.step_numbers(), [3, 4, 5], 'steps')


@each(whole_run=['--step-source', 'none'], no_ranges=['--capture-range', 'none'])
def test_stop_of_what_ends_with_the_program(case, option, value):
    """Its file is complete as the program ends: that is not cut short."""
    result = case.gtrace(['--then', 'stop', option, value], case.train('--exit-status', 7, tools=None), status=7)
    check('trained 10 steps' in result.stdout, result)


# ---- what marks a step ----

def test_range_that_never_comes(case):
    """Steps are by what is seen, and that the range was not is said."""
    result = case.gtrace(['--step-range', '^no such range$'], case.train_py())
    check_equal(result.trace().health['step_source'], 'optimizer', 'source')
    check("'^no such range$': steps are by optimizer" in result.stderr, result)


def test_range_below_another_source(case):
    """What goes before a range is said, too: whether there was one is not known then."""
    result = case.gtrace(['--step-range', '^no such range$'], case.train('--marks', 'api'))
    check_equal(result.trace().health['step_source'], 'api', 'source')
    check("steps are by api, which goes before NVTX and --step-range '^no such range$'" in result.stderr, result)


@each(api=['api', [], 'api'],
      range=['nvtx', ['--step-range', '^train step$'], 'nvtx'],
      mark=['nvtx-mark', ['--step-range', '^step [0-9]+$'], 'nvtx'])
def test_source(case, marks, options, source):
    """Found by auto, and the only one when asked for."""
    trace = trace_and_compare(case, options, case.train('--marks', marks), range(3, 6))
    check_equal(trace.health['step_source'], source, 'step_source')


@each(api=['api', 'api', []],
      nvtx=['nvtx', 'nvtx', ['--step-range', '^train step$']])
def test_source_chosen(case, marks, source, options):
    trace = trace_and_compare(case, ['--step-source', source, *options], case.train('--marks', marks),
                              range(3, 6))
    check_equal(trace.health['step_source'], source, 'step_source')


def test_optimizer_chosen(case):
    trace = trace_and_compare(case, ['--step-source', 'optimizer'], case.train_py(), range(3, 6))
    check_equal(trace.health['step_source'], 'optimizer', 'step_source')


def test_version_of_torch(case):
    """As it is imported before CUDA is initialised."""
    script = ('import sys\n'
              f'sys.path[:0] = [{SIMGPU!r}, {os.path.join(SIMGPU, "fake")!r}]\n'
              'import torch, train\n'
              'train.Program(train.parse()).run()\n')
    trace = case.gtrace(['-n', 'train'], [*case.python(), '-c', script]).trace()
    check_equal(trace.health['torch'], '2.11.0+simgpu', 'torch')


@each(two=[2], three=[3])
def test_several_optimizers_are_one_step(case, count):
    trace_and_compare(case, [], case.train_py('--optimizers', count), range(3, 6))


def test_api_rules_over_the_optimizer(case):
    """A program that marks steps itself knows better, whatever else is seen."""
    trace = trace_and_compare(case, [], case.train_py('--marks', 'api'), range(3, 6))
    check_equal(trace.health['step_source'], 'api', 'step_source')


def whole(case, options, command, **environment):
    result = case.gtrace(options, command, **environment)
    trace = result.trace().expect_checked().expect_complete()
    check_equal(trace.step_numbers(), [0], 'steps')
    check_equal(trace.health['step_source'], 'none', 'step_source')
    compare_prefix(trace, case.truth(), range(0, 11))
    return result


@each(c=['train'], c_with_marks_that_do_not_count=['api'])
def test_no_source(case, marks):
    """--step-source none: the whole run is one step."""
    whole(case, ['--step-source', 'none'],
          case.train('--marks', 'none' if marks == 'train' else marks, tools=None))


def test_auto_without_steps(case):
    """What was recorded until the end becomes the trace, and a line says how to mark steps."""
    result = whole(case, [], case.train('--marks', 'none', tools=None))
    for word in 'gtrace_step', 'NVTX', 'optimizer':
        check(word.lower() in result.stderr.lower(), word, 'is not named:', result)


def test_auto_without_steps_in_python(case):
    result = case.gtrace([], case.train_py('--marks', 'none', tools=None))
    check_equal(result.trace().expect_checked().step_numbers(), [0], 'steps')


def test_auto_reaches_its_bound(case):
    """More than --max-buffer holds: what was recorded is kept, and the trace says that it ends."""
    command = case.train('--marks', 'none', '--steps', 400, '--layers', 40, '--sync', 0, tools=None)
    result = case.gtrace(['--max-buffer', '4M'], command)
    trace = result.trace().expect_checked()
    check_equal(trace.step_numbers(), [0], 'steps')
    total = sum(sum(step['kernels'].values()) for step in case.truth()['steps'])
    got = len(trace.of('kernel'))
    check(0 < got < total, 'kernels', got, 'of', total)
    check(not trace.health['complete'] or 'full' in str(trace.health) or trace.health.get('warnings'),
          'nothing says that the recording ended early:', trace.health)
    check('the whole run' not in result.stderr and "so the trace is of the run's beginning" in result.stderr, result)


def test_steps_after_the_bound(case):
    """The recording has reached its bound when the first step is marked: the window takes its file."""
    command = case.train('--marks', 'api', '--layers', 8000, '--sync', 0, '--steps', 8, tools=(3, 4))
    result = case.gtrace(['--max-buffer', '4M', '--skip-first', 2, '--active', 1], command)
    # How much of so large a step finds room is not the question. When gtrace is late, nothing of it does.
    check('no step was seen' not in result.stderr, result)
    if 'window 1 is lost: events found no room' in result.stderr:
        return
    check_equal(result.trace().step_numbers(), [4], 'steps')
    check("the run's beginning" in result.stderr, 'the bound was not reached:', result)
    check(' files' not in result.stderr, result)


def test_first_step_throws_the_recording_away(case):
    """In auto, what precedes the first mark is not in the trace."""
    trace = trace_and_compare(case, [], case.train('--marks', 'api'), range(3, 6))
    first = trace.steps()[0][1]
    check(all(e['ts'] >= first for e in trace.calls()), 'calls before the window')
