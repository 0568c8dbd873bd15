"""gtrace is not there: statuses, signals, streams, descriptors and children of the target are its
own, traced or not.
"""

import os
import signal
import subprocess
import sys

from harness import ROOT, Skip, check, check_equal, compare, each, sanitizer_runtime


# ---- ends ----

@each(zero=[0], one=[1], large=[255])
def test_exit_status(case, status):
    result = case.gtrace([], case.train('--exit-status', status), status=status)
    result.trace().expect_checked().expect_complete()


@each(kill=[signal.SIGKILL], segv=[signal.SIGSEGV], term=[signal.SIGTERM], abort=[signal.SIGABRT])
def test_fatal_signal(case, number):
    """It becomes gtrace's, and the window that was complete is in the file."""
    command = case.train('--die-at', 8, '--die-signal', int(number), gone=False)
    # In a sanitized build, too.
    env = {name: os.environ.get(name, '') + ':handle_segv=0:handle_abort=0'
           for name in ('ASAN_OPTIONS', 'TSAN_OPTIONS')}
    trace = case.gtrace([], command, status=-number, env=env).trace().expect_checked()
    check_equal(trace.step_numbers(), [3, 4, 5], 'steps')


def test_signal_inside_the_window(case):
    """What was recorded until then is in the file, which says that it ends there."""
    command = case.train('--die-at', 5, '--die-signal', 9, gone=False)
    trace = case.gtrace([], command, status=-signal.SIGKILL).trace().expect_checked()
    check(set([3, 4]) <= set(trace.step_numbers()), trace.step_numbers())
    check(len(trace.of('kernel')) > 0, 'no kernels')


def test_exec_inside_the_window(case):
    """Likewise, and what became of the program is known while the other one runs. It may have taken with it what
    the GPU did last, which is said."""
    fifo = os.path.join(case.directory, 'fifo')
    os.mkfifo(fifo)
    script = (f'import os, sys\n'
              f'sys.path.insert(0, {os.path.join(ROOT, "tests/simgpu")!r})\n'
              f'import train\n'
              f'train.Program(train.parse()).run()\n'
              f'os.execvp("cat", ["cat", {fifo!r}])\n')
    command = [*case.python(), '-c', script, '--steps', '6', '--tools-at', ',2,3,']
    with case.started(['--active', 1000, '-n', 'train'], command) as process:
        with open(fifo, 'w'):
            said = next((line for line in process.stderr if 'not complete' in line), '')
        result = case.finish(process)
    check('the program executed another one' in said, said, result)
    trace = result.trace().expect_incomplete()
    check(set([3, 4, 5]) <= set(trace.step_numbers()), trace.step_numbers())
    check('executed another one' in trace.health['reason'], trace.health)


@each(term=[signal.SIGTERM], interrupt=[signal.SIGINT], hangup=[signal.SIGHUP], user=[signal.SIGUSR1])
def test_signal_to_gtrace_reaches_the_target(case, number):
    read_fd, write_fd = os.pipe()
    command = case.train('--steps', 100000, '--tell-fd', write_fd, gone=False)
    with case.started([], command, pass_fds=[write_fd]) as process:
        os.close(write_fd)
        with open(read_fd) as lines:
            for line in lines:
                if line.startswith('begin 8 '):
                    process.send_signal(number)
                    break
            for line in lines:
                pass
        result = case.finish(process)
    check_equal(result.status, -number, 'status')
    trace = result.trace().expect_checked()
    check_equal(trace.step_numbers(), [3, 4, 5], 'steps')


def test_only_gtrace_has_its_name(case):
    """pkill gtrace and pkill -f 'gtrace run' reach no helper of it, by which it would take the signal for one
    to the whole group."""
    read_fd, write_fd = os.pipe()
    command = case.train('--steps', 100000, '--tell-fd', write_fd, gone=False)
    helpers = []
    with case.started([], command, pass_fds=[write_fd]) as process:
        os.close(write_fd)
        with open(read_fd) as lines:
            lines.readline()
            with open(f'/proc/{process.pid}/task/{process.pid}/children') as file:
                children = file.read().split()
            for pid in children:
                with open(f'/proc/{pid}/comm') as comm, open(f'/proc/{pid}/cmdline') as cmdline:
                    name, words = comm.read().strip(), cmdline.read()
                if name != 'train':
                    helpers.append((name, words))
            process.terminate()
            lines.read()
        case.finish(process)
    check_equal(len(helpers), 1, f'helpers: {helpers}')
    check('gtrace' not in ''.join(helpers[0]), helpers)


