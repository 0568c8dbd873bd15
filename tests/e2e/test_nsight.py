"""gtrace run --nsight: a stand-in for Nsight Systems (tests/simgpu/nsys) records, and what it is told
arrives at the right steps; nothing that is its own is touched."""

import contextlib
import os
import re
import shutil
import subprocess

from harness import TIMEOUT_S, Result, check, check_equal, each, sanitizer_runtime

OWN = {'NSYS_PROFILING_SESSION_ID': '4711', 'NSYS_SESSION_TEMP_DIR': '/tmp',
       'QUADD_INJECTION_PROXY': 'CUDA, NVTX'}
DEFAULTS = {'trace': 'cuda,nvtx', 'sample': 'none', 'cpuctxsw': 'none', 'cuda-graph-trace': 'node',
            'capture-range': 'cudaProfilerApi', 'capture-range-end': 'stop'}


class Nsys:
    """The stand-in, and what it saw."""

    def __init__(self, case):
        self.case = case
        self.folder = os.path.join(case.simgpu, 'nsys')
        self.log_path = os.path.join(case.directory, 'nsys.log')

    def environment(self, on_path=True, **more):
        path = os.environ['PATH']
        asan = os.environ.get('ASAN_OPTIONS')
        return {'FAKE_NSYS_LOG': self.log_path, 'PATH': f'{self.folder}:{path}' if on_path else path,
                'ASAN_OPTIONS': f'{asan}:verify_asan_link_order=0' if asan else None, **more}

    def run(self, options, command, status=0, libraries=None, **env):
        """gtrace run --nsight, which starts nsys."""
        return self.case.gtrace(['--nsight', *options], command, status=status, libraries=libraries,
                                env=self.environment(**env))

    def around(self, options, command, **env):
        """nsys profile gtrace run ..."""
        argv = [os.path.join(self.folder, 'nsys'), 'profile', '-o', 'x',
                *self.case.argv(options, command)]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=TIMEOUT_S, cwd=self.case.directory,
                              env=self.case.environment(env=self.environment(**env)))
        return Result(done.returncode, done.stdout, done.stderr, self.case.out)

    def log(self):
        with contextlib.suppress(FileNotFoundError), open(self.log_path) as file:
            return file.read().splitlines()
        return []

    def options(self):
        """{name: value} of its command line."""
        given = [line.removeprefix('option ').lstrip('-') for line in self.log()
                 if line.startswith('option ')]
        options = dict(word.split('=', 1) for word in given)
        check_equal(len(options), len(given), 'options, each once')
        return options

    def expect_untouched(self):
        """Its variables came to the program, and CUPTI is its own."""
        seen = dict(re.findall(r'^env (\w+)=(.*)$', '\n'.join(self.log()), re.M))
        library = os.path.join(self.folder, 'libToolsInjection64.so')
        proxy = os.path.join(self.folder, 'libToolsInjectionProxy64.so')
        preload = seen.pop('LD_PRELOAD')
        if not sanitizer_runtime(self.case.simgpu):  # of which Python needs its own
            check_equal(preload, proxy, 'LD_PRELOAD')
        check_equal(seen, {**OWN, 'CUDA_INJECTION64_PATH': library, 'NVTX_INJECTION64_PATH': library},
                    'environment')
        check_equal([line for line in self.log() if line.startswith('subscribe')], ['subscribe 0'],
                    'CUPTI')

    def expect_recorded(self, *windows, runtime=True):
        """It was told to record these windows, and in each it saw the launches of these steps, no
        more and no less; the step's range follows the start, and precedes the stop."""
        self.expect_untouched()
        truth = {step['step']: sum(n for _, name, n in step['runtime_calls']
                                   if name == 'cudaLaunchKernel') for step in self.case.truth()['steps']}
        lines = [line for line in self.log()
                 if re.match(r'start|stop|begin|end|runtime', line)]
        told = [line for line in lines if re.match(r'start|stop', line)]
        check_equal(told, [text for window in windows
                           for text in ('start', f'stop {sum(truth[step] for step in window)}')],
                    'starts and stops')
        check_equal(sum(line.startswith('runtime') for line in lines), runtime * len(told),
                    'calls of the CUDA runtime')
        inside = []
        for line in (line for line in lines if not line.startswith('runtime')):
            if line == 'start':
                inside.append([])
                begun = True
            elif line.startswith('stop'):
                begun = False
            elif inside and begun:
                inside[-1].append(re.sub(r'^(begin|end) \d+', r'\1', line))
        check_equal(inside, [[text for step in window
                              for text in (f'begin gtrace:ProfilerStep#{step}', 'end gtrace')]
                             for window in windows], 'ranges of steps')


