"""What tracing costs on a real GPU: plain, idle, floors, gtrace and torch.profiler, interleaved.

usage: bench.py GTRACE FLOOR_SO LAUNCHES_BIN INSTRUCTIONS_BIN OUTDIR [--sets N] [--rounds N] [--windows N] [--parts PART[,PART]...]

Equal processes differ by up to a tenth for as long as they live. So each process is held against itself: blocks of
steps while it is traced, or after, against blocks before its first window. Not so the idle library: CUDA loads it
before there is a context, and what it then prepares is dearer once there is one, so whole processes are compared.
And one block differs from the next by as much, with whatever else the host does: so the blocks are short and many,
the modes come in an order of chance in each round, and only one process works at any time. What the machine does
meanwhile is taken out by the blocks of a plain process among them: a figure is (p / plain) / (p before / plain
before), p a low percentile of step times, as what is slower is mostly noise. A set is one process a mode, all on the
same processors. The 95 % bootstrap interval is over the rounds of all sets. 'plain twin' is a process that nothing
happens to: what a figure can tell at best. The floors are what nobody can go below: CUPTI's records of GPU work thrown
away ('floor'), and beside them an observer of torch's operators that does nothing ('floor ops'; 'floor shapes' has
torch hand it their inputs). PART: idle, steps, windows (short ones, each in the middle of a block and against other
steps of its process), launches, instructions (of a launch, counted: processes differ by more than an idle library may
cost, counts do not).
"""
import argparse
import collections
import functools
import glob
import gzip
import json
import math
import os
import random
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 6       # of a block; the first is dropped
PLAIN_EVERY = 4     # blocks
# A block with a window in it: the steps that are slow since another process worked, its warm-up, the first one after.
LONG, COLD, WARMUP, AFTER = 16, 2, 5, 9
TORCH_EVERY = 4     # rounds: it takes seconds to begin and to end
SET_CPUS = 4
# Options of gtrace run, and of torch.profiler (see bench_worker.py), by mode.
WINDOWS = {'gtrace': ['--activities', 'gpu'], 'ops': ['--no-shapes'], 'shapes': [], 'stack': ['--with-stack']}
FLOORS = ('floor', 'floor ops', 'floor shapes')     # see bench_worker.py
EACH_ROUND = ('plain twin', *FLOORS, *WINDOWS)
# Whose memory is measured, which takes a start one after the other.
MEASURED = ('plain', 'floor', 'gtrace', 'torch')
TORCHS = ('torch', 'torch ops', 'torch shapes', 'torch stack')
# What keeps gtrace without a window.
IDLE = {'idle': ['--skip-first', '0', '--wait', '1000000000'], 'on demand': ['--on-demand']}


class Worker:
    def __init__(self, kind, cpus, prefix=(), env=None):
        self.cpus = cpus
        self.proc = subprocess.Popen(
            [*prefix, sys.executable, os.path.join(HERE, 'bench_worker.py'), kind],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})

    def ask(self, op, steps=0, **more):
        print(json.dumps({'op': op, 'steps': steps, **more}), file=self.proc.stdin, flush=True)
        line = self.proc.stdout.readline()
        if not line:
            raise SystemExit('a worker died with status %s' % self.proc.wait())
        return json.loads(line)

    def close(self):
        self.proc.stdin.close()
        return self.proc.wait()


def difference(values, others, repeats=4000):
    """Of their means, and its 95 % bootstrap interval."""
    rng = random.Random(1)

    def mean(of):
        return statistics.fmean(rng.choices(of, k=len(of)))
    drawn = sorted(mean(values) - mean(others) for _ in range(repeats))
    return statistics.fmean(values) - statistics.fmean(others), drawn[int(repeats * .025)], drawn[int(repeats * .975)]


def percentile(values, share):
    if not values:      # none was drawn
        return math.nan
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def level(rounds, mode, when, share):
    """Steps of a mode to those of the plain processes at that time."""
    def value(name):
        return percentile([ms for one in rounds[when] for ms in one.get(name, ())], share)
    return value(mode) / value('plain')