def test_interrupted_group(case):
    """Ctrl-C goes to the whole group: the target gets one signal, not two."""
    script = ('import signal, sys, time\n'
              'count = 0\n'
              'def handler(*_):\n'
              '    global count\n'
              '    count += 1\n'
              'signal.signal(signal.SIGINT, handler)\n'
              'print("ready", flush=True)\n'
              'sys.stdin.read()\n'
              'print(count, flush=True)\n')
    process = subprocess.Popen(case.argv([], [sys.executable, '-c', script]), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               env=case.environment(), start_new_session=True)
    with process:
        check_equal(process.stdout.readline(), 'ready\n', 'first line')
        os.killpg(process.pid, signal.SIGINT)
        # The target has it when it has it: a second one would have come by the end of the input.
        process.stdin.close()
        check_equal(process.stdout.readline(), '1\n', 'signals')


def test_ignored_signals_stay_ignored(case):
    """nohup and its like: the target inherits what gtrace was given."""
    script = 'import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)'
    command = ['sh', '-c', 'trap "" HUP; exec "$@"', 'sh', *case.argv([], [sys.executable, '-c', script])]
    done = subprocess.run(command, capture_output=True, text=True, env=case.environment(), timeout=60)
    check_equal(done.stdout, 'True\n', 'SIGHUP ignored')


@each(not_executable=['/etc/passwd', 126], not_found=['/nonexistent/program', 127],
      not_in_path=['no-such-program-anywhere', 127])
def test_no_command(case, command, status):
    result = case.gtrace([], [command], status=status)
    check(command in result.stderr, result)
    check_equal(result.names(), [], 'files')


# ---- streams ----

def test_streams_pass_through(case):
    data = bytes(range(256)) * 5000
    script = ('import sys\n'
              'data = sys.stdin.buffer.read()\n'
              'sys.stdout.buffer.write(data[::-1])\n'
              'sys.stderr.buffer.write(b"to stderr")\n')
    done = subprocess.run(case.argv(['-q'], [sys.executable, '-c', script]), input=data,
                          capture_output=True, env=case.environment(), timeout=60)
    check_equal(done.returncode, 0, 'status')
    check(done.stdout == data[::-1], 'stdout is not what the target wrote')
    check(b'to stderr' in done.stderr, done.stderr)


def test_nothing_on_stdout(case):
    result = case.gtrace(['-v'], case.train())
    check_equal(result.stdout, 'trained 10 steps\n', 'stdout')


def test_same_descriptors(case):
    """The target has the descriptors that it was given, and no other."""
    script = 'import os; print(sorted(int(f) for f in os.listdir("/proc/self/fd")))'
    plain = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True).stdout
    traced = case.gtrace([], [sys.executable, '-c', script]).stdout
    check_equal(traced, plain, 'descriptors')


def test_same_environment(case):
    """But for the variables of the injection."""
    script = 'import os; print(sorted(os.environ.items()))'
    plain = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True,
                           env=case.environment()).stdout
    traced = case.gtrace([], [sys.executable, '-c', script]).stdout
    ours = ('GTRACE_', 'CUDA_INJECTION64_PATH', 'NVTX_INJECTION64_PATH', 'PYTHONPATH')
    plain, traced = ([item for item in eval(text) if not item[0].startswith(ours)] for text in (plain, traced))
    check_equal(traced, plain, 'environment')


# ---- what programs do ----

@each(before=[1], in_warm_up=[2], inside=[4], after=[7])
def test_child_that_only_forks(case, step):
    """It uses NVTX and marks steps, and is not seen."""
    result = case.gtrace([], case.train('--fork-at', step))
    trace = result.trace().expect_checked().expect_complete()
    compare(trace, case.truth(), range(3, 6))
    check('in the child' not in str(trace.events), 'a range of the child')


