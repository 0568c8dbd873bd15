"""What the end-to-end tests share: run gtrace on the simulated GPU, read its traces, and hold them
against the truth that the sample programs write down.
"""

import collections
import contextlib
import glob
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TIMEOUT_S = 60

# What would make a test depend on who runs it.
FOREIGN = re.compile(r'^(GTRACE_|KINETO_|NSYS_|QUADD_|CUDA_|NVTX_|RANK$|WORLD_SIZE$|OMPI_|PMIX?_|SLURM_|SIMGPU_|PYTHONPATH$)')

COPIES = {'HtoD': 'Memcpy HtoD', 'DtoH': 'Memcpy DtoH', 'DtoD': 'Memcpy DtoD', 'PtoP': 'Memcpy PtoP',
          'Memset': 'Memset'}


class Failure(AssertionError):
    """What a test found wrong."""


class Skip(Exception):
    """Why a test cannot run here."""


def check(condition, *message):
    if not condition:
        raise Failure(' '.join(str(part) for part in message))


def check_equal(got, expected, what):
    check(got == expected, f'{what}: got {got!r}, expected {expected!r}')


def each(**variants):
    """Make several tests of one, each with arguments of its own."""

    def decorate(function):
        function.variants = [(name.replace('_', ' '), lambda case, args=args: function(case, *args))
                             for name, args in variants.items()]
        return function

    return decorate


def corpus():
    return os.environ.get('GTRACE_CORPUS') or os.path.join(os.path.dirname(ROOT), 'shared')


class Result:
    """A finished gtrace."""

    def __init__(self, status, stdout, stderr, directory):
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        self.directory = directory

    def __repr__(self):
        return f'status {self.status}, stdout {self.stdout[-500:]!r}, stderr {self.stderr[-1500:]!r}'

    def expect(self, status=0, stderr=None):
        check(self.status == status, 'expected status', status, 'but:', self)
        if stderr:
            check(re.search(stderr, self.stderr), 'no', repr(stderr), 'on stderr:', self)
        return self

    def names(self):
        return sorted(os.path.basename(p) for p in glob.glob(f'{self.directory}/*.trace.json.gz'))

    def trace(self, name=None):
        names = self.names()
        if name is None:
            check(len(names) == 1, 'expected one trace, got', names, self)
            name = names[0]
        check(name in names, 'no', name, 'but', names, self)
        return Trace(os.path.join(self.directory, name))


class Trace:
    def __init__(self, path):
        self.path = path
        with gzip.open(path) as file:
            self.json = json.load(file)
        self.events = self.json['traceEvents']
        self.health = self.json['gtrace']

    def of(self, *cats):
        return [e for e in self.events if e['ph'] == 'X' and e['cat'] in cats]

    def steps(self):
        """[(number, first ns, last ns)], in order."""
        return sorted((int(e['name'].partition('#')[2]), e['ts'], e['ts'] + e['dur'])
                      for e in self.of('user_annotation') if e['name'].startswith('ProfilerStep#'))

    def step_numbers(self):
        return [number for number, _, _ in self.steps()]

    def calls(self):
        return self.of('cuda_runtime', 'cuda_driver')

    def gpu(self):
        return self.of('kernel', 'gpu_memcpy', 'gpu_memset')

    def launches(self):
        """correlation: the call."""
        return {e['args']['correlation']: e for e in self.calls()}

    def step_of(self, call):
        for number, first, last in self.steps():
            if first <= call['ts'] <= last:
                return number
        return None

    def count(self, cat, by='name'):
        return collections.Counter(e[by] for e in self.of(cat))

    def expect_complete(self):
        check(self.health['complete'], 'not complete:', self.health)
        check(not any(self.health['dropped'].values()), 'dropped:', self.health)
        for key in 'bad_records', 'launches_without_gpu', 'gpu_without_launch':
            check_equal(self.health[key], 0, key)
        return self

    def expect_incomplete(self):
        check(not self.health['complete'], 'complete, but should not be:', self.health)
        check(self.health.get('reason'), 'no reason given:', self.health)
        return self

    def expect_checked(self):
        """tracecheck.py has nothing to say but warnings."""
        tool = os.path.join(corpus(), 'tools', 'tracecheck.py')
        if not os.path.exists(tool):
            Trace.unchecked += 1
            return self
        done = subprocess.run([sys.executable, tool, self.path], capture_output=True, text=True)
        check(done.returncode == 0, done.stdout[-2000:], done.stderr[-500:])
        return self

    unchecked = 0


def expected(truth, steps):
    """The sum of these steps of the truth, in the words of a trace."""
    total = {'kernels': collections.Counter(), 'ranges': collections.Counter(),
             'calls': collections.Counter(), 'copies': {kind: [0, 0] for kind in COPIES},
             'captured': 0, 'silent': 0}
    for step in truth['steps']:
        if step['step'] not in steps:
            continue
        for name, count in step['kernels'].items():
            total['kernels'][truth['names'].get(name, name)] += count
        total['ranges'].update(step['ranges'])
        for domain in 'runtime', 'driver':
            for tid, name, count in step[f'{domain}_calls']:
                total['calls'][f'cuda_{domain}', tid, name] += count
        for kind in COPIES:
            total['copies'][kind] = [a + b for a, b in zip(total['copies'][kind], step[kind])]
        total['captured'] += step['captured']
        total['silent'] += step['silent']
    return total