def ratio(sets, of, repeats=1000):
    """of(rounds), and its 95 % bootstrap interval over the rounds of all sets."""
    def rounds(choose):
        found = collections.defaultdict(list)
        for one in sets:
            for when, blocks in one.rounds.items():
                found[when] += choose(blocks)
        return of(found)

    rng = random.Random(1)
    values = [rounds(lambda blocks: rng.choices(blocks, k=len(blocks))) for _ in range(repeats)]
    values = sorted(value for value in values if not math.isnan(value))
    return rounds(lambda blocks: blocks), percentile(values, .025), percentile(values, .975)


def print_ratios(text, sets, of):
    print('  %-28s' % text, *('%.3f [%.3f, %.3f] ' % ratio(sets, functools.partial(of, share)) for share in (.1, .25)),
          flush=True)


def change(mode, when):
    """What a mode's own steps have become."""
    return lambda share, rounds: level(rounds, mode, when, share) / level(rounds, mode, 'before', share)


def over(one, other):
    return lambda *what: one(*what) / other(*what)


class Set:
    """A worker a mode; the step times by time (before, active, after), round and mode; and what traced blocks answered."""

    def __init__(self, start, cpus, measure=False, export=False):
        self.export, self.workers, self.before, self.device = export, {}, {}, {}
        self.rounds, self.blocks = collections.defaultdict(list), 0
        self.answers = collections.defaultdict(list)
        for name in sorted(start, key=lambda name: name not in MEASURED):
            self.workers[name] = start[name](cpus)
            if not measure or name not in MEASURED:
                continue    # they start all at once
            self.before[name] = self.workers[name].ask('memory')
            # What this process took of the device: the others have what they need.
            self.device[name] = self.before[name]['device_used'] - max(
                [m['device_used'] for m in self.before.values() if m is not self.before[name]], default=0)

    def await_start(self):
        """Of the program, not of gtrace, all threads are on these processors from now on."""
        for worker in self.workers.values():
            worker.ask('pin', cpus=worker.cpus)

    def block(self, name, when, op='block'):
        """A block of steps, and now and then a plain one."""
        answer = self.workers[name].ask(op, STEPS)
        blocks = self.rounds[when][-1]
        blocks[name] += answer['ms'][1:]
        self.blocks += 1
        if self.blocks % PLAIN_EVERY == 0 or not blocks['plain']:
            blocks['plain'] += self.workers['plain'].ask('block', STEPS)['ms'][1:]
        return answer

    def begin_round(self, *times):
        for when in times:
            self.rounds[when].append(collections.defaultdict(list))

    def untraced(self, names, rng):
        self.begin_round('before')
        for name in rng.sample(names, len(names)):
            self.block(name, 'before')

    def traced(self, name):
        """A window: gtrace's begins with one step of warm-up, after a block beside it."""
        op = 'block'
        if name in WINDOWS:
            self.workers[name].ask('block', 1)
        elif name != 'plain twin':  # torch takes seconds to export operators: one set shows how many
            op = 'exported' if name == 'torch' or self.export else 'traced'
        self.answers[name].append(self.block(name, 'active', op))
        self.block(name, 'after')

    def round(self, names, rng):
        self.begin_round('active', 'after')
        for name in rng.sample(names, len(names)):
            self.traced(name)

    def close(self):
        for worker in self.workers.values():
            worker.close()


def long_block(name, worker):
    """A window in the middle of other steps, or the same without one.

    What ends the floor's window is counted in the step after it, where gtrace, which is never called, ends its own.
    """
    if name != 'floor':
        return worker.ask('block', LONG)['ms']
    before, traced = worker.ask('block', WARMUP + 1)['ms'], worker.ask('traced', AFTER - WARMUP - 1)
    first, *more = traced['after_ms']
    return before + traced['ms'] + [traced['stall_ms'] + first] + more + worker.ask('block', LONG - AFTER - 3)['ms']


def short_windows(sets, count):
    """Blocks with a window in each by mode, in an order of chance; of plain processes without one."""
    blocks, rng = collections.defaultdict(list), random.Random(1)
    for _ in range(count):
        for one in sets:
            for name in rng.sample(list(one), len(one)):
                blocks[name].append(long_block(name, one[name]))
    return blocks


def of_steps(blocks, first, end, share):
    """A percentile of these steps, and of those of the same processes that are far from a window."""
    others = [ms for block in blocks for ms in block[COLD:WARMUP] + block[AFTER + 3:]]
    return percentile([ms for block in blocks for ms in block[first:end]], share), percentile(others, share)


