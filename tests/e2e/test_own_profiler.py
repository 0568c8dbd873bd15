"""The program uses its own profiler where nobody hears of it, or nothing ends by that."""

import os

from harness import ROOT, check, check_equal

LAUNCHES = f'''
import ctypes, os, sys
sys.path.insert(0, {os.path.join(ROOT, "tests/simgpu")!r})
import train
gpu = train.Gpu(train.Truth())
gtrace = ctypes.CDLL(os.environ['GTRACE_INJECTION'])
def work(count):
    for _ in range(count):
        gpu.launch(train.GEMM)
    gpu.synchronize()
'''


def kernels(trace):
    return sum(trace.count('kernel').values())


def test_in_a_recording(case):
    """Without steps there is no window that ends: what was not recorded meanwhile is said."""
    script = LAUNCHES + ('work(100)\n'
                         'gtrace.gtrace_inject_yield()\n'
                         'work(500)\n'
                         'gtrace.gtrace_inject_resume()\n'
                         'gpu.wait_for_tools(1)\n'
                         'work(100)\n')
    trace = case.gtrace([], [*case.python(), '-c', script]).trace().expect_incomplete()
    check_equal(kernels(trace), 200, 'kernels')
    check("interrupted by the program's own torch.profiler" in trace.health['reason'], trace.health)


def test_behind_closed_descriptors(case):
    """No message says so."""
    script = LAUNCHES + ('gtrace.gtrace_inject_start(4)\n'
                         'os.closerange(3, 4096)\n'
                         'for step in range(10):\n'
                         '    if step == 2:\n'
                         '        gpu.wait_for_tools(1)\n'
                         '    work(50)\n'
                         '    if step == 4:\n'
                         '        gtrace.gtrace_inject_yield()\n'
                         '    if step == 6:\n'
                         '        gtrace.gtrace_inject_resume()\n'
                         '    gtrace.gtrace_inject_step()\n')
    trace = case.gtrace([], [*case.python(), '-c', script]).trace().expect_incomplete()
    check_equal(kernels(trace), 100, 'kernels')
    check("interrupted by the program's own torch.profiler" in trace.health['reason'], trace.health)