def nothing_is_written(case):
    check_equal(os.listdir(case.out), [], 'files')


# ---- gtrace starts nsys ----

@each(python=[lambda case: case.train_py(tools=[], off=(), gone=False)],
      c=[lambda case: case.train(tools=None, gone=False)],
      threads=[lambda case: case.train('--threads', 4, tools=None, gone=False)])
def test_nsys_records_the_active_steps(case, command):
    nsys = Nsys(case)
    result = nsys.run(['--active', 2], command(case))
    nsys.expect_recorded(range(3, 5))
    check_equal(nsys.options(), {**DEFAULTS, 'output': f'{case.out}/train'}, 'options')
    check(re.search(r'^gtrace: running \S*/nsys profile --trace=cuda,nvtx .* run -o \S+ --nsight '
                    r'--active 2 -- .*train', result.stderr, re.M), result)
    check('Nsight Systems records from step 3 on, for 2 steps' in result.stderr, result)
    nothing_is_written(case)


@each(two=[2, 'repeat:2'], without_end=[0, 'repeat'])
def test_windows(case, repeat, end):
    nsys = Nsys(case)
    nsys.run(['--skip-first', 0, '--wait', 1, '--active', 2, '--repeat', repeat],
             case.train('--steps', 9, tools=None, gone=False))
    windows = [range(2, 4), range(6, 8)]
    nsys.expect_recorded(*windows)
    check_equal(nsys.options()['capture-range-end'], end, 'end')


def test_windows_back_to_back(case):
    nsys = Nsys(case)
    nsys.run(['--wait', 0, '--warmup', 0, '--active', 2, '--repeat', 2],
             case.train(tools=None, gone=False))
    nsys.expect_recorded(range(1, 3), range(3, 5))


def test_stop_is_left_to_nsys(case):
    nsys = Nsys(case)
    nsys.run(['--then', 'stop', '--repeat', 2], case.train(tools=None, gone=False))
    check_equal(nsys.options()['capture-range-end'], 'repeat-shutdown:2', 'end')


def test_whole_run(case):
    nsys = Nsys(case)
    nsys.run(['--step-source', 'none'], case.train(tools=None, gone=False))
    nsys.expect_untouched()
    check_equal(set(DEFAULTS) - set(nsys.options()), {'capture-range', 'capture-range-end'}, 'not given')
    check(not re.search('^(start|stop|begin)', '\n'.join(nsys.log()), re.M), nsys.log())


def test_options_of_nsys(case):
    nsys = Nsys(case)
    args = "--sample=process-tree -t cuda,nvtx,osrt --env-var='A=1 B'"
    nsys.run(['--nsight-args', args, '--nsight-output', 'there/%p', '--force', '--cuda-graph', 'graph'],
             case.train(tools=None, gone=False))
    given = {**DEFAULTS, 'sample': 'process-tree', 't': 'cuda,nvtx,osrt', 'env-var': 'A=1 B',
             'cuda-graph-trace': 'graph', 'output': 'there/%p', 'force-overwrite': 'true'}
    del given['trace']
    check_equal(nsys.options(), given, 'options')


def test_name_of_the_report(case):
    nsys = Nsys(case)
    for taken in 'train.nsys-rep', 'train-2.1.nsys-rep':
        open(os.path.join(case.out, taken), 'w').close()
    command = case.train(tools=None, gone=False)
    for options, env, name in [([], {}, 'train-3'), (['--name', 'other'], {}, 'other'),
                               (['--force'], {}, 'train'), ([], {'RANK': '1'}, 'train-rank1')]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(nsys.log_path)
        result = nsys.run(options, command, **env)
        check_equal(nsys.options()['output'], f'{case.out}/{name}', 'output')
        check(('records from' in result.stderr) != ('RANK' in env), 'only rank 0 speaks:', result)


def test_quiet(case):
    check_equal(Nsys(case).run(['-q'], case.train(tools=None, gone=False)).stderr, '', 'stderr')


def test_status_is_that_of_the_program(case):
    Nsys(case).run([], case.train('--exit-status', 7, tools=None, gone=False), status=7)


def test_nsys_that_is_not_recognised(case):
    """It does not start itself for ever."""
    folder = os.path.join(case.directory, 'bin')
    os.mkdir(folder)
    path = os.path.join(folder, 'nsys')
    with open(path, 'w') as file:
        file.write('#!/bin/sh\nwhile case $1 in */gtrace) false;; esac; do shift; done\nexec "$@"\n')
    os.chmod(path, 0o755)
    result = case.gtrace(['--nsight'], case.train(tools=None, gone=False),
                         env={'PATH': f'{folder}:{os.environ["PATH"]}'})
    check_equal(result.stderr.count('running'), 1, 'starts')
    check('Nsight Systems records from step 3' in result.stderr, result)


