"""gtrace on a real GPU. Every case prints one line; the last line is 'N passed, N failed'.

usage: check.py BUILD OUTDIR [-k PATTERN] [--gpus N]

BUILD holds gtrace, the injection, the programs instructions and train (there or in simgpu/), and tracecheck.py
where there is no GTRACE_CORPUS with it.
"""
import argparse
import collections
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
import traceback

import check_late
import check_ops
import check_tools
import check_trigger
from runner import Runner, Trace, same_kernels, truth_of

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = []


def case(func):
    CASES.append(func)
    return func


@case
def eager(run):
    trace, = run.run('eager', ['--active', '3'], run.python('gpt.py'))
    trace.expect_whole()
    assert trace.health['step_source'] == 'optimizer', trace.health
    return same_kernels(trace, truth_of(run, 'eager')) + '; warnings: %s' % run.warnings


def cuda_backtrace(options):
    def check(run):
        """The line that waits for the GPU has that time, once a step."""
        trace, = run.run('backtrace', ['--cuda-backtrace', *options], run.python('programs.py', 'item', 11))
        trace.expect_whole()
        with open(os.path.join(HERE, 'programs.py')) as source:
            wanted, = (number for number, line in enumerate(source, 1) if line.endswith('# waits\n'))
        calls = list(trace.calls.values())
        stacks = [call['args'].get('Call stack', '').partition(';')[0] for call in calls]
        for call, stack in zip(calls, stacks):
            assert not stack or call['dur'] >= 10, call
        waits = [call for call, stack in zip(calls, stacks)
                 if stack.endswith('programs.py(%d): step_and_wait' % wanted) and 'Synchronize' in call['name']]
        assert len(waits) == len(trace.steps), [(call['name'], stack) for call, stack in zip(calls, stacks) if stack]
        done = subprocess.run([run.gtrace, 'summary', '--by', 'line', '--format', 'json', trace.path],
                              stdout=subprocess.PIPE, check=True)
        line, = (row for row in json.loads(done.stdout)['files'][0]['lines']
                 if (row['file'], row['line']) == ('programs.py', wanted))
        assert line['self_cpu_us'] >= .99 * sum(call['dur'] for call in waits), line
        return '%d calls with stacks of %d; the line waits %.1f ms a step' % (
            sum(map(bool, stacks)), len(calls), line['self_cpu_us'] / 1e3 / len(trace.steps))
    check.__name__ = 'cuda_backtrace' + ''.join(options).replace('--', '_')
    return case(check)


for more in [], ['--with-stack']:
    cuda_backtrace(more)


@case
def doctor(run):
    """What it says of this machine is in doctor.log; and the hindrances that can be made here."""
    def ask(*options, **env):
        done = subprocess.run([run.gtrace, 'doctor', '-o', run.out, *options], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, env={**os.environ, **env})
        return done.returncode, done.stdout

    status, text = ask()
    with open(os.path.join(run.out, 'doctor.log'), 'w') as log:
        log.write(text)
    assert status == 0, text
    proof, = [line for line in text.splitlines() if ' trace.self_test: ' in line]
    assert proof.startswith('ok ') and 'a kernel and its launch, 4 pieces of GPU work' in proof, text
    status, text = ask('--json', CUDA_VISIBLE_DEVICES='')
    assert status == 0 and json.loads(text)['gpu'] == 'none', text
    status, text = ask('--json', CUDA_INJECTION64_PATH='/opt/other.so')
    assert status == 1 and 'tools.conflict' in text, text
    return proof


