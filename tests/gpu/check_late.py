"""Cases of check.py in which CUPTI is called for the first time in the midst of the program."""
import json
import os
import subprocess

from runner import same_kernels, truth_of

CASES = []


def case(func):
    CASES.append(func)
    return func


def late(mode):
    def check(run):
        """Without a recording before the first step: as the first window warms up."""
        traces = run.run('late-' + mode, ['--step-source', 'optimizer', '--repeat', '2'],
                         run.python('gpt.py', '--mode', mode, '--steps', 16))
        assert len(traces) == 2, [t.path for t in traces]
        for trace in traces:
            trace.expect_whole()
            said = same_kernels(trace, truth_of(run, mode))
        return said
    check.__name__ = 'late_' + mode
    return check


def late_own_profiler(where):
    def check(run):
        """As late(), and the program uses torch.profiler before its window, or after it."""
        trace, = run.run('late-profiler-' + where, ['--step-source', 'optimizer'], run.python('own_profiler.py', where))
        trace.expect_whole()
        said, = (line for line in run.log.splitlines() if line.startswith('profiled'))
        return '%s; %d kernels' % (said, len(trace.kernels))
    check.__name__ = 'late_own_profiler_' + where
    return check


CASES += [late('eager'), late('graph'), late_own_profiler('before'), late_own_profiler('after')]


def instructions(run, prefix=()):
    """Of a launch, before, while and after what would be traced."""
    done = subprocess.run([*prefix, os.path.join(run.build, 'instructions'), '20'], stdout=subprocess.PIPE, text=True,
                          check=True)
    return [int(word) for word in done.stdout.split()[1:]]


@case
def idle(run):
    """A library that has nothing to trace is in no launch; equal launches differ by some 20 instructions."""
    plain = instructions(run)
    for options in (['--on-demand'], ['--wait', '1000']):
        found = instructions(run, [run.gtrace, 'run', '-q', '-o', run.out, '--step-source', 'api', *options, '--'])
        assert all(abs(count - min(plain)) < 100 for count in found), (found, plain)
    return 'instructions a launch: %s, alone %s' % (found, plain)


@case
def late_threads(run):
    """CUPTI's first call comes in the midst of launches: in fifty programs of eight threads."""
    truth_file, programs = os.path.join(run.out, 'threads-truth.json'), 50
    for _ in range(programs):
        trace, = run.run('late-threads', ['--step-source', 'api'],
                         [run.train, '--threads', '8', '--steps', '12', '--sync', '0', '--truth', truth_file])
        trace.expect_whole()
        with open(truth_file) as stream:
            wanted = [sum(step['kernels'].values()) for step in json.load(stream)['steps'][3:6]]
        assert len(trace.kernels) == sum(wanted), (len(trace.kernels), wanted)
    return '%d kernels in each of %d traces' % (len(trace.kernels), programs)


@case
def first_window_in_capture(run):
    traces = run.run('capture', ['--step-source', 'api', '--skip-first', '0'], run.python('capture_first.py'))
    assert 'graph replayed right' in run.log, run.log
    assert sum(len(t.kernels) for t in traces) > 400, [t.health for t in traces]
    return '; '.join('%d kernels, captured %d, complete %s' % (
        len(t.kernels), t.health['captured_launches'], t.health['complete']) for t in traces)