def slowdown(first, end, share=.25):
    def of(blocks):
        steps, others = of_steps(blocks, first, end, share)
        return steps / others
    return of


def late(blocks):
    steps, others = of_steps(blocks, AFTER, AFTER + 3, .99)
    return steps - others


def with_interval(of, *modes, repeats=1000):
    """of(the blocks of each mode), and its 95 % bootstrap interval over the blocks."""
    rng = random.Random(1)
    drawn = sorted(of(*(rng.choices(blocks, k=len(blocks)) for blocks in modes)) for _ in range(repeats))
    return of(*modes), drawn[int(repeats * .025)], drawn[int(repeats * .975)]


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


def launching(programs, command):
    """Commands that launch an empty kernel, by mode, and print a figure before, while and after they are traced."""
    return {'plain': command,
            'floor': [*command, os.path.abspath(programs.args.floor)],
            'gtrace': [*programs.gtrace_run('launch', ['--wait', '0', '--active', '1', *WINDOWS['gtrace']]), *command],
            **{name: [*programs.gtrace_run('never', options), *command] for name, options in IDLE.items()}}


def figures_of(command):
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    return [float(word) for word in out.split()[1:]]


def launches(programs, runs):
    """Host ns of a launch, of each run before, while and after it is traced."""
    modes = launching(programs, [programs.args.launches, '40000'])
    found = {name: [] for name in modes}
    for number in range(runs):
        order = [*modes, 'plain', *IDLE]    # what is expected to be the least needs the most runs
        for name in random.Random(number).sample(order, len(order)):
            found[name].append(figures_of(modes[name]))
        with open(os.path.join(programs.args.outdir, 'launches.json'), 'w') as log:
            json.dump(found, log)
    return found


def host_memory(pid):
    with open('/proc/%d/status' % pid) as status:
        return {line.split(':')[0]: int(line.split()[1]) / 1024 for line in status if line.startswith('Vm')}


class Programs:
    """Starts the processes, each set on processors of its own."""

    def __init__(self, args):
        self.args, self.processors = args, sorted(os.sched_getaffinity(0))

    def cpus_of(self, number):
        return self.processors[number % self.args.sets::self.args.sets][:SET_CPUS]

    def gtrace_run(self, name, options):
        return [self.args.gtrace, 'run', '-q', '-o', self.args.outdir, '-n', name, '--force', '--step-source', 'api',
                *options, '--']

    @staticmethod
    def schedule(skip, wait, active):
        return ['--skip-first', str(skip), '--wait', str(wait), '--warmup', '1', '--active', str(active), '--repeat',
                '0', '--skip-first-wait']

    @staticmethod
    def plain(cpus):
        return Worker('plain', cpus)

    def floor(self, mode, cpus):
        return Worker(mode, cpus, env={'BENCH_FLOOR': os.path.abspath(self.args.floor)})

    def with_windows(self, number, mode):
        prefix = self.gtrace_run('%s%d' % (mode, number), [
            *self.schedule(self.args.rounds * STEPS, STEPS, STEPS), *WINDOWS[mode]])
        return lambda cpus: Worker('gtrace', cpus, prefix)

    def without_window(self, options):
        prefix = self.gtrace_run('never', [*options, *WINDOWS['gtrace']])
        return lambda cpus: Worker('gtrace', cpus, prefix)

    def traced_set(self, number):
        return Set({
            'plain': self.plain,
            'plain twin': self.plain,
            **{mode: functools.partial(self.floor, mode) for mode in FLOORS},
            **{mode: self.with_windows(number, mode) for mode in WINDOWS},
            **{mode: functools.partial(Worker, mode) for mode in TORCHS},
        }, self.cpus_of(number), measure=not number, export=not number)

    def idle_set(self, number):
        return Set({'plain': self.plain, 'plain twin': self.plain,
                    **{name: self.without_window(options) for name, options in IDLE.items()}}, self.cpus_of(number))

    def short_set(self, number):
        """All three on the same processors."""
        cpus, active = self.cpus_of(number), AFTER - WARMUP - 1
        return {'plain': self.plain(cpus), 'floor': self.floor('floor', cpus),
                'gtrace': Worker('gtrace', cpus, self.gtrace_run('short%d' % number, [
                    *self.schedule(WARMUP, LONG - 1 - active, active), *WINDOWS['gtrace']]))}