FORKS = '''
import gtrace, os, sys
for step in range(10):
    gtrace.step()
for child in range(3):
    if not os.fork():
        for generation in range(int(sys.argv[2])):
            if os.fork():
                os.wait()
                os._exit(0)
        for step in range(int(sys.argv[1])):
            gtrace.step()
        os._exit(0)
for child in range(3):
    os.wait()
'''


@each(that_step=[5, 0, 1], that_do_not=[0, 0, 0], of_children=[5, 2, 1])
def test_forked_children(case, steps, generations, lines):
    """They are not traced, and the first of those that would be says so."""
    result = case.gtrace([], [*case.python(), '-c', FORKS, str(steps), str(generations)])
    check_equal(result.trace().expect_complete().step_numbers(), [3, 4, 5], 'steps')
    check_equal(result.stderr.count('forked from a traced one'), lines, 'lines')


@each(before=[1], in_warm_up=[2], inside=[4])
def test_all_descriptors_closed(case, step):
    """A daemon's habit. The arena is memory: what it holds is not lost with the socket."""
    result = case.gtrace([], case.train('--close-at', step, gone=False))
    check('trained 10 steps' in result.stdout, result)
    for name in result.names():
        result.trace(name).expect_checked()


def test_end_without_descriptors(case):
    """Within a window: its end was in order, as the arena says."""
    result = case.gtrace(['--active', 100], case.train('--close-at', 4, off=(), gone=False))
    trace = result.trace().expect_checked().expect_complete()
    check_equal(trace.step_numbers(), list(range(3, 11)), 'steps')
    check('killed' not in result.stderr, result)


def test_exec_keeps_the_pid(case):
    """Of the two programs in one process only the second one uses the GPU."""
    trace = case.gtrace(['-n', 'x'], ['sh', '-c', 'exec "$@"', 'sh', *case.train()]).trace()
    compare(trace.expect_checked().expect_complete(), case.truth(), range(3, 6))


def test_exec_of_a_traced_program(case):
    """A program that has a session becomes another one, which gets one of its own."""
    script = ('import ctypes, os, sys\n'
              'cuda = ctypes.CDLL("libcuda.so.1")\n'
              'assert cuda.cuInit(0) == 0\n'
              'os.execv(sys.argv[1], sys.argv[1:])\n')
    command = [*case.python(), '-c', script, *case.train()]
    result = case.gtrace(['-n', 'x'], command)
    traces = [result.trace(name) for name in result.names()]
    whole = [t for t in traces if t.step_numbers() == [3, 4, 5]]
    check_equal(len(whole), 1, f'traces of the second program among {result.names()}')
    compare(whole[0].expect_checked().expect_complete(), case.truth(), range(3, 6))


def test_child_with_cuda_of_its_own(case):
    """spawn: a child that is another program is traced as one."""
    script = 'import subprocess, sys; subprocess.run(sys.argv[1:], check=True)'
    trace = case.gtrace(['-n', 'x'], [sys.executable, '-c', script, *case.train()]).trace()
    compare(trace.expect_checked().expect_complete(), case.truth(), range(3, 6))


def test_child_that_outlives_the_command(case):
    """gtrace ends when the command has, and traced children after 2 s at the latest."""
    script = ('import os, subprocess, sys\n'
              'read_fd, write_fd = os.pipe()\n'
              'null = subprocess.DEVNULL\n'
              'child = subprocess.Popen([*sys.argv[1:], "--tell-fd", str(write_fd)], stdout=null,\n'
              '                         stderr=null, pass_fds=[write_fd])\n'
              'os.close(write_fd)\n'
              'next(line for line in open(read_fd) if line.startswith("begin 8 "))\n'
              'print(child.pid)\n'
              'sys.stdout.flush()\n'
              'os._exit(3)\n')
    command = case.train('--steps', 100000, '--exit-status', 5)
    result = case.gtrace(['-n', 'x'], [sys.executable, '-c', script, *command], status=3)
    os.kill(int(result.stdout), signal.SIGKILL)
    trace = result.trace().expect_checked()
    check_equal(trace.step_numbers(), [3, 4, 5], 'steps')