# ---- nsys starts gtrace ----

@each(python=[lambda case: case.train_py(tools=[], off=(), gone=False)],
      c=[lambda case: case.train(tools=None, gone=False)])
def test_under_nsys(case, command):
    nsys = Nsys(case)
    result = nsys.around(['--nsight'], command(case)).expect()
    nsys.expect_recorded(range(3, 6))
    check('running' not in result.stderr, result)
    nothing_is_written(case)


def test_nsys_is_the_command(case):
    nsys = Nsys(case)
    result = nsys.run([], ['nsys', 'profile', '-o', 'x', *case.train(tools=None, gone=False)])
    nsys.expect_recorded(range(3, 6))
    check_equal(nsys.options(), {'o': 'x'}, 'options')
    check('running' not in result.stderr, result)


def test_under_nsys_without_the_option(case):
    nsys = Nsys(case)
    result = nsys.around([], case.train(tools=None, gone=False))
    result.expect(stderr='not tracing: Nsight Systems has set NSYS_PROFILING_SESSION_ID; --nsight')
    nsys.expect_untouched()
    check('start' not in nsys.log(), nsys.log())
    nothing_is_written(case)


def test_force_takes_the_place_of_nsys(case):
    nsys = Nsys(case)
    result = nsys.around(['--force'], case.train()).expect(stderr='--force traces all the same')
    result.trace().expect_complete()
    check('subscribe 0' not in nsys.log(), nsys.log())


def test_gtrace_around_another(case):
    """The inner one has nsys, and nothing of the outer one is left in the program."""
    nsys = Nsys(case)
    inner = [case.gtrace_path, 'run', '--nsight', '--', *case.train(tools=None, gone=False)]
    result = case.gtrace([], inner, env=nsys.environment())
    nsys.expect_recorded(range(3, 6))
    check('nothing is traced' in result.stderr, result)


# ---- what goes wrong ----

def test_no_nsys(case):
    nsys = Nsys(case)
    if shutil.which('nsys'):
        return
    result = nsys.run([], case.train('--exit-status', 3, tools=None, gone=False), status=3, on_path=False)
    check(re.search(r'warning: not tracing: .*no nsys on PATH.*: nsys profile --trace=.*--output=\S*/train '
                    r'\S*/gtrace run .*--nsight -- \S*train ', result.stderr), result)
    check_equal(nsys.log(), [], 'log')
    nothing_is_written(case)


def test_no_nsys_but_the_module(case):
    """A script that imports gtrace runs untraced, too."""
    nsys = Nsys(case)
    if shutil.which('nsys'):
        return
    script = 'import gtrace\nfor _ in range(6):\n    gtrace.step()\nprint("steps made")'
    result = nsys.run([], [*case.python(), '-c', script], on_path=False)
    check('not tracing' in result.stderr and 'steps made' in result.stdout, result)
    nothing_is_written(case)


def test_only_the_driver(case):
    """A runtime that is linked statically cannot be found."""
    nsys = Nsys(case)
    nsys.run([], case.train(tools=None, gone=False),
             libraries=case.libraries_without('libcudart.so.13', 'cudaProfilerStart', 'cudaProfilerStop'))
    nsys.expect_recorded(range(3, 6), runtime=False)


def test_no_function_to_tell_it(case):
    nsys = Nsys(case)
    libraries = case.libraries_without('libcudart.so.13', 'cudaProfilerStart')
    with open(os.path.join(libraries, 'libcuda.so.1'), 'r+b') as file:
        data = file.read().replace(b'\0cuProfilerStart\0', b'\0xuProfilerStart\0')
        file.seek(0)
        file.write(data)
    result = nsys.run([], case.train(tools=None, gone=False), libraries=libraries)
    check('could not be told of step 3: cudaProfilerStart was not found' in result.stderr, result)
    check_equal([line for line in nsys.log() if re.match('start|stop', line)], [], 'calls')


def test_program_without_steps(case):
    result = Nsys(case).run([], case.train('--marks', 'none', '--steps', 2, tools=None, gone=False))
    check('records from' not in result.stderr, result)


def test_program_that_ends_too_early(case):
    result = Nsys(case).run([], case.train('--steps', 2, tools=None, gone=False))
    check('not told to record: the program ended in step 2, the first window begins with step 3'
          in result.stderr, result)


def test_own_profiler_beside_nsys(case):
    """The program's own profiler finds CUPTI taken by nsys (39), as without gtrace."""
    nsys = Nsys(case)
    result = nsys.run([], case.train('--profiler-at', 4, tools=None, gone=False))
    check('profiler: subscribe 39' in result.stdout, result)
    nsys.expect_recorded(range(3, 6))
