#!/usr/bin/env python3
"""train.py - a small "training" program: kernels launched through the runtime and the driver, two
streams, copies, a set, a CUDA graph, an optimizer with torch's hooks. Standard library only; it
runs on the simulated GPU (LD_LIBRARY_PATH=build/simgpu) and on a real one, and with --truth it
writes down what it did.
"""

import argparse
import collections
import ctypes
import json
import os
import sys
import threading
from ctypes import byref, c_int, c_size_t, c_uint, c_void_p

BATCH_BYTES = 256 << 10
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2

# mangled: demangled
KERNELS = {
    'ampere_bf16_s16816gemm_128x128_tn': 'ampere_bf16_s16816gemm_128x128_tn',
    '_Z15softmax_forwardIfLi32EEvPKT_PS0_i': 'void softmax_forward<float, 32>(float const*, float*, int)',
    '_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_7MeanOpsIfffEEEEEEvT1_':
        'void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, '
        'at::native::MeanOps<float, float, float> > >(at::native::ReduceOp<float, '
        'at::native::MeanOps<float, float, float> >)',
    'triton_poi_fused_gelu_3': 'triton_poi_fused_gelu_3',
    '_Z9adam_stepPfPKff': 'adam_step(float*, float const*, float)',
}
GEMM, SOFTMAX, LOSS, GELU, ADAM = KERNELS

PTX_HEAD = '.version 7.0\n.target sm_75\n.address_size 64\n'
PTX_KERNEL = '''
.visible .entry {name}(.param .u32 n)
{{
	.reg .u32 %count, %n;
	.reg .pred %more;
	ld.param.u32 %n, [n];
	mov.u32 %count, 0;
again:
	add.u32 %count, %count, 1;
	setp.lt.u32 %more, %count, %n;
	@%more bra again;
	ret;
}}
'''
PTX = (PTX_HEAD + ''.join(PTX_KERNEL.format(name=name) for name in KERNELS)).encode()


class Truth:
    """What was done, by step."""

    def __init__(self):
        self.lock = threading.Lock()
        self.steps = []
        self.next_step()

    def next_step(self):
        self.steps.append({
            'kernels': collections.Counter(), 'ranges': {}, 'runtime_calls': collections.Counter(),
            'driver_calls': collections.Counter(), 'HtoD': [0, 0], 'DtoH': [0, 0], 'DtoD': [0, 0],
            'PtoP': [0, 0], 'Memset': [0, 0], 'captured': 0, 'silent': 0})

    def call(self, domain, function):
        with self.lock:
            self.steps[-1][domain + '_calls'][threading.get_native_id(), function] += 1

    def kernel(self, name):
        with self.lock:
            self.steps[-1]['kernels'][name] += 1

    def copy(self, kind, size):
        with self.lock:
            self.steps[-1][kind][0] += 1
            self.steps[-1][kind][1] += size

    def captured(self):
        self.steps[-1]['captured'] += 1

    def write(self, path, marks):
        for number, step in enumerate(self.steps):
            step['step'] = number
            for domain in 'runtime_calls', 'driver_calls':
                step[domain] = [[tid, name, n] for (tid, name), n in step[domain].items()]
        with open(path, 'w') as file:
            json.dump({'pid': os.getpid(), 'marks': marks, 'names': KERNELS, 'steps': self.steps},
                      file, indent=1)


class Dim3(ctypes.Structure):
    _fields_ = [('x', c_uint), ('y', c_uint), ('z', c_uint)]


