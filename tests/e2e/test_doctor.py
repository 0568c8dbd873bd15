"""gtrace doctor: each hindrance is found, with what to do about it, in bounded time and leaving
nothing behind; and its verdict is that of a program that was traced.
"""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys

from harness import TIMEOUT_S, Skip, check, check_equal, each


def environment(case, **kwargs):
    """With the simulated CUPTI where an installed one is looked for."""
    cuda = os.path.join(case.directory, 'cuda')
    if not os.path.exists(cuda):
        os.mkdir(cuda)
        os.symlink(case.simgpu, os.path.join(cuda, 'lib64'))
    result = {'CUDA_HOME': cuda, 'CONDA_PREFIX': None, 'PATH': '/usr/bin:/bin', 'XDG_RUNTIME_DIR': None}
    result.update(kwargs.pop('env', None) or {})
    return case.environment(env=result, **kwargs)


def doctor(case, *options, prefix=(), pass_fds=(), **kwargs):
    """The findings as {name: [finding]}, and the status."""
    done = subprocess.run([*prefix, case.gtrace_path, 'doctor', '--json', *options],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S,
                          cwd=case.out, pass_fds=pass_fds, env=environment(case, **kwargs))
    check(done.stdout, 'no output, but', done.stderr)
    report = json.loads(done.stdout)
    check_equal(done.stderr, '', 'stderr')
    check_equal(report['works'], not any(f['level'] == 'problem' for f in report['findings']), 'works')
    check_equal(done.returncode, 0 if report['works'] else 1, 'status')
    found = {'': report}
    for finding in report['findings']:
        check('\n' not in finding['text'], 'more than one line:', finding)
        check(finding['level'] == 'ok' or finding['fix'], 'no fix:', finding)
        found.setdefault(finding['name'], []).append(finding)
    left = [name for name in os.listdir(case.directory) if name.startswith('gtrace-')]
    check_equal(left, [], 'left behind')
    return found, done.returncode


def expect(found, name, level, *words):
    """A finding of that name and level has the words in its text or its fix."""
    for finding in found.get(name, []):
        text = f'{finding["text"]} {finding["fix"]}'
        if finding['level'] == level and all(word in text for word in words):
            return finding
    check(False, 'no', level, name, words, 'in', found.get(name), found['']['findings'])


def test_all_is_well(case):
    found, status = doctor(case)
    check_equal(status, 0, 'status')
    check_equal(found['']['gpu'], 'works', 'gpu')
    expect(found, 'gtrace.injection', 'ok', 'libgtrace-inject.so')
    expect(found, 'gpu.driver', 'ok', 'CUDA 13.0', case.simgpu)
    check_equal(len(found['gpu.device']), 2, 'devices')
    library = os.path.join(case.directory, 'cuda/lib64/libcupti.so.13')
    expect(found, 'cupti.library', 'ok', library, '; used for programs that bring none themselves')
    expect(found, 'trace.self_test', 'ok', 'a kernel and its launch, 4 pieces of GPU work', library)
    check_equal(os.listdir(case.out), [], 'files')


def test_a_rank_of_a_job(case):
    """It waits for no other, and its own trace is found."""
    found, status = doctor(case, env={'RANK': '3', 'WORLD_SIZE': '8', 'MASTER_ADDR': 'nowhere',
                                      'SLURM_JOB_ID': '1', 'SLURM_STEP_ID': '0', 'SLURM_PROCID': '3'})
    check_equal(status, 0, 'status')
    expect(found, 'trace.self_test', 'ok', 'a kernel and its launch')


def test_without_a_gpu(case):
    """It says so, and that is no fault: programs are traced."""
    found, status = doctor(case, libraries='/nowhere')
    if found['']['gpu'] != 'none':
        raise Skip('there is a GPU')
    check_equal(status, 0, 'status')
    expect(found, 'gpu.driver', 'warning', 'no GPU here', 'libcuda.so.1')
    expect(found, 'trace.self_test', 'ok', 'without a GPU was traced')


def test_no_device(case):
    found, status = doctor(case, faults='no_device', env={'CUDA_VISIBLE_DEVICES': '7'})
    check_equal(status, 0, 'status')
    check_equal(found['']['gpu'], 'none', 'gpu')
    expect(found, 'gpu.device', 'warning', 'CUDA_VISIBLE_DEVICES=7')
    expect(found, 'trace.self_test', 'ok', 'without a GPU')


