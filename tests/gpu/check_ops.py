"""Cases of check.py: the operators of real training on the GPU against torch.profiler's key_averages().

Calls and FLOPs of operators and ranges are compared row by row; of GPU work, the number (torch.profiler leaves long
names as the linker sees them, and does not know what a memset in a graph sets) and the time in all, which is that of
the shortest of some windows: what else is on the GPUs makes it longer, such as NCCL's kernels that wait for a rank.
CUDA calls are not compared: torch.profiler has all of them, gtrace those that launch, wait or allocate.
"""
import collections
import json
import os
import re
import subprocess
import sys

FIRST, ACTIVE, PERIOD, WINDOWS = 6, 3, 6, 5
STEPS = FIRST + PERIOD * WINDOWS
# No operators: CUDA calls (INVALID: those that Kineto has no name for), and what only torch.profiler does.
NO_OPERATOR = re.compile(r'(cuda|cu|hip)[A-Z]\w+$|INVALID$|Activity Buffer|Buffer Flush|Instrumentation|Lazy Function|'
                         r'Runtime Triggered|Command Buffer|ProfilerStep|\[memory\]')
# Of one side only: names that compiled code has while torch.profiler is on, since torch's _RecordFunctionFast asks for
# its state; and NCCL's NVTX ranges.
OF_ONE = re.compile(r'## Call CompiledFxGraph|Pregraph bytecode$|AOTDispatcher Runtime|triton_\w+$|nccl[A-Z]\w+$')

COLLECTIVES = 'record_param_comms'      # the operator that has their GPU work


def summary_of(gtrace, path):
    done = subprocess.run([gtrace, 'summary', '--by', 'op', '--format', 'json', '--limit', '0', path],
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)['files'][0]['ops']


def same(ours, theirs):
    """torch.profiler now and then has one call too many, such as of layer_norm but not of the operator in it."""
    return ours == theirs or (ours and theirs and ours[0] % ACTIVE == 0 and theirs == (ours[0] + 1, ours[1]))


def compare(ours, theirs):
    """What differs, as lines, and the number of rows that were compared."""
    got = {(r['name'], r['user_annotation']): (r['calls'], r['flops']) for r in ours if r['device'] == 'CPU'}
    want = {(r['name'], r['user']): (r['count'], r['flops']) for r in theirs if r['device'] == 'CPU'}
    rows = sorted(row for row in set(got) | set(want) if not NO_OPERATOR.match(row[0]) and not OF_ONE.match(row[0]))
    differ = ['%s: (calls, FLOPs) %s, torch.profiler %s' % (row, got.get(row), want.get(row))
              for row in rows if not same(got.get(row), want.get(row))]
    mine = sum(r['calls'] for r in ours if r['device'] != 'CPU' and not r['user_annotation'])
    torchs = sum(r['count'] for r in theirs if r['device'] != 'CPU' and not r['user'])
    if mine != torchs:
        differ.append('%d pieces of GPU work, torch.profiler %d' % (mine, torchs))
    return differ, len(rows)


def gpu_us(rows, name, user, collectives=False):
    """Of the operators. What collectives take is mostly the wait for other ranks, another one in each run."""
    return sum(row[name] for row in rows
               if row['device'] == 'CPU' and not row[user] and not NO_OPERATOR.match(row['name']) and
               (row['name'] == COLLECTIVES) == collectives)


def profiled(run, name, launcher=()):
    """The program, which torch.profiler has followed, and by rank the file of what it says of each window."""
    program = [sys.executable, *launcher, 'programs.py', name, str(STEPS)]
    out = os.path.join(run.out, name + '-truth')
    subprocess.run([*program, str(FIRST), str(ACTIVE), str(PERIOD), out], check=True, timeout=300,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=os.path.dirname(os.path.abspath(__file__)))
    return program, out


def truth_of(out, rank=0):
    with open('%s.%d' % (out, rank)) as stream:
        windows = json.load(stream)
    assert len(windows) == WINDOWS, len(windows)
    return windows