def step_times(sets, mode, times=('before', 'active', 'after')):
    return [ms for one in sets for when in times for blocks in one.rounds[when] for ms in blocks[mode]]


def measure_idle(sets, rounds, rng):
    for one in sets:
        for _ in range(rounds):
            one.untraced(['plain twin', *IDLE], rng)
        one.close()


def print_idle(sets):
    """The mean of all processes of a mode, each beside the plain ones of its set."""
    def levels(mode, share):
        return [level(one.rounds, mode, 'before', share) for one in sets]

    def line(text, of):
        print('  %-28s' % text, *('%.3f [%.3f, %.3f] ' % difference(of(share), [0]) for share in (.1, .25)), flush=True)

    print('step time to that of a plain process (95 % interval): 10th percentile, 25th percentile')
    for mode in ('plain twin', *IDLE):
        line(mode, functools.partial(levels, mode))
    for mode in IDLE:
        line(mode + ' / plain twin', lambda share, mode=mode: [
            one / twin for one, twin in zip(levels(mode, share), levels('plain twin', share))])


def measure_windows(sets, rounds, rng, save):
    for when in 'before', 'active':
        for number in range(rounds):
            names = [*EACH_ROUND] + [*TORCHS] * (number % TORCH_EVERY == 0)
            for one in sets:
                one.untraced(names, rng) if when == 'before' else one.round(names, rng)
        save()


def print_step_times(sets):
    print('step time to that of the same process before (95 % interval): 10th percentile, 25th percentile')
    traced = (*EACH_ROUND, *TORCHS)
    for mode in traced:
        print_ratios(mode, sets, change(mode, 'active'))
    for mode, floor in zip(WINDOWS, FLOORS):
        print_ratios('%s / %s' % (mode, floor), sets, over(change(mode, 'active'), change(floor, 'active')))
    for mode in traced:
        print_ratios(mode + ', after', sets, change(mode, 'after'))
    print('plain step: p10 %.2f p25 %.2f p50 %.2f ms' % tuple(percentile(step_times(sets, 'plain'), share)
                                                              for share in (.1, .25, .5)))


def print_files(sets, outdir):
    """Ends the programs of all modes that write files."""
    base = percentile(step_times(sets, 'gtrace', ['active']), .25)
    torch_bytes = statistics.median(a['bytes'] for one in sets for a in one.answers['torch'])
    for mode in WINDOWS:
        found = files_of(sets, mode, outdir)
        over = (percentile(step_times(sets, mode, ['active']), .25) - base) * 1e6
        print('%-7s %d of %d files complete, %.1f ms (median) and %.1f ms (max) after the window; %.0f bytes, %.2f an '
              'event, %.2f of torch.profiler with CUDA alone; gtrace itself %.1f MiB%s' % (
                  mode, found['complete'], len(found['bytes']), statistics.median(found['delays']),
                  max(found['delays']), statistics.median(found['bytes']), sum(found['bytes']) / found['events'],
                  statistics.median(found['bytes']) / torch_bytes, found['memory'],
                  '; %.0f ns an operator (%d a step)' % (over / found['ops'], found['ops']) if found['ops'] else ''))


def print_stalls(one):
    for name in ('floor', *TORCHS):
        print('stall at the end of a window: %-12s %.1f ms%s' % (
            name, statistics.median(a['stall_ms'] for a in one.answers[name]), ' with export' * (name in TORCHS)))


def print_memory(one, at_end):
    for name, before in one.before.items():
        print('memory %-10s device %+.1f MiB of its own, host %.1f MiB at start, %.1f MiB at the end' % (
            name, one.device[name] / 2 ** 20, before['VmRSS'] / 2 ** 20, at_end[name]['VmRSS'] / 2 ** 20))