@each(stub=[34, 'stubs'], fabric_manager=[802, 'nvidia-fabricmanager'], mismatch=[803, 'reboot'],
      compat=[804, 'compat'], unknown=[999, 'nvidia-modprobe'], others=[3, 'dmesg'])
def test_a_broken_driver(case, error, advice):
    found, status = doctor(case, faults=f'init_error={error}')
    check_equal(status, 1, 'status')
    check_equal(found['']['gpu'], 'broken', 'gpu')
    expect(found, 'gpu.driver', 'problem', 'cannot be used', advice)


def test_a_driver_that_hangs(case):
    found, status = doctor(case, '--timeout', '1', faults='init_hangs')
    check_equal(status, 1, 'status')
    expect(found, 'gpu.driver', 'problem', 'no answer from the driver within 1 s', 'cuInit()', 'dmesg')


def test_a_driver_that_crashes(case):
    found, status = doctor(case, faults='init_crashes')
    check_equal(status, 1, 'status')
    expect(found, 'gpu.driver', 'problem', 'cuInit() crashes')


def test_cupti_newer_than_the_driver(case):
    found, status = doctor(case, faults='driver=12080')
    expect(found, 'cupti.library', 'ok', 'not used, as it is for a newer driver')
    if not any('; used' in f['text'] for f in found['cupti.library']):
        check_equal(status, 1, 'status')
        expect(found, 'cupti.library', 'problem', 'no libcupti that fits', 'nvidia-cuda-cupti')
        expect(found, 'trace.self_test', 'problem', 'found no libcupti')


def test_cupti_as_a_toolkit_has_it(case):
    """The name of the file itself, which is of a year, says nothing of the driver that it is for."""
    cuda = os.path.join(case.directory, 'cuda')
    os.makedirs(os.path.join(cuda, 'lib64'))
    shutil.copy(os.path.join(case.simgpu, 'libcupti.so.13'), os.path.join(cuda, 'lib64/libcupti.so.2025.3.1'))
    os.symlink('libcupti.so.2025.3.1', os.path.join(cuda, 'lib64/libcupti.so.13'))
    found, _ = doctor(case, faults='driver=13000')
    library = os.path.join(cuda, 'lib64/libcupti.so.13')
    finding = expect(found, 'cupti.library', 'ok', library, 'used for programs that bring none themselves')
    check('driver' not in finding['text'], finding)


def test_cupti_that_cannot_be_opened(case):
    broken = os.path.join(case.directory, 'libcupti.so.13')
    with open(broken, 'w') as file:
        file.write('no library')
    found, status = doctor(case, env={'GTRACE_LIBCUPTI': broken})
    check_equal(status, 1, 'status')
    expect(found, 'cupti.library', 'problem', broken, 'unset GTRACE_LIBCUPTI')


def test_cupti_that_refuses(case):
    """The reason that a run gives is the one that the doctor gives."""
    found, status = doctor(case, faults='enable_fails')
    check_equal(status, 1, 'status')
    expect(found, 'trace.self_test', 'problem', 'no permission')


def test_records_that_never_come(case):
    found, status = doctor(case, faults='lose=1')
    check_equal(status, 1, 'status')
    expect(found, 'trace.self_test', 'problem', 'GTRACE_LIBCUPTI')


@each(memory=[2], exclusive=[46])
def test_a_gpu_that_others_have(case, error):
    """Which says nothing about tracing."""
    found, status = doctor(case, faults=f'context_error={error}')
    check_equal(status, 0, 'status')
    expect(found, 'trace.self_test', 'warning', 'others have the first GPU', 'cuDevicePrimaryCtxRetain()')


def test_a_program_that_fails(case):
    found, status = doctor(case, faults='context_error=719')
    check_equal(status, 1, 'status')
    expect(found, 'trace.self_test', 'problem', 'cuDevicePrimaryCtxRetain()')


def test_without_the_compiler_of_the_driver(case):
    found, status = doctor(case, faults='no_compiler')
    check_equal(status, 0, 'status')
    expect(found, 'trace.self_test', 'warning', 'copies were traced', 'ptxjitcompiler')


