"""What tracing costs on a real GPU: plain, idle, floor, gtrace and torch.profiler, interleaved.

usage: bench.py GTRACE FLOOR_SO LAUNCHES_BIN OUTDIR [--sets N] [--rounds N] [--windows N]

A set is one worker process a mode; only one of all workers works at any time, a plain block after each block of
another mode, the modes in an order of chance in each round, the sets in turn. A figure is the ratio of a low
percentile of a mode's step times to that of the plain ones, of all rounds together (what is slower is mostly the
machine's noise). Equal processes differ by up to a tenth for as long as they live: so there are several sets, and
the 95 % bootstrap interval is over them. 'plain twin' is another plain process: what a figure can tell at best.
"""
import argparse
import collections
import functools
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
# Options of gtrace run, and of torch.profiler (see bench_worker.py), by mode.
WINDOWS = {'gtrace': ['--activities', 'gpu'], 'ops': ['--no-shapes'], 'shapes': [], 'stack': ['--with-stack']}
# Whose memory is measured, which takes a start one after the other.
MEASURED = ('plain', 'floor', 'gtrace', 'torch')
TORCHS = ('torch', 'torch ops', 'torch shapes', 'torch stack')


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


def ratio(sets, mode, base, share, repeats=2000):
    """The percentile of a mode's steps to that of another one's, and its 95 % bootstrap interval over the sets."""
    def of(chosen):
        def value(name):
            return percentile([ms for one in chosen for ms in one.steps[name]], share)
        return value(mode) / value(base)

    rng = random.Random(1)
    found = sorted(of(rng.choices(sets, k=len(sets))) for _ in range(repeats))
    return of(sets), found[int(repeats * .025)], found[int(repeats * .975)]


def print_ratios(text, sets, mode, base):
    print('  %-28s' % text, *('%.3f [%.3f, %.3f] ' % ratio(sets, mode, base, share) for share in (.1, .25)))


class Set:
    """A worker a mode, the step times of each mode and what the traced blocks answered."""

    def __init__(self, start, measure, export):
        self.export, self.workers, self.before, self.device = export, {}, {}, {}
        self.steps = collections.defaultdict(list)
        self.answers = collections.defaultdict(list)
        for name in sorted(start, key=lambda name: name not in MEASURED):
            self.workers[name] = start[name]()
            if not measure or name not in MEASURED:
                continue    # they start all at once
            self.before[name] = self.workers[name].ask('memory')
            # What this process took of the device: the others have what they need.
            self.device[name] = self.before[name]['device_used'] - max(
                [m['device_used'] for m in self.before.values() if m is not self.before[name]], default=0)

    def block(self, name, key=None, op='block'):
        answer = self.workers[name].ask(op, STEPS)
        self.steps[key or name] += answer['ms'][1:]
        return answer

    def outside(self, name):
        """A block outside of a window: before the first one, or after."""
        self.block(name, name + (' after' if self.answers[name] else ' before'))
        self.block('plain')

    def traced(self, name):
        """Torch takes seconds to export operators: one set shows how many."""
        if not self.answers[name]:
            self.outside(name)
        self.answers[name].append(self.block(name, op='exported' if name == 'torch' or self.export else 'traced'))
        self.block('plain')
        self.outside(name)

    def window(self, name):
        """What precedes a window is what came after the one of the round before."""
        self.outside(name)
        self.workers[name].ask('block', 1)
        self.answers[name].append(self.block(name))

    def round(self, rng):
        modes = [lambda: self.block('idle'), lambda: self.block('plain twin'),
                 *(functools.partial(self.window, name) for name in WINDOWS),
                 *(functools.partial(self.traced, name) for name in ('floor', *TORCHS))]
        rng.shuffle(modes)
        self.block('plain')
        for mode in modes:
            mode()
            self.block('plain')


