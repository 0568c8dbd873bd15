"""What tracing costs on a real GPU: plain, idle, floor, gtrace and torch.profiler, interleaved.

usage: bench.py GTRACE FLOOR_SO LAUNCHES_BIN OUTDIR [--sets N] [--rounds N] [--windows N]

Equal processes differ by up to a tenth for as long as they live. So each process is held against itself: blocks of
steps while it is traced, or after, against blocks before its first window; for the idle library, before it was loaded.
Only one process works at any time. The machine's own changes are taken out by a block of a plain process after each
block: a figure is (p / plain) / (p before / plain then), p a low percentile of step times, as what is slower is mostly
noise. A set is one process a mode; the modes come in an order of chance in each round. The 95 % bootstrap interval is
over the sets. 'plain twin' is a process that nothing happens to: what a figure can tell at best.
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

DOORS = ('CUDA_INJECTION64_PATH', 'NVTX_INJECTION64_PATH', 'PYTHONPATH')
HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 10      # of a block; the first is dropped
OUTSIDE = 2     # blocks before each window
# Options of gtrace run, and of torch.profiler (see bench_worker.py), by mode.
WINDOWS = {'gtrace': ['--activities', 'gpu'], 'ops': ['--no-shapes'], 'shapes': [], 'stack': ['--with-stack']}
# Whose memory is measured, which takes a start one after the other.
MEASURED = ('plain', 'floor', 'gtrace', 'torch')
TORCHS = ('torch', 'torch ops', 'torch shapes', 'torch stack')
# What keeps gtrace without a window.
IDLE = {'idle': ['--skip-first', '0', '--wait', '1000000000'], 'on demand': ['--on-demand']}


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


def level(sets, mode, when, share):
    """Steps of a mode to those of the plain process beside it."""
    def value(one, steps):
        return percentile([ms for chosen in one for ms in getattr(chosen, steps)[mode, when]], share)
    return value(sets, 'steps') / value(sets, 'plains')


def ratio(sets, of, repeats=2000):
    """of(sets), and its 95 % bootstrap interval over the sets."""
    rng = random.Random(1)
    found = sorted(of(rng.choices(sets, k=len(sets))) for _ in range(repeats))
    return of(sets), found[int(repeats * .025)], found[int(repeats * .975)]


def print_ratios(text, sets, of):
    print('  %-28s' % text, *('%.3f [%.3f, %.3f] ' % ratio(sets, functools.partial(of, share)) for share in (.1, .25)),
          flush=True)


def change(mode, when):
    """What a mode's own steps have become."""
    return lambda share, sets: level(sets, mode, when, share) / level(sets, mode, 'before', share)


