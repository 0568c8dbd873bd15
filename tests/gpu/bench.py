"""What tracing costs on a real GPU: plain, idle, floor, gtrace and torch.profiler, interleaved.

usage: bench.py GTRACE FLOOR_SO LAUNCHES_BIN OUTDIR [--rounds N] [--windows N]

One worker process a mode, only one of them working at any time, a plain block after each block of another
mode, the modes in an order of chance in each round. A figure is the ratio of a low percentile of a mode's step
times to that of the plain ones, of all rounds together (what is slower is mostly the machine's noise), with a 95 %
bootstrap interval over the rounds.
"""
import argparse
import collections
import glob
import gzip
import json
import os
import random
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 14      # of a block; the first is dropped


class Worker:
    def __init__(self, kind, prefix=(), env=None):
        self.proc = subprocess.Popen(
            [*prefix, sys.executable, os.path.join(HERE, 'bench_worker.py'), kind],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})

    def ask(self, op, steps=0):
        print(json.dumps({'op': op, 'steps': steps}), file=self.proc.stdin, flush=True)
        line = self.proc.stdout.readline()
        if not line:
            raise SystemExit('a worker died with status %s' % self.proc.wait())
        return json.loads(line)

    def close(self):
        self.proc.stdin.close()
        return self.proc.wait()


def interval(values, repeats=4000):
    """Mean and its 95 % bootstrap interval."""
    rng = random.Random(1)
    means = sorted(statistics.fmean(rng.choices(values, k=len(values))) for _ in range(repeats))
    return statistics.fmean(values), means[int(repeats * .025)], means[int(repeats * .975)]


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def ratio(rounds, mode, base, share, repeats=2000):
    """The percentile of a mode's steps to that of another one's, and its 95 % bootstrap interval over the rounds."""
    def of(chosen):
        def value(name):
            return percentile([ms for steps in chosen for ms in steps.get(name, ())], share)
        return value(mode) / value(base)

    rounds = [steps for steps in rounds if mode in steps and base in steps]
    rng = random.Random(1)
    found = sorted(of(rng.choices(rounds, k=len(rounds))) for _ in range(repeats))
    return of(rounds), found[int(repeats * .025)], found[int(repeats * .975)]