def after_steps(workers, plains, count):
    """The three steps after each of count windows of each worker, beside as many plain ones."""
    traced, untraced = [], []
    for number in range(count + 1):
        for worker, plain in zip(workers, plains):
            after = worker.ask('block', 4)['ms'][:3]
            traced += after if number else []   # nothing precedes the first
            worker.ask('block', 4)
            untraced += plain.ask('block', 8)['ms'][:3] if number else []
    return traced, untraced


def files_of(sets, mode, outdir):
    """Of all windows of this mode; ends its programs."""
    found = {'delays': [], 'bytes': [], 'events': 0, 'complete': 0, 'ops': 0,
             'memory': host_memory(sets[0].workers[mode].proc.pid)['VmHWM']}
    for number, one in enumerate(sets):
        one.workers[mode].close()
        files = sorted(glob.glob(os.path.join(outdir, '%s%d-rank0-cycle*.trace.json.gz' % (mode, number))),
                       key=lambda path: int(path.split('cycle')[1].split('.')[0]))
        for answer, path in zip(one.answers[mode], files):
            found['delays'].append((os.stat(path).st_mtime_ns - answer['end_ns']) / 1e6)
            with gzip.open(path) as stream:
                trace = json.load(stream)
            found['bytes'].append(os.path.getsize(path))
            found['events'] += len(trace['traceEvents'])
            found['complete'] += bool(trace['gtrace']['complete'])
            found['ops'] = sum(event.get('cat') == 'cpu_op' for event in trace['traceEvents']) / STEPS
    return found