@case
def frameworks(run):
    """Each framework's own steps, as many as it says it made."""
    said = []
    chosen = {'denoise-sample': ['--step-call', '__main__:denoise'],
              'denoise-ranges': ['--step-range', '^denoise [0-9]+$']}
    for script, options, source in (('trainer', [], 'transformers'), ('fit', ['accumulate'], 'lightning'),
                                    ('fit', ['manual'], 'lightning'), ('accelerated', [], 'optimizer'),
                                    ('diffusion', ['pipeline'], 'diffusers'), ('diffusion', ['loop'], 'diffusers'),
                                    ('denoise', ['train'], 'optimizer'), ('denoise', ['sample'], 'call'),
                                    ('denoise', ['ranges'], 'nvtx'), ('jax_steps', [], 'jax')):
        name = '-'.join([script, *options])
        command = run.python('frameworks/%s.py' % script, 12, *options)
        if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=HERE).returncode:
            said.append('%s: cannot run here' % name)
            continue
        trace, = run.run(name, ['--active', '100', '--name', 'it', *chosen.get(name, [])], command)
        assert trace.health['step_source'] == source, (name, trace.health)
        assert 'steps 12' in run.log.splitlines(), run.log
        # the first mark ends step 0, the last one begins a step that the end of the program ends
        assert set(trace.steps) == {'ProfilerStep#%d' % step for step in range(3, 13)}, (name, trace.steps)
        assert trace.kernels, name
        said.append('%s: %d kernels' % (name, len(trace.kernels)))
    assert any('kernels' in one for one in said), said
    return '; '.join(said)


@case
def repeat_10(run):
    traces = run.run('repeat', ['--repeat', '10'], run.python('gpt.py', '--steps', 60))
    assert len(traces) == 10, len(traces)
    for trace in traces:
        trace.expect_whole()
    assert len({sum(t.kernel_names().values()) for t in traces}) == 1
    return '10 complete cycles of %d kernels' % len(traces[0].kernels)


def behind_ms(trace):
    """How long after the window's last step its last kernel begins."""
    end = max(e['ts'] + e['dur'] for e in trace.events if e['name'] in trace.steps and e['cat'] == 'user_annotation')
    return (max(e['ts'] for e in trace.kernels) - end) / 1e3


@case
def gpu_behind(run):
    """Windows end, and the next ones open, long before the GPU comes to their work."""
    traces = run.run('behind', check_ops.schedule(check_ops.WINDOWS), run.python('programs.py', 'behind', check_ops.STEPS))
    assert len(traces) == check_ops.WINDOWS, len(traces)
    for trace in traces:
        trace.expect_whole(check_ops.ACTIVE)
    behind = [behind_ms(trace) for trace in traces]
    assert len({len(trace.kernels) for trace in traces}) == 1, [len(trace.kernels) for trace in traces]
    period_ms = check_ops.PERIOD * 10  # at least
    assert max(behind) > period_ms, behind
    return '%d kernels a window, the last begins %s ms after its end' % (
        len(traces[0].kernels), ' '.join('%.0f' % ms for ms in behind))


@case
def gpu_far_behind(run):
    """The window ends seconds before the GPU comes to it, and all that it does until then has no record."""
    trace, = run.run('far-behind', ['--skip-first', '40', '--active', '2'], run.python('programs.py', 'far_behind', 70))
    trace.expect_whole(2)
    assert len(trace.kernels) == 2 * 7, len(trace.kernels)
    assert behind_ms(trace) > 2000, behind_ms(trace)
    return 'the last of %d kernels begins %.0f ms after the window' % (len(trace.kernels), behind_ms(trace))


@case
def compiled(run):
    trace, = run.run('compile', ['--skip-first', '4'], run.python('gpt.py', '--mode', 'compile', '--steps', 14), 300)
    trace.expect_whole()
    return same_kernels(trace, truth_of(run, 'compile'))


@case
def graph_before(run):
    trace, = run.run('graph', [], run.python('gpt.py', '--mode', 'graph'))
    trace.expect_whole()
    return same_kernels(trace, truth_of(run, 'graph'))


@case
def graph_in_and_between(run):
    traces = run.run('graph-mid', ['--repeat', '4'], run.python('gpt.py', '--mode', 'graph-mid', '--steps', 26))
    assert len(traces) == 4, len(traces)
    for trace in traces:
        trace.expect_whole()
    return 'captured launches by cycle: %s' % [t.health['captured_launches'] for t in traces]