def rounds(workers, count, log):
    """The step times of each round by mode, and what the traced blocks answered."""
    found, extra = [], {'floor': [], 'torch': [], 'gtrace': []}
    rng = random.Random(2)
    for number in range(count):
        steps = collections.defaultdict(list)

        def block(name, op='block'):
            answer = workers[name].ask(op, STEPS)
            return answer, answer['ms'][1:]

        def plain_block():
            steps['plain'] += block('plain')[1]

        def idle():
            steps['idle'] = block('idle')[1]

        def traced(name):
            answer, steps[name] = block(name, 'traced')
            extra[name].append(answer)
            plain_block()
            steps[name + ' after'] = block(name)[1]

        def gtrace():
            waited = block('gtrace')[1]     # after the window of the round before
            if number:
                steps['gtrace after'] = waited
            plain_block()
            workers['gtrace'].ask('block', 1)
            answer, steps['gtrace'] = block('gtrace')
            extra['gtrace'].append(answer)

        modes = [idle, gtrace, lambda: traced('floor'), lambda: traced('torch')]
        rng.shuffle(modes)
        plain_block()
        for mode in modes:
            mode()
            plain_block()
        steps['plain again'] = steps['plain'][len(steps['plain']) // 2:]
        found.append(steps)
        json.dump({'round': number, **steps}, log)
        log.write('\n')
    return found, extra


def after_steps(gtrace_run, plain, count):
    """The three steps after each of count windows, beside as many plain ones."""
    worker = Worker('gtrace', gtrace_run(wait=4, active=3, name='after'))
    traced, untraced = [], []
    for number in range(count):
        block = worker.ask('block', 4)['ms']
        if number:
            traced += block[:3]
        worker.ask('block', 4)
        untraced += plain.ask('block', 8)['ms'][:3]
        plain.ask('block', 1)
    worker.close()
    return traced, untraced


def events_of(path):
    with gzip.open(path) as stream:
        trace = json.load(stream)
    return len(trace['traceEvents']), trace['gtrace']


def launches(gtrace, binary, floor, outdir, runs=9):
    """Host ns of a launch of an empty kernel: for each run the 10th percentile of its batches of 1000."""
    def run(name, *options):
        return [gtrace, 'run', '-q', '-o', outdir, '-n', name, '--force', *options, '--', binary]

    modes = {'plain': ([binary], {}),
             'idle': (run('idle', '--step-source', 'api'), {}),
             'floor': ([binary], {'CUDA_INJECTION64_PATH': floor}),
             'active': (run('launch', '--step-source', 'none'), {})}
    found = {name: [] for name in modes}
    for _ in range(runs):
        for name, (command, env) in modes.items():
            out = subprocess.run([*command, '120000'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                 check=True, env={**os.environ, **env})
            found[name].append(float(out.stdout.split()[1]))
    return found


def host_memory(pid):
    with open('/proc/%d/status' % pid) as status:
        return {line.split(':')[0]: int(line.split()[1]) / 1024 for line in status if line.startswith('Vm')}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('gtrace')
    parser.add_argument('floor')
    parser.add_argument('launches')
    parser.add_argument('outdir')
    parser.add_argument('--rounds', type=int, default=16)
    parser.add_argument('--windows', type=int, default=100)
    args = parser.parse_args()
    os.makedirs(args.outdir, exist_ok=True)

    def gtrace_run(wait, active, name):
        return [args.gtrace, 'run', '-q', '-o', args.outdir, '-n', name, '--force', '--step-source', 'api',
                '--skip-first', '0', '--wait', str(wait), '--warmup', '1', '--active', str(active),
                '--repeat', '0', '--']

    start = {
        'plain': lambda: Worker('plain'),
        'idle': lambda: Worker('gtrace', gtrace_run(10 ** 9, 1, 'never')),
        'floor': lambda: Worker('floor', env={'BENCH_FLOOR': os.path.abspath(args.floor)}),
        'gtrace': lambda: Worker('gtrace', gtrace_run(STEPS, STEPS, 'window')),
        'torch': lambda: Worker('torch'),
    }
    workers, before, device = {}, {}, {}
    for name, begin in start.items():
        workers[name] = begin()
        before[name] = workers[name].ask('memory')
        # What this process took of the device: the others have what they need.
        device[name] = before[name]['device_used'] - max([m['device_used'] for m in before.values()
                                                          if m is not before[name]], default=0)
    with open(os.path.join(args.outdir, 'rounds.jsonl'), 'w') as log:
        found, extra = rounds(workers, args.rounds, log)
    after = {name: worker.ask('memory') for name, worker in workers.items()}

    print('step time / plain, %d rounds (95 %% interval): 10th percentile, 25th percentile' % args.rounds)
    for mode in ('plain again', 'idle', 'floor', 'gtrace', 'torch', 'floor after', 'gtrace after', 'torch after'):
        print('  %-13s' % mode, *('%.3f [%.3f, %.3f] ' % ratio(found, mode, 'plain', share) for share in (.1, .25)))
    print('  %-13s' % 'gtrace/floor', *('%.3f [%.3f, %.3f] ' % ratio(found, 'gtrace', 'floor', share)
                                        for share in (.1, .25)))
    print('plain step: p10 %.2f p25 %.2f p50 %.2f ms' % tuple(
        percentile([ms for steps in found for ms in steps['plain']], share) for share in (.1, .25, .5)))

    collector = host_memory(workers['gtrace'].proc.pid)
    workers['gtrace'].close()
    files = sorted(glob.glob(os.path.join(args.outdir, 'window-rank0-cycle*.trace.json.gz')),
                   key=lambda path: int(path.split('cycle')[1].split('.')[0]))
    delays, sizes, counts, whole = [], [], [], 0
    for answer, path in zip(extra['gtrace'], files):
        delays.append((os.stat(path).st_mtime_ns - answer['end_ns']) / 1e6)
        count, health = events_of(path)
        sizes.append(os.path.getsize(path))
        counts.append(count)
        whole += bool(health['complete'])
    print('windows: %d files, %d complete' % (len(files), whole))
    if files:
        print('window end to complete file: median %.1f ms, max %.1f ms' % (statistics.median(delays), max(delays)))
        torch_bytes = statistics.median(a['bytes'] for a in extra['torch'])
        print('bytes: gtrace %d (%.2f an event), torch.profiler CUDA-only %d, ratio %.2f' % (
            statistics.median(sizes), sum(sizes) / sum(counts), torch_bytes, statistics.median(sizes) / torch_bytes))
    print('stall at the end of a window: floor %.1f ms, torch.profiler %.1f ms (with export)' % tuple(
        statistics.median(a['stall_ms'] for a in extra[name]) for name in ('floor', 'torch')))
    for name in workers:
        print('memory %-7s device %+.1f MiB of its own, host %.1f MiB at start, %.1f MiB at the end' % (
            name, device[name] / 2 ** 20, before[name]['VmRSS'] / 2 ** 20, after[name]['VmRSS'] / 2 ** 20))
    print('memory of all on the device, since the start: %+.1f MiB' % (
        (after['torch']['device_used'] - before['torch']['device_used']) / 2 ** 20))
    print('memory of gtrace itself: %.1f MiB at most' % collector['VmHWM'])
    workers['torch'].close()
    workers['floor'].close()
    workers['idle'].close()
    traced, untraced = after_steps(gtrace_run, workers['plain'], args.windows)
    for name, values in (('plain', untraced), ('after a window', traced)):
        print('three steps %-15s p50 %.2f p90 %.2f p99 %.2f max %.2f ms' % (
            name, *(percentile(values, p) for p in (.5, .9, .99, 1))))
    workers['plain'].close()
    taken = launches(args.gtrace, args.launches, os.path.abspath(args.floor), args.outdir)
    middle = {name: statistics.median(values) for name, values in taken.items()}
    print('ns a launch: plain %.0f; over it: %s' % (middle['plain'], ', '.join(
        '%s %+.0f [%+.0f, %+.0f]' % (name, *interval([a - b for a, b in zip(taken[name], taken['plain'])]))
        for name in ('idle', 'floor', 'active'))))
    print('ns a launch, active over floor: %+.0f [%+.0f, %+.0f]' % interval(
        [a - b for a, b in zip(taken['active'], taken['floor'])]))


if __name__ == '__main__':
    main()
