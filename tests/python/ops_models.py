#!/usr/bin/env python3
"""Small training programs, the same at each run.

usage: ops_models.py NAME STEPS [FIRST LAST TRACE]

With TRACE, torch.profiler writes there what the steps FIRST to LAST do, and how often each operator
was called, its FLOPs and the memory it took, by key_averages(), to TRACE.calls. A step ends with the optimizer that was called first.
"""

import json
import queue
import sys
import threading
import warnings

import torch
from torch import nn
from torch.nn.functional import cross_entropy


def train(model, optimizer, loss):
    optimizer.zero_grad()
    loss(model).backward()
    optimizer.step()


def mlp():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    sgd = torch.optim.SGD(model.parameters(), lr=.1, momentum=.9)
    target = torch.tensor([0, 1, 0, 1])
    return lambda: train(model, sgd, lambda m: cross_entropy(m(torch.randn(4, 8)), target))


def cnn():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Flatten(), nn.Linear(8 * 7 * 7, 10))
    adam = torch.optim.Adam(model.parameters())
    target = torch.tensor([1, 2])
    return lambda: train(model, adam, lambda m: cross_entropy(m(torch.randn(2, 3, 16, 16)), target))


def transformer():
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    model = nn.Sequential(nn.Embedding(50, 32),
                          nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
                          nn.Linear(32, 50))
    adam = torch.optim.AdamW(model.parameters())

    def loss(m):
        tokens = torch.randint(0, 50, (2, 12))
        return cross_entropy(m(tokens).flatten(0, 1), tokens.flatten())
    return lambda: train(model, adam, loss)


def two_optimizers():
    makes, tells = nn.Linear(4, 4), nn.Linear(4, 1)
    sgd = torch.optim.SGD(makes.parameters(), lr=.1)
    adam = torch.optim.Adam(tells.parameters())

    def first():
        train(makes, sgd, lambda m: -tells(m(torch.randn(2, 4))).mean())

    def step():
        train(tells, adam, lambda m: m(makes(torch.randn(2, 4)).detach()).mean())
        first()
    step.before = first
    return step


def accumulation():
    model = nn.Linear(4, 4)
    sgd = torch.optim.SGD(model.parameters(), lr=.1)

    def step():
        sgd.zero_grad()
        for _ in range(3):
            (model(torch.randn(2, 4)).sum() / 3).backward()
        sgd.step()
    return step


def loader():
    """One worker, as batches of several can come in another order."""
    from torch.utils.data import DataLoader, TensorDataset
    model = nn.Linear(4, 4)
    sgd = torch.optim.SGD(model.parameters(), lr=.1)
    batches = iter(DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=4, num_workers=1))

    def step():
        (batch,) = next(batches)
        train(model, sgd, lambda m: m(batch).sum())
    return step


def exceptions():
    model = nn.Linear(4, 4)
    sgd = torch.optim.SGD(model.parameters(), lr=.1)

    def fails(function):
        try:
            function()
        except RuntimeError:
            return
        raise AssertionError('it did not fail')

    def in_ranges():
        with torch.profiler.record_function('outer'), torch.profiler.record_function('inner'):
            model(torch.ones(2, 5))

    def step():
        fails(lambda: torch.mm(torch.ones(2, 3), torch.ones(2, 3)))
        fails(lambda: torch.empty(1 << 60, dtype=torch.uint8))  # no memory
        fails(in_ranges)
        train(model, sgd, lambda m: m(torch.randn(2, 4)).sum())
    return step


def threads():
    """They take turns, so that nothing depends on which is faster."""
    model = nn.Linear(4, 4)
    sgd = torch.optim.SGD(model.parameters(), lr=.1)
    calls = [queue.Queue() for _ in range(2)]
    done = queue.Queue()

    def work(call):
        own = nn.Linear(4, 4)
        while call.get():
            own(torch.randn(2, 4)).relu().sum().backward()
            done.put(True)
    for call in calls:
        threading.Thread(target=work, args=(call,), daemon=True).start()

    def step():
        for call in calls:
            call.put(True)
            done.get()
        train(model, sgd, lambda m: m(torch.randn(2, 4)).sum())
    return step