def test_program_that_never_inits_cuda(case):
    """The libraries are loaded, but nothing is done with them."""
    script = 'import ctypes; ctypes.CDLL("libcuda.so.1"); print("done")'
    result = case.gtrace([], [*case.python(), '-c', script])
    check_equal(result.stdout, 'done\n', 'stdout')
    check_equal(result.names(), [], 'files')


@each(auto=[[]], none=[['--step-source', 'none']])
def test_program_that_only_asks_for_the_gpu(case, options):
    """As torch.cuda.is_available() does: there is nothing to trace, and no step is missed."""
    script = ('import ctypes\n'
              'count = ctypes.c_int()\n'
              'runtime = ctypes.CDLL("libcudart.so.13")\n'
              'assert runtime.cudaGetDeviceCount(ctypes.byref(count)) == 0\n')
    result = case.gtrace(options, [*case.python(), '-c', script])
    check_equal([line for line in result.stderr.splitlines() if 'warning' in line],
                ['gtrace: warning: nothing is traced: the program used CUDA, but did nothing that is '
                 'recorded (--activities cpu,gpu)'], 'warnings')
    check_equal(result.names(), [], 'files')


def marker(case, *flags):
    """A program that marks four steps and does nothing else."""
    source, program = (os.path.join(case.directory, name) for name in ('steps.c', 'steps'))
    with open(source, 'w') as file:
        file.write('#include "gtrace.h"\n#include <stdio.h>\n'
                   'int main(void) { for (int i = 0; i < 4; i++) gtrace_step(); return puts("done") < 0; }\n')
    subprocess.run([os.environ.get('CC', 'cc'), *flags, '-w', '-I', os.path.join(ROOT, 'lib'), '-o', program, source],
                   check=True)
    return [program]


def test_statically_linked_program(case):
    """The library that it loads brings a C library of its own, in which no thread can be made."""
    if sanitizer_runtime(case.simgpu):
        raise Skip('a sanitizer cannot be loaded into a statically linked program')
    result = case.gtrace([], marker(case, '-static', '-Wl,--no-warnings'))
    check_equal(result.stdout, 'done\n', 'stdout')
    check('is not traced: it is statically linked' in result.stderr, result)


def test_window_before_the_first_mark(case):
    """With its first mark gtrace comes into the program, whose first step is over then."""
    if sanitizer_runtime(case.simgpu):
        raise Skip('a sanitizer has to come first, which a program of the compiler has not')
    result = case.gtrace(['--skip-first', 0, '--wait', 0, '--warmup', 0, '--active', 1], marker(case))
    if result.names():  # it had just begun, with nothing in it
        check_equal(result.trace().step_numbers(), [0], 'steps')
        check_equal(result.trace().gpu(), [], 'GPU work')
    else:
        check('in step 0, or was first heard of later' in result.stderr, result)


def test_no_injection_library(case):
    """A driver ignores what it cannot load; gtrace says so before the start."""
    result = case.gtrace([], case.train(tools=None), env={'GTRACE_INJECTION': '/nonexistent.so'})
    check('trained 10 steps' in result.stdout, result)
    check('/nonexistent.so' in result.stderr, result)


@each(cuda=['CUDA_INJECTION64_PATH'], nvtx=['NVTX_INJECTION64_PATH'])
def test_injection_variable_taken(case, name):
    """Another tool was here first: one line, and the target runs."""
    result = case.gtrace([], case.train(tools=None), env={name: '/opt/tool/libtool.so'})
    check('trained 10 steps' in result.stdout, result)
    check(name in result.stderr, 'nothing said of', name, result)


def test_python_that_ignores_its_path(case):
    """-I: the start-up hook comes in from C."""
    argv = case.train_py(tools=None)
    at = argv.index(next(a for a in argv if a.endswith('train.py')))
    command = [*argv[:at], '-I', *argv[at:], '--steps', '40']
    result = case.gtrace([], command)
    check_equal(result.trace().health['step_source'], 'optimizer', 'step_source')