@each(injection=['CUDA_INJECTION64_PATH', '/opt/nvidia/libToolsInjection64.so', 'Nsight Systems'],
      preload=['LD_PRELOAD', '/nowhere/libToolsInjectionProxy64.so', 'Nsight Systems'],
      unknown=['CUDA_INJECTION64_PATH', '/opt/other.so', '/opt/other.so'])
def test_another_tool(case, name, value, who):
    # In the environment of gtrace alone: the loader complains of a library that is not there.
    run = f'exec 2>/dev/null; export {name}={value}; exec "$@"'
    found, status = doctor(case, prefix=['sh', '-c', run, 'sh'])
    check_equal(status, 1, 'status')
    expect(found, 'tools.conflict', 'problem', who, 'unset')


def test_tools_in_the_path(case):
    for name in 'nsys', 'ncu':
        path = os.path.join(case.directory, name)
        with open(path, 'w') as file:
            file.write('#!/bin/sh\n')
        os.chmod(path, 0o755)
    found, status = doctor(case, env={'PATH': f'/nowhere::{case.directory}:/usr/bin:/bin'})
    check_equal(status, 0, 'status')
    expect(found, 'tools.programs', 'ok', f'{case.directory}/nsys, {case.directory}/ncu')


def test_variables(case):
    found, status = doctor(case, env={'KINETO_USE_DAEMON': '1', 'NVTX_INJECTION64_PATH': '/opt/other.so',
                                      'GTRACE_OPS': 'nvtx'})
    check_equal(status, 0, 'status')
    expect(found, 'tools.kineto', 'warning', 'unset KINETO_USE_DAEMON')
    expect(found, 'tools.nvtx', 'warning', '/opt/other.so')
    expect(found, 'env.gtrace', 'ok', 'GTRACE_OPS=nvtx')
    found, _ = doctor(case, env={'NVTX_INJECTION64_PATH': '/usr/lib/libcupti.so'})
    expect(found, 'tools.nvtx', 'ok', 'takes its place')


@each(colours=[{}, True], none_wanted=[{'NO_COLOR': '1'}, False], dumb=[{'TERM': 'dumb'}, False])
def test_colours_on_a_terminal(case, env, coloured):
    master, slave = pty.openpty()
    with subprocess.Popen([case.gtrace_path, 'doctor', '-o', 'no/such'], stdin=subprocess.DEVNULL,
                          stdout=slave, cwd=case.out,
                          env=environment(case, env={'TERM': 'xterm', 'NO_COLOR': None, **env})) as process:
        os.close(slave)
        text = b''
        try:
            while True:
                text += os.read(master, 4096)
        except OSError:  # all is read
            pass
        os.close(master)
        check_equal(process.wait(TIMEOUT_S), 1, 'status')
    check_equal(b'\033[1;31mproblem\033[0m dir.output' in text, coloured, text)
    check_equal(b'\033' in text, coloured, text)


def interpreter(case, text):
    """A program that runs this Python in its own way."""
    path = os.path.join(case.directory, 'interpreter')
    with open(path, 'w') as file:
        file.write(f'#!/bin/sh\n{text}\n')
    os.chmod(path, 0o755)
    return path


@each(isolated=['-I', 'isolated'], environment=['-E', 'ignore_environment'], site=['-S', 'no_site'])
def test_a_python_that_lets_no_hook_in(case, option, flag):
    found, status = doctor(case, '--python', interpreter(case, f'exec {sys.executable} {option} "$@"'))
    check_equal(status, 0, 'status')
    expect(found, 'python.hook', 'warning', flag, 'without -I, -E or -S')


@each(absent=['/no/such/python', 'warning', 'no /no/such/python here'])
def test_no_python(case, program, level, text):
    found, status = doctor(case, '--python', program)
    check_equal(status, 0, 'status')
    expect(found, 'python.program', level, text)


def test_a_python_that_does_not_know_where_it_is(case):
    """As without PATH, where the C library finds it in /bin or /usr/bin."""
    program = interpreter(case, f'exec {sys.executable} -c "import sys; sys.executable = str(); exec(sys.argv[1])" "$2"')
    found, status = doctor(case, '--python', program)
    check_equal(status, 0, 'status')
    expect(found, 'python.program', 'ok', f'{program} is Python 3')


