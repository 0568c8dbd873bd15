"""Training loops on the GPU that know nothing of gtrace, and what torch.profiler says of their steps.

usage: programs.py NAME STEPS [FIRST ACTIVE PERIOD OUT]

With OUT, torch.profiler follows ACTIVE steps from FIRST on, and again every PERIOD steps, and the rows of each of its
key_averages() are written there as JSON, of rank R into OUT.R. NAME is a function below.
"""
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

import gpt


def gpt_with(wrap, capture=False, layers=12):
    model = gpt.GPT(layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    data = torch.randint(0, 1024, (8, 129), device='cuda')
    forward = wrap(model)
    graph = gpt.capture(model, data) if capture else None

    def step():
        if graph:
            graph.replay()
        else:
            optimizer.zero_grad(set_to_none=True)
            gpt.loss_of(forward, data).backward()
        optimizer.step()
    return step


def eager():
    return gpt_with(lambda model: model)


def item():
    """With a line that waits for the GPU in each step."""
    step = gpt_with(lambda model: model)
    noise = torch.zeros((), device='cuda')

    def step_and_wait():
        step()
        return noise.item()     # waits
    return step_and_wait


def behind():
    """The GPU takes longer for a step than the processor, which never waits for it."""
    model = nn.Sequential(*(nn.Linear(8192, 8192, bias=False) for _ in range(4))).cuda().bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    data = torch.randn(16384, 8192, device='cuda', dtype=torch.bfloat16)

    def step():
        time.sleep(.01)
        optimizer.zero_grad()
        model(data).mean().backward()
        optimizer.step()
    return step


def far_behind():
    """The GPU takes eight times as long as the processor: after 30 steps it is two seconds behind."""
    square = torch.randn(16384, 16384, device='cuda', dtype=torch.bfloat16)
    product = torch.empty_like(square)
    weight = nn.Parameter(torch.zeros(8, device='cuda'))
    weight.grad = torch.zeros_like(weight)
    optimizer = torch.optim.SGD([weight], lr=.1)

    def step():
        time.sleep(.01)
        for _ in range(6):
            torch.mm(square, square, out=product)
        optimizer.step()
    return step


def compiled():
    return gpt_with(torch.compile)


def graph():
    return gpt_with(lambda model: model, capture=True)


def ddp():
    return gpt_with(nn.parallel.DistributedDataParallel, layers=4)


def fsdp():
    from torch.distributed.fsdp import fully_shard
    model = gpt.GPT(4).cuda()
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    data = torch.randint(0, 1024, (8, 129), device='cuda')

    def step():
        optimizer.zero_grad(set_to_none=True)
        gpt.loss_of(model, data).backward()
        optimizer.step()
    return step


def cnn():
    """A residual net with automatic mixed precision and its gradient scaler."""
    def block(channels):
        return nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
                             nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.blocks = nn.Conv2d(3, 64, 7, 2, 3), nn.ModuleList(block(64) for _ in range(6))
            self.head = nn.Linear(64, 100)

        def forward(self, x):
            x = self.stem(x)
            for block in self.blocks:
                x = torch.relu(x + block(x))
            return self.head(x.mean((2, 3)))
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=.01, momentum=.9)
    scaler = torch.amp.GradScaler('cuda')
    images, labels = torch.randn(16, 3, 64, 64, device='cuda'), torch.randint(0, 100, (16,), device='cuda')

    def step():
        optimizer.zero_grad()
        with torch.autocast('cuda', dtype=torch.float16):
            loss = cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return step


def transformer():
    layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
    model = nn.Sequential(nn.Embedding(1000, 256), nn.TransformerEncoder(layer, 4, enable_nested_tensor=False),
                          nn.Linear(256, 1000)).cuda()
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        tokens = torch.randint(0, 1000, (8, 64), device='cuda')
        optimizer.zero_grad()
        cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()
    return step


def rows_of(profiler):
    return [{'name': row.key, 'device': row.device_type.name, 'user': row.is_user_annotation, 'count': row.count,
             'flops': row.flops, 'dev': row.device_time_total, 'self_dev': row.self_device_time_total,
             'self_dev_mem': row.self_device_memory_usage, 'self_cpu_mem': row.self_cpu_memory_usage}
            for row in profiler.key_averages()]


def main(name, steps, first=0, active=0, period=1, out=None):
    rank = int(os.environ.get('LOCAL_RANK', 0))
    torch.cuda.set_device(rank)
    if 'WORLD_SIZE' in os.environ:
        dist.init_process_group('nccl', device_id=torch.device('cuda', rank))
    torch.manual_seed(0)
    step = globals()[name]()
    windows, profiler = [], None
    for number in range(int(steps)):
        place = (number - int(first)) % int(period) if out and number >= int(first) else None
        if place == 0:
            torch.cuda.synchronize()
            profiler = torch.profiler.profile(record_shapes=True, with_flops=True, profile_memory=True)
            profiler.start()
        step()
        if place == int(active) - 1:
            torch.cuda.synchronize()
            profiler.stop()
            windows.append(rows_of(profiler))
    torch.cuda.synchronize()
    if out:
        with open(f'{out}.{rank}', 'w') as stream:
            json.dump(windows, stream)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


if __name__ == '__main__':
    main(*sys.argv[1:])