class Gpu:
    """The few calls a training step makes, each counted. Every failure raises."""

    def __init__(self, truth):
        self.truth = truth
        self.driver = ctypes.CDLL('libcuda.so.1')
        self.runtime = ctypes.CDLL('libcudart.so.13')
        # Its first call would create the primary context by itself; so does this.
        self.cuda('cudaSetDevice', 0)
        self.count = c_uint(1000)
        self.args = (c_void_p * 1)(ctypes.addressof(self.count))
        module, library = c_void_p(), c_void_p()
        self.cu('cuModuleLoadData', byref(module), PTX)
        self.cuda('cudaLibraryLoadData', byref(library), PTX, None, None, 0, None, None, 0)
        self.functions = {n: self.handle(self.cu, 'cuModuleGetFunction', module, n.encode()) for n in KERNELS}
        self.kernels = {n: self.handle(self.cuda, 'cudaLibraryGetKernel', library, n.encode()) for n in KERNELS}
        self.compute = self.handle(self.cuda, 'cudaStreamCreate')
        self.transfer = self.handle(self.cuda, 'cudaStreamCreate')
        self.batch = self.handle(self.cuda, 'cudaMalloc', c_size_t(BATCH_BYTES))
        self.weights = self.handle(self.cuda, 'cudaMalloc', c_size_t(BATCH_BYTES))
        self.host = self.handle(self.cuda, 'cudaMallocHost', c_size_t(BATCH_BYTES))

    def cu(self, name, *args):
        self.check(name, getattr(self.driver, name)(*args))

    def cuda(self, name, *args):
        self.check(name, getattr(self.runtime, name)(*args))

    @staticmethod
    def check(name, result):
        if result:
            sys.exit(f'train.py: {name} failed: {result}')

    @staticmethod
    def handle(call, name, *args):
        handle = c_void_p()
        call(name, byref(handle), *args)
        return handle

    def launch(self, name, capturing=False):
        self.cuda('cudaLaunchKernel', self.kernels[name], Dim3(16, 1, 1), Dim3(256, 1, 1), self.args,
                  c_size_t(0), self.compute)
        self.truth.call('runtime', 'cudaLaunchKernel')
        self.truth.captured() if capturing else self.truth.kernel(name)

    def launch_driver(self, name):
        self.cu('cuLaunchKernel', self.functions[name], 4, 4, 1, 64, 1, 1, 0, self.compute, self.args,
                None)
        self.truth.call('driver', 'cuLaunchKernel')
        self.truth.kernel(name)

    def copy(self, dst, src, kind):
        self.cuda('cudaMemcpyAsync', dst, src, c_size_t(BATCH_BYTES), kind, self.transfer)
        self.truth.call('runtime', 'cudaMemcpyAsync')
        self.truth.copy('HtoD' if kind == HOST_TO_DEVICE else 'DtoH', BATCH_BYTES)

    def zero(self, ptr):
        self.cuda('cudaMemsetAsync', ptr, 0, c_size_t(BATCH_BYTES), self.compute)
        self.truth.call('runtime', 'cudaMemsetAsync')
        self.truth.copy('Memset', BATCH_BYTES)

    def capture(self, names):
        graph, executable = c_void_p(), c_void_p()
        self.cuda('cudaStreamBeginCapture', self.compute, 0)
        for name in names:
            self.launch(name, capturing=True)
        self.cuda('cudaStreamEndCapture', self.compute, byref(graph))
        self.cuda('cudaGraphInstantiate', byref(executable), graph, ctypes.c_ulonglong(0))
        self.graph, self.graph_names = executable, names

    def replay(self):
        self.cuda('cudaGraphLaunch', self.graph, self.compute)
        self.truth.call('runtime', 'cudaGraphLaunch')
        for name in self.graph_names:
            self.truth.kernel(name)

    def wait_for_tools(self, listening):
        if hasattr(self.driver, 'simgpu_wait_for_tools'):
            self.driver.simgpu_wait_for_tools(listening)

    def synchronize(self):
        self.cuda('cudaDeviceSynchronize')


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument('--steps', type=int, default=10)
    parser.add_argument('--layers', type=int, default=4)
    parser.add_argument('--marks', choices=['optimizer', 'api', 'none'], default='optimizer')
    parser.add_argument('--optimizers', type=int, default=1, help='each steps once a training step')
    parser.add_argument('--threads', type=int, default=1, help='threads that launch')
    parser.add_argument('--profile', type=int, metavar='STEP', action='append', default=[],
                        help='profile this step and the next; may be repeated')
    parser.add_argument('--profile-thread', action='store_true', help='begin and end it in other threads')
    parser.add_argument('--range', metavar='FIRST:LAST', help='these steps are between cudaProfilerStart() '
                        'and cudaProfilerStop(), as torch.cuda.profiler calls them')
    parser.add_argument('--tell-fd', type=int, help='write "begin STEP" lines here')
    parser.add_argument('--wait-fd', type=int, help='read a byte here before each step')
    parser.add_argument('--tools-at', default='', metavar='STEPS',
                        help='steps in which to wait for a tool to listen, as ",2,3,"; simulated GPU only')
    parser.add_argument('--tools-off-at', default='', metavar='STEPS', help='likewise, until none listens')
    parser.add_argument('--tools-gone', type=int, default=0, help='1: at the end wait until none listens')
    parser.add_argument('--truth', metavar='FILE')
    return parser.parse_args()