def test_a_python_that_hangs(case):
    """Nor does what it started live on."""
    fifo = os.path.join(case.directory, 'fifo')
    os.mkfifo(fifo)
    read_fd, write_fd = os.pipe()
    program = interpreter(case, f"trap '' TERM; cat {fifo} & read line <{fifo}")
    found, status = doctor(case, '--python', program, pass_fds=[write_fd])
    check_equal(status, 0, 'status')
    expect(found, 'python.program', 'warning', 'does not answer')
    os.close(write_fd)
    with open(read_fd) as held:
        check_equal(held.read(), '', 'what the processes say before the last of them is gone')


def fake_torch(case, version, cuda):
    folder = os.path.join(case.directory, 'site', 'torch')
    os.makedirs(os.path.join(folder, 'lib'))
    with open(os.path.join(folder, '__init__.py'), 'w') as file:
        file.write('raise SystemExit("it is not to be imported")\n')
    with open(os.path.join(folder, 'version.py'), 'w') as file:
        file.write(f'__version__ = {version!r}\ncuda = {cuda!r}\n')
    return os.path.dirname(folder)


def test_torch_and_its_own_cupti(case):
    site = fake_torch(case, '2.11.0+cu130', '13.0')
    wheel = os.path.join(site, 'nvidia/cu13')
    os.makedirs(wheel)
    os.symlink(case.simgpu, os.path.join(wheel, 'lib'))
    found, status = doctor(case, '--python', sys.executable, env={'PYTHONPATH': site})
    check_equal(status, 0, 'status')
    expect(found, 'python.torch', 'ok', 'PyTorch 2.11.0+cu130 for CUDA 13.0', site)
    expect(found, 'cupti.library', 'ok', 'nvidia/cu13/lib/libcupti.so.13', '; used for programs')


@each(old=['1.12.1', '11.6'], new=['3.0.0', '13.0'], odd=['nightly', '13.0'])
def test_torch_that_is_not_known(case, version, cuda):
    found, status = doctor(case, '--python', sys.executable,
                           env={'PYTHONPATH': fake_torch(case, version, cuda)})
    check_equal(status, 0, 'status')
    expect(found, 'python.torch', 'warning', version, '1.13 to 2.15')


def test_torch_newer_than_the_driver(case):
    found, _ = doctor(case, '--python', sys.executable, faults='driver=12080',
                      env={'PYTHONPATH': fake_torch(case, '2.11.0', '13.0')})
    expect(found, 'python.torch', 'warning', 'for CUDA 13.0, the driver for 12.8')


def test_directories(case):
    found, status = doctor(case, '-o', 'no/such/directory')
    check_equal(status, 1, 'status')
    expect(found, 'dir.output', 'problem', 'no/such/directory', 'create it')


@each(absent=['/no/such'], relative=['here'])
def test_directory_of_sessions(case, directory):
    found, status = doctor(case, env={'GTRACE_RUNTIME_DIR': directory})
    check_equal(status, 0, 'status')
    expect(found, 'dir.sessions', 'warning', 'ps, trigger and stop will not find', 'GTRACE_RUNTIME_DIR')


def test_file_size_limit(case):
    found, status = doctor(case, prefix=['bash', '-c', 'ulimit -f 2048; exec "$@"', 'bash'])
    check_equal(status, 1, 'status')
    expect(found, 'limit.file_size', 'problem', 'ulimit -f unlimited')


@each(interrupt=[signal.SIGINT], term=[signal.SIGTERM], hangup=[signal.SIGHUP])
def test_interrupted(case, number):
    """It ends at once, by that signal, and so does what it runs."""
    fifo = os.path.join(case.directory, 'fifo')
    os.mkfifo(fifo)
    program = interpreter(case, f'echo ready >{fifo}; exec cat {fifo}')
    process = subprocess.Popen([case.gtrace_path, 'doctor', '--timeout', '600', '--python', program],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               cwd=case.out, env=environment(case))
    try:
        with open(fifo) as lines:
            check_equal(lines.read(), 'ready\n', 'the interpreter')
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    finally:
        if process.poll() is None:
            process.kill()
    check_equal(process.returncode, -number, 'status')
    check_equal(stdout + stderr, b'', 'output')
    left = [name for name in os.listdir(case.directory) if name.startswith('gtrace-')]
    check_equal(left, [], 'left behind')