class Set:
    """A worker a mode, the step times of each mode and what the traced blocks answered."""

    def __init__(self, start, measure=False, export=False):
        self.export, self.workers, self.before, self.device = export, {}, {}, {}
        self.steps, self.plains = collections.defaultdict(list), collections.defaultdict(list)
        self.answers = collections.defaultdict(list)
        for name in sorted(start, key=lambda name: name not in MEASURED):
            self.workers[name] = start[name]()
            if not measure or name not in MEASURED:
                continue    # they start all at once
            self.before[name] = self.workers[name].ask('memory')
            # What this process took of the device: the others have what they need.
            self.device[name] = self.before[name]['device_used'] - max(
                [m['device_used'] for m in self.before.values() if m is not self.before[name]], default=0)

    def await_start(self):
        for worker in self.workers.values():
            worker.ask('memory')

    def block(self, name, when, op='block'):
        answer = self.workers[name].ask(op, STEPS)
        self.steps[name, when] += answer['ms'][1:]
        self.plains[name, when] += self.workers['plain'].ask('block', STEPS)['ms'][1:]
        return answer

    def outside(self, name):
        """Blocks outside of a window: before the first one, or after."""
        for _ in range(OUTSIDE):
            self.block(name, 'after' if self.answers[name] else 'before')

    def traced(self, name):
        """Torch takes seconds to export operators: one set shows how many."""
        self.outside(name)
        op = 'block' if name == 'plain twin' else 'exported' if name == 'torch' or self.export else 'traced'
        self.answers[name].append(self.block(name, 'active', op))

    def window(self, name):
        self.outside(name)
        self.workers[name].ask('block', 1)
        self.answers[name].append(self.block(name, 'active'))

    def round(self, rng):
        modes = [*(functools.partial(self.window, name) for name in WINDOWS),
                 *(functools.partial(self.traced, name) for name in ('plain twin', 'floor', *TORCHS))]
        rng.shuffle(modes)
        for mode in modes:
            mode()

    def loaded(self, blocks=3):
        """The library comes in between the blocks of these processes."""
        for when in 'before', 'active':
            for name in IDLE if when == 'active' else ():
                self.workers[name].ask('load')
            for name in [*IDLE] * blocks:
                self.block(name, when)

    def close(self):
        for worker in self.workers.values():
            worker.close()


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
        # What is expected to be the least needs the most runs.
        for name in ['plain', 'idle'] * 3 + ['floor', 'active']:
            command, env = modes[name]
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

    def gtrace_run(name, options):
        return [args.gtrace, 'run', '-q', '-o', args.outdir, '-n', name, '--force', '--step-source', 'api', *options,
                '--']

    def windows(wait, active):
        return ['--skip-first', '0', '--wait', str(wait), '--warmup', '1', '--active', str(active), '--repeat', '0']

    def window_of(number, mode):
        return lambda: Worker('gtrace', gtrace_run('%s%d' % (mode, number),
                                                   [*windows(OUTSIDE * STEPS, STEPS), *WINDOWS[mode]]))

    def start(number):
        return Set({
            'plain': lambda: Worker('plain'),
            'plain twin': lambda: Worker('plain'),
            'floor': lambda: Worker('floor', env={'BENCH_FLOOR': os.path.abspath(args.floor)}),
            **{mode: window_of(number, mode) for mode in WINDOWS},
            **{mode: functools.partial(Worker, mode) for mode in TORCHS},
        }, measure=not number and not args.quick, export=not number and not args.quick)

    def idle(options):
        hidden = [word for name in DOORS for word in ('-u', name)]
        return lambda: Worker('late', [*gtrace_run('never', [*options, *WINDOWS['gtrace']]), 'env', *hidden])

    sets, rng = [start(number) for number in range(args.sets)], random.Random(2)
    loads = [Set({'plain': lambda: Worker('plain'), **{name: idle(options) for name, options in IDLE.items()}})
             for _ in range(args.sets * 2)]
    for one in sets + loads:
        one.await_start()
    for _ in range(args.rounds):
        for one in sets:
            one.round(rng)
    for one in loads:
        one.loaded()
        one.close()
    with open(os.path.join(args.outdir, 'steps.json'), 'w') as log:
        json.dump([[{' '.join(key): ms for key, ms in times.items()} for times in (one.steps, one.plains)]
                   for one in sets + loads], log)
    def active(mode):
        return percentile([ms for one in sets for ms in one.steps[mode, 'active']], .25)

    first = sets[0]
    after = {name: worker.ask('memory') for name, worker in first.workers.items()}

    print('step time to that of the same process before, %d rounds of each of %d sets (95 %% interval): '
          '10th percentile, 25th percentile' % (args.rounds, args.sets))
    traced = ('plain twin', 'floor', *WINDOWS, *TORCHS)
    for mode in IDLE:
        print_ratios(mode + ', loaded', loads, change(mode, 'active'))
    for mode in traced:
        print_ratios(mode, sets, change(mode, 'active'))
    print_ratios('gtrace / floor', sets, lambda *what: change('gtrace', 'active')(*what) /
                 change('floor', 'active')(*what))
    for mode in traced:
        print_ratios(mode + ', after', sets, change(mode, 'after'))
    print('plain step: p10 %.2f p25 %.2f p50 %.2f ms' % tuple(
        percentile([ms for one in sets for times in one.plains.values() for ms in times], share)
        for share in (.1, .25, .5)))

    base = active('gtrace')
    torch_bytes = statistics.median(a['bytes'] for one in sets for a in one.answers['torch'])
    for mode in WINDOWS:
        found = files_of(sets, mode, args.outdir)
        over = (active(mode) - base) * 1e6
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
            one.close()
        return
    plains = [one.workers.pop('plain') for one in sets]
    for one in sets:
        one.close()
    workers = [Worker('gtrace', gtrace_run('after%d' % number, [*windows(4, 3), *WINDOWS['gtrace']]))
               for number in range(args.sets)]
    traced, untraced = after_steps(workers, plains, -(-args.windows // args.sets))
    for name, values in (('plain', untraced), ('after a window', traced)):
        print('three steps %-15s p50 %.2f p90 %.2f p99 %.2f max %.2f ms' % (
            name, *(percentile(values, p) for p in (.5, .9, .99, 1))))
    for worker in workers + plains:
        worker.close()
    taken = launches(args.gtrace, args.launches, os.path.abspath(args.floor), args.outdir)

    def plain_of(values):
        return taken['plain'][::len(taken['plain']) // len(values)]

    middle = {name: statistics.median(values) for name, values in taken.items()}
    print('ns a launch: plain %.0f; over it: %s' % (middle['plain'], ', '.join(
        '%s %+.0f [%+.0f, %+.0f]' % (name, *interval([a - b for a, b in zip(taken[name], plain_of(taken[name]))]))
        for name in ('idle', 'floor', 'active'))))
    print('ns a launch, active over floor: %+.0f [%+.0f, %+.0f]' % interval(
        [a - b for a, b in zip(taken['active'], taken['floor'])]))


if __name__ == '__main__':
    main()