def print_short_windows(programs, pairs, count):
    """Of count windows in all, each in the middle of a block."""
    sets = [programs.short_set(number) for number in range(pairs)]
    blocks = short_windows(sets, -(-count // pairs))
    with open(os.path.join(programs.args.outdir, 'windows.json'), 'w') as log:
        json.dump(blocks, log)
    active, after = slowdown(WARMUP + 1, AFTER), slowdown(AFTER, AFTER + 3)
    print('%d windows, to other steps of the same process (p25; p99 of three steps after, ms)' % len(blocks['gtrace']))
    for name, found in blocks.items():
        print('  %-8s while %.3f [%.3f, %.3f]  after %.3f [%.3f, %.3f]  p99 %+.2f [%+.2f, %+.2f]' % (
            name, *with_interval(active, found), *with_interval(after, found), *with_interval(late, found)))
        print('           the steps after it, one by one:', *('%.3f [%.3f, %.3f] ' % with_interval(
            slowdown(step, step + 1), found) for step in range(AFTER, AFTER + 3)))
    for name, of in ('while', active), ('after', after):
        print('  gtrace/floor %s %.3f [%.3f, %.3f]' % (name, *with_interval(
            lambda gtrace, floor, of=of: of(gtrace) / of(floor), blocks['gtrace'], blocks['floor'])))
    for one in sets:
        for worker in one.values():
            worker.close()


def print_launches(found):
    whole = {name: [statistics.fmean(parts) for parts in found[name]] for name in ('plain', *IDLE)}
    print('ns a launch: plain %.0f, %s' % (statistics.median(whole['plain']), ', '.join(
        '%s %+.0f [%+.0f, %+.0f]' % (name, *difference(whole[name], whole['plain'])) for name in IDLE)))
    for part, when in (1, 'while traced'), (2, 'after'):
        more = {name: [parts[part] - parts[0] for parts in found[name]] for name in found}
        print('ns a launch, %s: %s; gtrace over floor %+.0f [%+.0f, %+.0f]' % (when, ', '.join(
            '%s %+.0f [%+.0f, %+.0f]' % (name, *difference(values, [0])) for name, values in more.items()),
            *difference(more['gtrace'], more['floor'])))


def print_instructions(programs):
    modes = launching(programs, [programs.args.instructions, '20'])
    found = {name: figures_of(command) for name, command in modes.items()}
    for when, part in (('before', 0), ('while traced', 1), ('after', 2)):
        print('instructions a launch, %s: plain %.0f, %s' % (when, found['plain'][part], ', '.join(
            '%s %+.0f' % (name, found[name][part] - found['plain'][part]) for name in modes if name != 'plain')))


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument('gtrace')
    parser.add_argument('floor')
    parser.add_argument('launches')
    parser.add_argument('instructions')
    parser.add_argument('outdir')
    parser.add_argument('--sets', type=int, default=4)
    parser.add_argument('--rounds', type=int, default=12, help='of each set')
    parser.add_argument('--windows', type=int, default=100)
    parser.add_argument('--launch-runs', type=int, default=30, help='twice of plain and of idle ones')
    parser.add_argument('--parts', default='idle,steps,windows,launches,instructions',
                        help='what is measured (all)')
    return parser.parse_args()


def main():
    args = parse_arguments()
    os.makedirs(args.outdir, exist_ok=True)
    programs, rng = Programs(args), random.Random(2)
    sets = [programs.traced_set(number) for number in range(args.sets * ('steps' in args.parts))]
    idle = [programs.idle_set(number) for number in range(args.sets * 2 * ('idle' in args.parts))]
    for one in sets + idle:
        one.await_start()

    def save():
        with open(os.path.join(args.outdir, 'steps.json'), 'w') as log:
            json.dump([one.rounds for one in sets + idle], log)

    if idle:
        measure_idle(idle, args.rounds // 2, rng)
        save()
        print_idle(idle)
    if sets:
        measure_windows(sets, args.rounds, rng, save)
        at_end = {name: worker.ask('memory') for name, worker in sets[0].workers.items()}
        print_step_times(sets)
        print_files(sets, args.outdir)
        print_stalls(sets[0])
        print_memory(sets[0], at_end)
        for one in sets:
            one.close()
    if 'windows' in args.parts:
        print_short_windows(programs, args.sets, args.windows)
    if 'launches' in args.parts:
        print_launches(launches(programs, args.launch_runs))
    if 'instructions' in args.parts:
        print_instructions(programs)


if __name__ == '__main__':
    main()
