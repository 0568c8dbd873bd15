"""Cases of check.py in which CUPTI is called for the first time in the midst of the program."""
import json
import os
import subprocess

from runner import same_kernels, truth_of

CASES = []
LATE = ['--wait', '60']     # for with windows that are nearer CUPTI is called within cuInit()


def case(func):
    CASES.append(func)
    return func


def late(mode):
    def check(run):
        traces = run.run('late-' + mode, ['--step-source', 'optimizer', *LATE, '--repeat', '2'],
                         run.python('gpt.py', '--mode', mode, '--steps', 140))
        assert len(traces) == 2, [t.path for t in traces]
        for trace in traces:
            trace.expect_whole()
            said = same_kernels(trace, truth_of(run, mode))
        return said
    check.__name__ = 'late_' + mode
    return check


def late_own_profiler(where):
    def check(run):
        """CUPTI is the program's own profiler's until it becomes gtrace's."""
        trace, = run.run('late-profiler-' + where, ['--step-source', 'optimizer', *LATE],
                         run.python('own_profiler.py', where, 80))
        trace.expect_whole()
        said, = (line for line in run.log.splitlines() if line.startswith('profiled'))
        return '%s; %d kernels' % (said, len(trace.kernels))
    check.__name__ = 'late_own_profiler_' + where
    return check


CASES += [late('eager'), late('graph'), late_own_profiler('before'), late_own_profiler('all')]


def instructions(run, prefix=()):
    """Of a launch, before, while and after what would be traced; and what gtrace says."""
    done = subprocess.run([*prefix, os.path.join(run.build, 'instructions'), '20'], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=True)
    return [int(word) for word in done.stdout.split()[1:]], done.stderr


@case
def idle(run):
    """A library that has nothing to trace is in no launch; equal launches differ by some 20 instructions."""
    plain, _ = instructions(run)
    for options in (['--on-demand'], ['--wait', '1000']):
        prefix = [run.gtrace, 'run', '-o', run.out, '--step-source', 'api', *options, '--']
        found, said = instructions(run, prefix)
        assert 'on NVIDIA' in said, said    # or it is not idle, but not there
        assert all(abs(count - min(plain)) < 100 for count in found), (found, plain)
    return 'instructions a launch: %s, alone %s' % (found, plain)


@case
def late_threads(run):
    """CUPTI's first call comes in the midst of the launches of eight threads."""
    truth_file, programs = os.path.join(run.out, 'threads-truth.json'), 25
    for _ in range(programs):
        traces = run.run('late-threads', ['--step-source', 'api', *LATE, '--repeat', '2'],
                         [run.train, '--threads', '8', '--steps', '140', '--sync', '0', '--truth', truth_file])
        with open(truth_file) as stream:
            steps = [sum(step['kernels'].values()) for step in json.load(stream)['steps']]
        assert len(traces) == 2, [t.path for t in traces]
        for trace, first in zip(traces, (62, 126)):
            trace.expect_whole()
            assert len(trace.kernels) == sum(steps[first:first + 3]), (len(trace.kernels), steps[first:first + 3])
    return '%d kernels in each trace of %d programs' % (len(trace.kernels), programs)


def first_window_in_capture(name, options, marks):
    def check(run):
        trace, = run.run(name, ['--step-source', 'api', '--skip-first', '0', *options],
                         run.python('capture_first.py', marks))
        assert 'graph replayed right' in run.log, run.log
        assert len(trace.kernels) > 400, trace.health
        return '%d kernels, captured %d, complete %s' % (
            len(trace.kernels), trace.health['captured_launches'], trace.health['complete'])
    check.__name__ = name
    return check


CASES += [first_window_in_capture('first_window_in_capture', [], 3),
          first_window_in_capture('first_call_in_capture', LATE, 62)]