def seen(trace):
    """The same of a trace."""
    calls = collections.Counter((e['cat'], e['tid'], e['name']) for e in trace.calls())
    copies = {kind: [0, 0] for kind in COPIES}
    for event in trace.of('gpu_memcpy', 'gpu_memset'):
        kind = next(k for k, prefix in COPIES.items() if event['name'].startswith(prefix))
        copies[kind][0] += 1
        copies[kind][1] += event['args']['bytes']
    ranges = collections.Counter(e['name'] for e in trace.of('user_annotation')
                                 if not e['name'].startswith('ProfilerStep#'))
    return {'kernels': trace.count('kernel'), 'ranges': ranges, 'calls': calls, 'copies': copies}


def compare(trace, truth, steps, graphs=True):
    """The trace holds exactly these steps and all that the program did in them. graphs: CUDA graphs
    appear as their nodes."""
    steps = list(steps)
    check_equal(trace.step_numbers(), steps, 'steps')
    want, got = expected(truth, steps), seen(trace)
    if graphs:
        check_equal(dict(got['kernels']), dict(want['kernels']), 'kernels')
        check_equal(got['copies'], want['copies'], 'copies and sets')
    check_equal(dict(got['ranges']), dict(want['ranges']), 'ranges')
    counted = {key: n for key, n in got['calls'].items()
               if re.match(r'cu(da)?(Launch|Memcpy|Memset|GraphLaunch)', key[2])}
    silent = want['silent']
    extra = sum(counted.values()) - sum(want['calls'].values())
    check_equal(extra, silent, 'calls without a GPU record')
    for key, n in want['calls'].items():
        check(counted.get(key, 0) >= n, 'calls of', key, 'got', counted.get(key, 0), 'expected', n)
    check_equal(trace.health['captured_launches'], want['captured'], 'captured_launches')
    check_links(trace)
    if graphs:
        check_steps_of_kernels(trace, truth)
    return trace


def trace_and_compare(case, options, command, steps, **environment):
    """Its trace is sound and complete, and holds exactly these steps."""
    trace = case.gtrace(options, command, **environment).trace()
    trace.expect_checked().expect_complete()
    return compare(trace, case.truth(), steps)


def check_links(trace):
    """Every piece of GPU work has its launch, before it, and the flow between them."""
    launches = trace.launches()
    starts = {e['id'] for e in trace.events if e['ph'] == 's' and e['cat'] == 'ac2g'}
    ends = collections.Counter(e['id'] for e in trace.events if e['ph'] == 'f' and e['cat'] == 'ac2g')
    for event in trace.gpu():
        correlation = event['args']['correlation']
        check(correlation in launches, 'no launch of', event)
        check(correlation in starts and ends[correlation], 'no flow to', event)
        check(launches[correlation]['ts'] <= event['ts'], 'before its launch:', event)


def check_steps_of_kernels(trace, truth):
    """Kernels belong to the step of their launch, one by one."""
    launches = trace.launches()
    by_step = collections.defaultdict(collections.Counter)
    for event in trace.of('kernel'):
        launch = launches[event['args']['correlation']]
        by_step[trace.step_of(launch)][event['name']] += 1
    for number in trace.step_numbers():
        check_equal(dict(by_step[number]), dict(expected(truth, [number])['kernels']),
                    f'kernels of step {number}')


def tools_at(steps, off, gone):
    if steps is None:
        return []
    return ['--tools-at', f',{",".join(map(str, steps))},', '--tools-off-at', f',{",".join(map(str, off))},',
            '--tools-gone', str(int(gone))]