def own_operators():
    from torch.utils.checkpoint import checkpoint

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad
    model = nn.Linear(4, 4)
    sgd = torch.optim.SGD(model.parameters(), lr=.1)

    def loss(m):
        x = torch.randn(2, 4, requires_grad=True)
        return Square.apply(checkpoint(m, x, use_reentrant=True)).sum()
    return lambda: train(model, sgd, loss)


def odd_inputs():
    """One of each kind of input: of operators, of ranges, and of nodes of the backward pass."""
    model = nn.Linear(4, 4)
    sgd = torch.optim.SGD(model.parameters(), lr=.1)
    types = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
             torch.half, torch.bfloat16, torch.double, torch.cfloat, torch.cdouble]

    def values():
        x = torch.ones(2, 3)
        for number in (0., -0., 1., 2.5, -1e300, 1e10, .1, float('inf'), float('nan'), 7, -3, True,
                       2 ** 53, -2 ** 63, 1.5 - 2j, complex(-0., 1)):
            torch.full((1,), number, dtype=torch.cdouble)
        torch.add(x, x, alpha=2)
        torch.clamp(x, None, .5)
        torch.nn.functional.interpolate(torch.ones(1, 1, 4), scale_factor=1.5, mode='linear')
        torch.einsum('ij,kj->ik', x, x)
        torch.nn.functional.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3), padding='same')
        x.sum(list(range(2))), x.sum([])

    def tensors():
        x = torch.ones(2, 3)
        for count in 1, 2, 30, 31, 40:
            torch.cat([x] * count)
            torch._foreach_add([x.clone() for _ in range(count)], 1)
        torch.stack([x, x.t().contiguous().t()])
        x[torch.tensor([0]), None, torch.tensor([1])]
        torch.broadcast_tensors(x, torch.tensor(1.))

    def shapes():
        x = torch.arange(24.)
        for sizes in ((24,), (2, 12), (2, 3, 4), (1, 2, 3, 4), (1, 2, 1, 3, 4), (1, 2, 1, 3, 1, 4),
                      (1, 1, 2, 1, 3, 1, 4), (1,) * 63 + (24,)):
            x.view(sizes).add(1)
        torch.tensor(3.).add(1)
        torch.empty(0, 5).add(1), torch.empty(5, 0).t().add(1)
        x.view(2, 3, 4).permute(2, 0, 1)[::2].add(1)
        x[:1].expand(3, 2).add(1)
        x.view(1, 2, 3, 4).to(memory_format=torch.channels_last).add(1)
        torch.empty(1, device='meta').expand(2 ** 33, 2).sin()
        for type in types:
            torch.ones(2).to(type).add(1)

    def layouts():
        x = torch.eye(3)
        x.to_sparse().add(x.to_sparse())
        x.to_sparse_csr().values()
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]).sin()
        torch.quantize_per_tensor(x, .1, 0, torch.qint8).dequantize()

    warnings.simplefilter('ignore')  # some are of the future

    def step():
        for calls in values, tensors, shapes, layouts:
            with torch.profiler.record_function(calls.__name__, 'told'):
                calls()
        a, b = torch.ones(2, requires_grad=True).unbind()  # a node with an undefined input
        (a * 2).backward()
        train(model, sgd, lambda m: m(torch.randn(2, 4)).sum())
    return step


def profiled(step, count, every_thread):
    config = {}
    if every_thread:
        options = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
        config['experimental_config'] = options
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                record_shapes=True, with_flops=True, profile_memory=True,
                                **config) as prof:
        for _ in range(count):
            step()
    return prof


def main(name, steps, first=None, last=None, trace=None):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    step = globals()[name]()
    before = getattr(step, 'before', None)
    if before:
        before()
    left = int(steps) - bool(before)
    if trace:
        for _ in range(int(first) - bool(before)):
            step()
        prof = profiled(step, int(last) - int(first) + 1, name == 'threads')
        prof.export_chrome_trace(trace)
        with open(trace + '.calls', 'w') as out:
            json.dump([[row.key, [row.count, row.flops, row.self_cpu_memory_usage]]
                       for row in prof.key_averages() if not getattr(row, 'is_user_annotation', '#' in row.key)], out)
        left -= int(last) + 1 - bool(before)
    for _ in range(left):
        step()


if __name__ == '__main__':
    main(*sys.argv[1:])