@case
def graph_as_a_whole(run):
    trace, = run.run('graph-whole', ['--cuda-graph', 'graph'], run.python('gpt.py', '--mode', 'graph'))
    assert trace.health['complete'], trace.health
    return '%d GPU events' % len(trace.kernels)


@case
def eight_threads(run):
    trace, = run.run('threads', [], run.python('threads.py'))
    trace.expect_whole()
    per_thread = collections.Counter(e['tid'] for e in trace.calls.values() if 'Launch' in e['name'])
    assert sum(1 for n in per_thread.values() if n == 3 * 40) == 8, per_thread
    return '%d kernels from %d threads' % (len(trace.kernels), len(per_thread))


@case
def plain_c(run):
    truth_file = os.path.join(run.out, 'c-truth.json')
    trace, = run.run('plain-c', ['--step-range', '^train step$'],
                     [run.train, '--marks', 'nvtx', '--steps', '12', '--truth', truth_file])
    trace.expect_whole()
    assert trace.health['step_source'] == 'nvtx', trace.health
    with open(truth_file) as stream:
        truth = json.load(stream)
    return '%d kernels in %d steps; the program says: %s' % (
        len(trace.kernels), len(trace.steps), json.dumps(truth)[:200])


@case
def two_ranks(run):
    procs = []
    where = os.path.join(run.out, 'ranks')
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    for rank in (0, 1):
        env = {**os.environ, 'RANK': str(rank), 'WORLD_SIZE': '2'}
        procs.append(subprocess.Popen([run.gtrace, 'run', '-o', where, '--', *run.python('gpt.py')], env=env, cwd=HERE,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    assert [p.wait(timeout=120) for p in procs] == [0, 0]
    files = sorted(os.listdir(where))
    for path in files:
        Trace(os.path.join(where, path)).expect_whole()
    assert files == ['gpt-rank0.trace.json.gz', 'gpt-rank1.trace.json.gz'], files
    return ', '.join(files)


def own_profiler(where):
    def check(run):
        traces = run.run('profiler-' + where, [], run.python('own_profiler.py', where))
        assert 'profiled' in run.log, run.log
        if where in ('before', 'after'):    # the two profilers are not on at the same time
            assert len(traces) == 1 and len(traces[0].kernels) > 300, [t.health for t in traces]
            traces[0].expect_whole()
        elif where == 'schedule':
            assert 'the window at step 3 is left out' in run.log and not traces, run.log
        elif where in ('inside', 'thread'):
            assert 'torch.profiler' in traces[0].health['reason'], traces[0].health
        return '%s; %s' % ([line for line in run.log.splitlines() if line.startswith('profiled')][0],
                           [(len(t.kernels), t.health['complete'], t.steps) for t in traces])
    check.__name__ = 'own_profiler_' + where
    return case(check)


for place in ('before', 'inside', 'after', 'all', 'thread', 'schedule'):
    own_profiler(place)


def said_by(run, *words):
    return ', '.join(line for line in run.log.splitlines() if line.startswith(words))


def captured(name, what, options, source_steps):
    """Three steps that the program names are traced, as it counts them."""
    def check(run):
        trace, = run.run('captured-' + name, options, run.python('captured.py', what))
        trace.expect_whole(len(source_steps))
        assert trace.steps == ['ProfilerStep#%d' % step for step in source_steps], trace.steps
        assert trace.health['step_source'] == 'capture', trace.health
        said = '' if what == 'inference' else same_kernels(trace, truth_of(run, 'eager')) + '; '
        return said + '%d kernels; %s' % (len(trace.kernels), said_by(run, 'start took', 'median step'))
    check.__name__ = 'captured_' + name
    return case(check)


captured('profiler', 'profiler', ['--capture-range', 'cuda-profiler'], [5, 6, 7])
captured('nvtx', 'nvtx', ['--capture-range', 'nvtx:^look here$'], [5, 6, 7])
captured('inference', 'inference', ['--capture-range', 'cuda-profiler'], [0])
captured('unasked', 'inference', [], [0])


@case
def captured_not_obeyed(run):
    """The optimizer's steps came first."""
    trace, = run.run('captured-not', [], run.python('captured.py', 'profiler'))
    trace.expect_whole()
    assert trace.steps == ['ProfilerStep#%d' % step for step in (3, 4, 5)], trace.steps
    return said_by(run, 'start took', 'median step')


@case
def captured_by_time(run):
    trace, = run.run('captured-time', ['--delay', '25s', '--duration', '2s', '--then', 'stop'],
                     run.python('gpt.py', '--steps', 100000))
    assert trace.health['complete'] and trace.steps and trace.kernels, trace.health
    return '%d steps, %d kernels' % (len(trace.steps), len(trace.kernels))


@case
def captured_beside_own_profiler(run):
    """torch.profiler is whole before and after; whether the calls are still heard then depends on PyTorch."""
    traces = run.run('captured-both', ['--capture-range', 'cuda-profiler'], run.python('captured.py', 'both'))
    assert run.log.count('profiled device events') == 2, run.log
    if traces:
        traces[0].expect_whole()
    else:
        assert "another tool holds CUPTI's callbacks" in run.log, run.log
    return '%d traces; %s' % (len(traces), said_by(run, 'profiled', 'start took'))


@case
def killed(run):
    """SIGKILL in the window: what was complete 100 ms before is in the file."""
    where = os.path.join(run.out, 'killed')
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    found, bad = [], []
    for number in range(3):
        proc = subprocess.Popen([run.gtrace, 'run', '-o', where, '-n', 'k%d' % number, '--active', '100000', '--',
                                 *run.python('gpt.py', '--steps', '100000')], stderr=subprocess.PIPE, text=True)
        for line in proc.stderr:
            if 'window' in line:
                break
        time.sleep(.3 + random.random())        # the random moment itself, not a synchronisation
        target = subprocess.run(['pgrep', '-P', str(proc.pid), '-f', 'gpt.py'], stdout=subprocess.PIPE, text=True)
        moment = time.time_ns()
        subprocess.run(['kill', '-KILL', *target.stdout.split()], check=True)
        proc.communicate()
        trace = Trace(os.path.join(where, 'k%d-rank0.trace.json.gz' % number))
        base = trace.doc['baseTimeNanoseconds']
        last = max(base + (e['ts'] + e['dur']) * 1000 for e in trace.kernels)
        found.append(round((moment - last) / 1e6, 1))
        bad.append(trace.health['bad_records'])
    return 'ms between the kill and the last kernel in the file: %s; bad records: %s' % (found, bad)


def expect_all_reduced(trace, log):
    """Each NCCL kernel is an all-reduce of this rank with the other, and they reduce all gradients once a step."""
    kernels = [e for e in trace.kernels if 'nccl' in e['name'].lower()]
    facts = ('Collective name', 'Group size', 'Rank', 'Reduction')
    seen = collections.Counter(tuple(e['args'].get(key) for key in facts) for e in kernels)
    rank = trace.doc['distributedInfo']['rank']
    assert list(seen) in ([('allreduce', 2, rank, 'sum')], [('allreduce', 2, rank, 'avg')]), seen
    gradients = int(re.search(r'done, (\d+) bytes of gradients', log)[1])
    sizes = [e['args'].get('Message bytes') for e in kernels]
    assert None not in sizes and sum(sizes) == gradients * len(trace.steps), (sizes, gradients)
    facts = ('dtype', 'Process Group Name', 'Process Group Description', 'Process Group Ranks')
    seen = collections.Counter(tuple(e['args'].get(key) for key in facts) for e in kernels)
    assert list(seen) == [('Float', '0', 'default_pg', '[0, 1]')], seen
    assert all(e['args']['In msg nelems'] * 4 == e['args']['Message bytes'] for e in kernels)
    ops = [e for e in trace.events if e.get('name') == 'record_param_comms' and 'Collective name' in e['args']]
    assert len(ops) == len(kernels), (len(ops), len(kernels))
    return {e['args'].get('Communicator') for e in kernels}


@case
def ddp_random_windows(run):
    """Ranks with schedules of their own: first calls of CUPTI staggered, windows at random moments."""
    if run.gpus < 2:
        return None
    rng = random.Random(7)
    script = os.path.join(run.out, 'staggered.sh')
    where = os.path.join(run.out, 'ddp')
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    with open(script, 'w') as out:
        out.write('#!/bin/sh\nif [ "$RANK" = 0 ]; then set -- --skip-first %d --wait %d; else set -- --skip-first %d '
                  '--wait %d; fi\nexec %s run -q -o %s "$@" --warmup 1 --active 2 --repeat 25 --step-source optimizer -- %s '
                  'ddp.py 500\n' % (rng.randrange(63, 69), rng.randrange(5, 9), rng.randrange(70, 80), rng.randrange(9, 13),
                                    run.gtrace, where, sys.executable))
    os.chmod(script, 0o755)
    done = subprocess.run([sys.executable, '-m', 'torch.distributed.run', '--nproc-per-node', '2', '--no-python', script],
                          cwd=HERE, timeout=240, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-1500:]
    traces = [Trace(path) for path in glob.glob(where + '/*.gz')]
    assert len(traces) == 50, len(traces)
    whole = sum(t.health['complete'] for t in traces)
    nccl = sum(1 for t in traces for e in t.kernels if 'nccl' in e['name'].lower())
    assert whole == 50 and nccl, (whole, nccl)
    communicators = set().union(*(expect_all_reduced(trace, done.stdout) for trace in traces))
    assert len(communicators) == 1 and None not in communicators, communicators
    return '50 windows complete, %d NCCL kernels' % nccl


@case
def ddp_torchrun(run):
    if run.gpus < 2:
        return None
    traces = run.run('torchrun', ['--repeat', '3'],
                     [sys.executable, '-m', 'torch.distributed.run', '--nproc-per-node', '2', 'ddp.py', '40'], 200)
    assert len(traces) == 6, [t.path for t in traces]
    for trace in traces:
        trace.expect_whole()
        expect_all_reduced(trace, run.log)
    return ', '.join(os.path.basename(t.path) for t in traces)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('build')
    parser.add_argument('outdir')
    parser.add_argument('-k', default='', help='comma-separated parts of names')
    parser.add_argument('--gpus', type=int, default=1)
    args = parser.parse_args()
    run = Runner(os.path.abspath(args.build), os.path.abspath(args.outdir))
    run.gpus = args.gpus
    os.makedirs(run.out, exist_ok=True)
    if not run.tracecheck:
        print('tracecheck.py is not there: traces are not held against it')
    results = collections.Counter()
    for check in CASES + check_late.CASES + check_ops.CASES + check_tools.CASES + check_trigger.CASES:
        if not any(part in check.__name__ for part in args.k.split(',')):
            continue
        begin = time.time()
        try:
            run.errors, run.log, run.lacks = [], '', 'needs 2 GPUs'
            said = check(run)
            assert not run.errors, run.errors[:5]
            verdict = 'skipped' if said is None else 'passed'
        except Exception:       # any failure is a result, the other cases still run
            said, verdict = traceback.format_exc(limit=-2)[-1800:], 'failed'
        results[verdict] += 1
        print('%-7s %-24s %5.1f s  %s' % (verdict, check.__name__, time.time() - begin, said or run.lacks), flush=True)
    print('%d passed, %d failed, %d skipped' % (results['passed'], results['failed'], results['skipped']))
    return 1 if results['failed'] else 0


if __name__ == '__main__':
    sys.exit(main())