def api_mark():
    """gtrace_step() of gtrace.h, in Python."""
    path = os.environ.get('GTRACE_INJECTION')
    if not path:
        return lambda: None
    library = ctypes.CDLL(path)
    if library.gtrace_inject_start(4) != 1:
        return lambda: None
    return library.gtrace_inject_step


class Program:
    def __init__(self, options):
        self.options = options
        self.truth = Truth()
        self.gpu = Gpu(self.truth)
        self.gpu.capture([GELU, GEMM])
        self.mark = api_mark() if options.marks == 'api' else lambda: None
        self.optimizers = []
        self.profiler = None
        self.range = [int(step) for step in options.range.split(':')] if options.range else [None, None]
        if options.marks == 'optimizer' or options.profile:
            # First, so that a torch that is installed does not hide it.
            sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'fake'))
        if options.marks == 'optimizer':
            from torch.optim import Optimizer

            self.optimizers = [Optimizer(lambda: self.gpu.launch(ADAM)) for _ in range(options.optimizers)]

    def forward(self):
        self.gpu.copy(self.gpu.batch, self.gpu.host, HOST_TO_DEVICE)
        for _ in range(self.options.layers):
            self.gpu.launch(GEMM)
            self.gpu.launch_driver(GELU)
            self.gpu.launch(SOFTMAX)
        self.gpu.launch(LOSS)

    def backward(self):
        self.gpu.zero(self.gpu.weights)
        for _ in range(self.options.layers):
            self.gpu.launch(GEMM)
        self.gpu.replay()
        self.gpu.copy(self.gpu.host, self.gpu.weights, DEVICE_TO_HOST)

    def step_optimizers(self):
        """The step ends with the first optimizer: others of the same step do not count."""
        if self.optimizers:
            self.optimizers[0].step()
        else:
            self.gpu.launch(ADAM)
        self.truth.next_step()
        self.mark()
        for optimizer in self.optimizers[1:]:
            optimizer.step()

    def helpers(self):
        threads = [threading.Thread(target=lambda: [self.gpu.launch(SOFTMAX) for _ in range(5)])
                   for _ in range(self.options.threads - 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def profile(self, step):
        if step in self.options.profile:
            from torch.autograd.profiler import profile

            self.profiler = profile()
            self.maybe_in_thread(self.profiler.__enter__)
        elif step - 2 in self.options.profile:
            self.maybe_in_thread(self.profiler.__exit__, None, None, None)
            print(f'profiler: subscribe {self.profiler.subscribe_result}')
            print(f'profiler: {self.profiler.kernels} kernels')

    def maybe_in_thread(self, function, *args):
        if not self.options.profile_thread:
            function(*args)
            return
        thread = threading.Thread(target=function, args=args)
        thread.start()
        thread.join()

    def run(self):
        for step in range(self.options.steps):
            if self.options.tell_fd is not None:
                os.write(self.options.tell_fd, b'begin %d\n' % step)
            if self.options.wait_fd is not None:
                os.read(self.options.wait_fd, 1)
            self.profile(step)  # first: another tool does not listen before it has ended
            if f',{step},' in self.options.tools_off_at:
                self.gpu.wait_for_tools(0)
            if f',{step},' in self.options.tools_at:
                self.gpu.wait_for_tools(1)
            if step == self.range[0]:
                self.gpu.cuda('cudaProfilerStart')
            self.forward()
            self.helpers()
            self.backward()
            self.gpu.synchronize()
            self.step_optimizers()
            if step == self.range[1]:
                self.gpu.cuda('cudaProfilerStop')
        self.gpu.synchronize()
        if self.options.truth:
            self.truth.write(self.options.truth, self.options.marks)
        if self.options.tools_gone:
            self.gpu.wait_for_tools(0)
        print(f'trained {self.options.steps} steps')


if __name__ == '__main__':
    Program(parse()).run()