class Case:
    """One test while it runs: a directory of its own, and the programs."""

    def __init__(self, build, directory):
        self.build = os.path.abspath(build)
        self.directory = directory
        self.simgpu = os.path.join(self.build, 'simgpu')
        self.gtrace_path = os.path.join(self.build, 'gtrace')
        self.truth_path = os.path.join(directory, 'truth.json')
        self.out = os.path.join(directory, 'out')
        os.mkdir(self.out)

    # ---- commands ----

    def train(self, *args, program='train', tools=(2, 3), off=(1,), gone=True):
        """The sample program in C: an argv. tools: steps in which it waits until gtrace listens, by
        default the warm-up and the first active one; its steps are faster than a busy machine. off:
        before these, those in which it waits until gtrace listens no more to what was before, or it
        might go off when it seems to be on. gone: before it ends it waits until gtrace has all of the
        last window, and listens no more. Not in step 0, in which all is on from the start, and not at
        all where gtrace never switches off."""
        return [os.path.join(self.simgpu, program), '--truth', self.truth_path, '--step-us', '5000',
                *tools_at(tools, off, gone), *map(str, args)]

    def train_py(self, *args, tools=(2, 3), off=(1,), gone=True):
        """The one in Python."""
        return [*self.python(), os.path.join(ROOT, 'tests/simgpu/train.py'), '--truth',
                self.truth_path, *tools_at(tools, off, gone), *map(str, args)]

    def python(self):
        """A Python that can load the stand-ins, sanitized or not."""
        runtime = sanitizer_runtime(self.simgpu)
        if runtime:
            return ['env', f'LD_PRELOAD={runtime}', 'ASAN_OPTIONS=detect_leaks=0', sys.executable]
        return [sys.executable]

    def truth(self, path=None):
        with open(path or self.truth_path) as file:
            return json.load(file)

    # ---- running ----

    def environment(self, faults=None, env=None, libraries=None):
        result = {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}
        result['LD_LIBRARY_PATH'] = libraries or self.simgpu
        result['TMPDIR'] = result['GTRACE_RUNTIME_DIR'] = self.directory
        if faults:
            result['SIMGPU_FAULTS'] = faults
        for name, value in (env or {}).items():
            if value is None:
                result.pop(name, None)
            else:
                result[name] = value
        return result

    def argv(self, options, command):
        return [self.gtrace_path, 'run', '-o', self.out, *map(str, options), '--', *command]

    def gtrace(self, options, command, status=0, stdin=subprocess.DEVNULL, **environment):
        """Run to the end. The status must be that one, None: any."""
        done = subprocess.run(self.argv(options, command), stdin=stdin, capture_output=True, text=True,
                              errors='surrogateescape', timeout=TIMEOUT_S, cwd=self.directory,
                              env=self.environment(**environment))
        result = Result(done.returncode, done.stdout, done.stderr, self.out)
        with open(os.path.join(self.directory, 'stderr'), 'a', errors='surrogateescape') as file:
            file.write(done.stderr)  # for --keep
        if status is not None:
            result.expect(status)
        return result

    @contextlib.contextmanager
    def started(self, options, command, pass_fds=(), **environment):
        """A running gtrace, as a Popen, gone at the end of the block."""
        process = subprocess.Popen(self.argv(options, command), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   pass_fds=pass_fds, cwd=self.directory,
                                   env=self.environment(**environment))
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def finish(self, process):
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
        return Result(process.returncode, stdout, stderr, self.out)

    # ---- libraries ----

    def libraries_without(self, library, *symbols):
        """A directory of the stand-ins in which one library lacks symbols: their names are changed
        in its string table, so that no look-up finds them."""
        path = os.path.join(self.directory, 'libs')
        shutil.copytree(self.simgpu, path, symlinks=True, ignore=shutil.ignore_patterns('obj', 'include'))
        with open(os.path.join(path, library), 'r+b') as file:
            data = file.read()
            for symbol in symbols:
                name = b'\0' + symbol.encode() + b'\0'
                check(name in data, library, 'has no', symbol)
                data = data.replace(name, b'\0' + b'x' + symbol.encode()[1:] + b'\0')
            file.seek(0)
            file.write(data)
        return path

    def libraries_less(self, library):
        """A directory of the stand-ins without one of them."""
        path = os.path.join(self.directory, 'libs')
        shutil.copytree(self.simgpu, path, symlinks=True,
                        ignore=shutil.ignore_patterns('obj', 'include', library + '*'))
        return path


def sanitizer_runtime(simgpu):
    out = subprocess.run(['ldd', os.path.join(simgpu, 'libcuda.so.1')], capture_output=True,
                         text=True).stdout
    found = re.search(r'=> (\S*lib[at]san\S*)', out)
    return found[1] if found else None


class Pipe:
    """A pipe that the target writes to (read end here), or reads from (write end here)."""

    def __init__(self):
        self.read_fd, self.write_fd = os.pipe()

    def close_child_end(self, fd):
        os.close(fd)

    def lines(self):
        """What the target tells, line by line, to its end."""
        with open(self.read_fd, closefd=True) as file:
            yield from file


def run_one(build, function, keep=False):
    """(what, text): 'ok', 'skip' or 'fail'."""
    directory = tempfile.mkdtemp(prefix='gtrace-e2e-')
    what, text = 'ok', ''
    try:
        function(Case(build, directory))
    except Skip as skip:
        what, text = 'skip', str(skip)
    except Failure as failure:
        what, text = 'fail', str(failure)
    except subprocess.TimeoutExpired as expired:
        what, text = 'fail', f'no end after {expired.timeout} s: {expired.cmd}; stderr {expired.stderr}'
    except Exception:
        what, text = 'fail', traceback.format_exc(limit=-3)
    if keep and what == 'fail':
        text += f'\n{directory}'
    else:
        shutil.rmtree(directory, ignore_errors=True)
    return what, text
