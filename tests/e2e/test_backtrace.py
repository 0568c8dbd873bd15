"""--cuda-backtrace: the Python code that makes CUDA calls, of a program without PyTorch."""

import os
import re

from harness import ROOT, check, check_equal, compare, each

FRAME = re.compile(r'(.*?)\((\d+)\): ([^;]*);')
TRAIN = os.path.join(ROOT, 'tests/simgpu/train.py')


def frames_of(call):
    """[(file, line, function)] of its stack, the innermost first."""
    return [(file, int(line), function)
            for file, line, function in FRAME.findall(call['args'].get('Call stack', ''))]


def run(case, options, command):
    trace = case.gtrace(options, command).trace()
    return compare(trace.expect_checked().expect_complete(), case.truth(), range(3, 6))


def test_all_calls(case):
    """Each frame is where the source says it is."""
    with open(TRAIN) as file:
        source = file.read().splitlines()
    trace = run(case, ['--cuda-backtrace=0'], case.train_py('--marks', 'api'))
    callers = set()
    for call in trace.calls():
        frames = frames_of(call)
        check(frames, 'no stack:', call)
        for (file, line, _), (_, _, called) in zip(frames[1:], frames):
            check_equal(file, TRAIN, 'file')
            check(called in source[line - 1], f'line {line} does not call {called}:', source[line - 1])
        check_equal(frames[-1][2], '<module>', 'outermost function')
        callers.add((call['name'], *(function for _, _, function in frames[:3])))
    wanted = {('cudaDeviceSynchronize', 'cuda', 'synchronize', 'run'), ('cudaLaunchKernel', 'cuda', 'launch', 'forward'),
              ('cuLaunchKernel', 'cu', 'launch_driver', 'forward'), ('cudaMemcpyAsync', 'cuda', 'copy', 'backward')}
    check(wanted <= callers, 'missing:', wanted - callers)


def test_threads(case):
    trace = run(case, ['--cuda-backtrace=0'], case.train_py('--threads', 3))
    by_thread = {call['tid']: frames_of(call)[-1][2] for call in trace.calls()}
    check_equal(len(by_thread), 1 + 3 * 2, 'threads')  # those of each step
    check_equal(sorted(set(by_thread.values())), ['<module>', '_bootstrap'], 'outermost functions')


@each(default=([], 10), of_3_us=(['=3'], 3))
def test_long_calls(case, value, limit_us):
    """Those and no others."""
    trace = run(case, ['--cuda-backtrace' + ''.join(value)], case.train_py())
    for call in trace.calls():
        check_equal('Call stack' in call['args'], call['dur'] >= limit_us, f'stack of {call}')
    check(any('Call stack' in call['args'] for call in trace.calls()), 'no call waits')


@each(off=[], of_none=['--cuda-backtrace=1000000000'])
def test_no_calls(case, *options):
    trace = run(case, options, case.train_py())
    check(not any('Call stack' in call['args'] for call in trace.calls()), 'a stack')


def test_no_python(case):
    result = case.gtrace(['--cuda-backtrace=0'], case.train())
    trace = compare(result.trace().expect_complete(), case.truth(), range(3, 6))
    check(not any('Call stack' in call['args'] for call in trace.calls()), 'a stack')
    check('Python' not in result.stderr, 'of Python:', result)


def test_python_without_the_start_up_hook(case):
    """It comes while the program runs."""
    argv = case.train_py('--marks', 'api')
    at = next(i for i, arg in enumerate(argv) if arg.endswith('train.py'))
    run(case, ['--cuda-backtrace=0'], [*argv[:at], '-I', *argv[at:]])