def schedule(windows):
    wait = PERIOD - ACTIVE - 1
    return ['--skip-first', str(FIRST - 1 - wait), '--wait', str(wait), '--active', str(ACTIVE), '--repeat',
            str(windows)]


def key_averages(name, gpus=1):
    def check(run):
        if run.gpus < gpus:
            return None
        launcher = ['-m', 'torch.distributed.run', '--nproc-per-node', str(gpus)] if gpus > 1 else []
        program, out = profiled(run, name, launcher)
        traces = run.run('ops-' + name, schedule(WINDOWS), program, 300)
        assert len(traces) == gpus * WINDOWS, traces
        said, ours_us, theirs_us = collections.Counter(), [0] * WINDOWS, [0] * WINDOWS
        for trace in traces:
            trace.expect_whole(ACTIVE)
            rank, cycle = trace.doc.get('distributedInfo', {}).get('rank', 0), trace.health['cycle'] - 1
            theirs = truth_of(out, rank)[cycle]
            ours = summary_of(run.gtrace, trace.path)
            differ, count = compare(ours, theirs)
            assert not differ, '%d of %d rows: %s' % (len(differ), count, '\n'.join(differ[:12]))
            said['%d rows' % count] += 1
            ours_us[cycle] += gpu_us(ours, 'self_cuda_us', 'user_annotation')
            theirs_us[cycle] += gpu_us(theirs, 'self_dev', 'user')
            waits = gpu_us(ours, 'self_cuda_us', 'user_annotation', collectives=True)
            nccl = sum(event['dur'] for event in trace.kernels if event['name'].startswith('nccl'))
            assert abs(waits - nccl) < 1, 'collectives: %.0f us of %.0f us of NCCL' % (waits, nccl)
        # Which rank waits for which is chance: of all ranks.
        times = min(ours_us) / min(theirs_us)
        figures = 'GPU time %.3f of torch.profiler; us of each window: %s, torch.profiler %s' % (
            times, *(' '.join('%.0f' % us for us in windows) for windows in (ours_us, theirs_us)))
        assert .95 < times < 1.05, figures
        return '%s in %d files; %s' % (', '.join(said), len(traces), figures)
    check.__name__ = 'ops_' + name
    return check


def gpu_memory(run):
    """What each operator takes and gives back of the GPU's memory, and of the CPU's."""
    program, out = profiled(run, 'transformer')
    trace, = run.run('memory', [*schedule(1), '--activities', 'cpu,gpu,mem'], program, 300)
    trace.expect_whole(ACTIVE)

    def rows(found, user, device, host):
        return {row['name']: (row[device], row[host]) for row in found
                if row['device'] == 'CPU' and not row[user] and not NO_OPERATOR.match(row['name'])}
    got = rows(summary_of(run.gtrace, trace.path), 'user_annotation', 'self_cuda_mem', 'self_cpu_mem')
    want = rows(truth_of(out)[0], 'user', 'self_dev_mem', 'self_cpu_mem')
    differ = ['%s: (GPU, CPU) %s bytes, torch.profiler %s' % (name, got.get(name), want.get(name))
              for name in sorted(set(got) | set(want)) if got.get(name) != want.get(name)]
    assert not differ, '%d of %d rows: %s' % (len(differ), len(want), '\n'.join(differ[:12]))
    blocks = [e for e in trace.events if e['name'] == '[memory]' and e['args']['Device Type'] == 1]
    assert any(gpu for gpu, _ in got.values()) and blocks, 'no memory of the GPU'
    assert all(e['args']['Total Reserved'] >= e['args']['Total Allocated'] >= 0 for e in blocks)
    return '%d rows, %d blocks of the GPU' % (len(want), len(blocks))


CASES = [gpu_memory, *map(key_averages, ('eager', 'cnn', 'transformer', 'compiled', 'graph')), key_averages('ddp', 2),
         key_averages('fsdp', 2)]