def launches(gtrace, binary, floor, outdir, runs=9):
    """Host ns of a launch of an empty kernel: for each run the 10th percentile of its batches of 1000."""
    def run(name, *options):
        return [gtrace, 'run', '-q', '-o', outdir, '-n', name, '--force', *options, '--', binary]

    modes = {'plain': ([binary], {}),
             'idle': (run('idle', '--step-source', 'api'), {}),
             'floor': ([binary], {'CUDA_INJECTION64_PATH': floor}),
             'active': (run('launch', '--step-source', 'none', '--activities', 'gpu'), {})}
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
    parser.add_argument('--sets', type=int, default=8)
    parser.add_argument('--rounds', type=int, default=2, help='of each set; the first has no gtrace after')
    parser.add_argument('--windows', type=int, default=100)
    parser.add_argument('--quick', action='store_true', help='step times only, of processes that start all at once')
    args = parser.parse_args()
    os.makedirs(args.outdir, exist_ok=True)

    def gtrace_run(wait, active, name, options=WINDOWS['gtrace']):
        return [args.gtrace, 'run', '-q', '-o', args.outdir, '-n', name, '--force', '--step-source', 'api',
                '--skip-first', '0', '--wait', str(wait), '--warmup', '1', '--active', str(active),
                '--repeat', '0', *options, '--']

    def on_demand():
        return Worker('gtrace', [args.gtrace, 'run', '-q', '-o', args.outdir, '-n', 'demand', '--force', '--step-source',
                                 'api', '--on-demand', *WINDOWS['gtrace'], '--'])

    def window_of(number, mode):
        return lambda: Worker('gtrace', gtrace_run(STEPS, STEPS, '%s%d' % (mode, number), WINDOWS[mode]))

    def start(number):
        return Set({
            'plain': lambda: Worker('plain'),
            'plain twin': lambda: Worker('plain'),
            'idle': lambda: Worker('gtrace', gtrace_run(10 ** 9, 1, 'never')),
            'on demand': on_demand,
            'floor': lambda: Worker('floor', env={'BENCH_FLOOR': os.path.abspath(args.floor)}),
            **{mode: window_of(number, mode) for mode in WINDOWS},
            **{mode: functools.partial(Worker, mode) for mode in TORCHS},
        }, measure=not number and not args.quick, export=not number and not args.quick)

    sets, rng = [start(number) for number in range(args.sets)], random.Random(2)
    for one in sets:
        for worker in one.workers.values():
            worker.ask('memory')    # it has started
    for _ in range(args.rounds):
        for one in sets:
            one.round(rng)
    with open(os.path.join(args.outdir, 'steps.json'), 'w') as log:
        json.dump([one.steps for one in sets], log)
    first = sets[0]
    after = {name: worker.ask('memory') for name, worker in first.workers.items()}

    print('step time / plain, %d rounds of each of %d sets (95 %% interval): 10th percentile, 25th percentile' % (
        args.rounds, args.sets))
    traced = ('floor', *WINDOWS, *TORCHS)
    for mode in ('plain twin', 'idle', 'on demand', *traced):
        print_ratios(mode, sets, mode, 'plain')
    print_ratios('gtrace / floor', sets, 'gtrace', 'floor')
    for mode in traced:
        print_ratios(mode + ', after / before', sets, mode + ' after', mode + ' before')
    print('plain step: p10 %.2f p25 %.2f p50 %.2f ms' % tuple(
        percentile([ms for one in sets for ms in one.steps['plain']], share) for share in (.1, .25, .5)))

    base = percentile([ms for one in sets for ms in one.steps['gtrace']], .25)
    torch_bytes = statistics.median(a['bytes'] for one in sets for a in one.answers['torch'])
    for mode in WINDOWS:
        found = files_of(sets, mode, args.outdir)
        over = (percentile([ms for one in sets for ms in one.steps[mode]], .25) - base) * 1e6
        print('%-7s %d of %d files complete, %.1f ms (median) and %.1f ms (max) after the window; %.0f bytes, %.2f an '
              'event, %.2f of torch.profiler with CUDA alone; gtrace itself %.1f MiB%s' % (
                  mode, found['complete'], len(found['bytes']), statistics.median(found['delays']),
                  max(found['delays']), statistics.median(found['bytes']), sum(found['bytes']) / found['events'],
                  statistics.median(found['bytes']) / torch_bytes, found['memory'],
                  '; %.0f ns an operator (%d a step)' % (over / found['ops'], found['ops']) if found['ops'] else ''))
    for name in ('floor', *TORCHS):
        print('stall at the end of a window: %-12s %.1f ms%s' % (
            name, statistics.median(a['stall_ms'] for a in first.answers[name]), ' with export' * (name in TORCHS)))
    for name, before in first.before.items():
        print('memory %-10s device %+.1f MiB of its own, host %.1f MiB at start, %.1f MiB at the end' % (
            name, first.device[name] / 2 ** 20, before['VmRSS'] / 2 ** 20, after[name]['VmRSS'] / 2 ** 20))
    if args.quick:
        for one in sets:
            for worker in one.workers.values():
                worker.close()
        return
    plains = [one.workers.pop('plain') for one in sets]
    for one in sets:
        for worker in one.workers.values():
            worker.close()
    workers = [Worker('gtrace', gtrace_run(wait=4, active=3, name='after%d' % number)) for number in range(args.sets)]
    traced, untraced = after_steps(workers, plains, -(-args.windows // args.sets))
    for name, values in (('plain', untraced), ('after a window', traced)):
        print('three steps %-15s p50 %.2f p90 %.2f p99 %.2f max %.2f ms' % (
            name, *(percentile(values, p) for p in (.5, .9, .99, 1))))
    for worker in workers + plains:
        worker.close()
    taken = launches(args.gtrace, args.launches, os.path.abspath(args.floor), args.outdir)
    middle = {name: statistics.median(values) for name, values in taken.items()}
    print('ns a launch: plain %.0f; over it: %s' % (middle['plain'], ', '.join(
        '%s %+.0f [%+.0f, %+.0f]' % (name, *interval([a - b for a, b in zip(taken[name], taken['plain'])]))
        for name in ('idle', 'floor', 'active'))))
    print('ns a launch, active over floor: %+.0f [%+.0f, %+.0f]' % interval(
        [a - b for a, b in zip(taken['active'], taken['floor'])]))


if __name__ == '__main__':
    main()
