#!/usr/bin/env python3
"""Runs operators in Python code of all kinds. Writes to the file that it is given, for each operator
that torch lets Python see, its name and the frames it was called in, as Python has them.

usage: stacks_program.py FILE
"""

import asyncio
import functools
import json
import sys
import threading

import torch
from torch.utils._python_dispatch import TorchDispatchMode

ones = torch.ones(2)
seen = []


class Watch(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        frame, frames = sys._getframe(1), []
        while "/torch/_" in frame.f_code.co_filename:  # around this function
            frame = frame.f_back
        while frame:
            frames.append([frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name])
            frame = frame.f_back
        seen.append([function._schema.name, frames])
        return function(*args, **(kwargs or {}))


def two_lines():
    ones.add(1)
    return ones.mul(
        ones.sub(2))


def generator():
    for _ in range(2):
        yield ones.add(1)


def delegate():
    yield from generator()


def recurse(depth):
    return recurse(depth - 1) if depth else two_lines()


class Object:
    def __len__(self):
        ones.add(1)
        return 1

    def __del__(self):
        ones.neg()

    @property
    def value(self):
        return ones.abs()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(2, 2)
        self.second = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.second(self.first(x)).relu()


async def coroutine(depth):
    ones.add(1)
    await asyncio.sleep(0)
    ones.mul(2)
    if depth:
        await coroutine(depth - 1)
    async for _ in numbers():
        ones.sub(1)


async def numbers():
    for _ in range(2):
        yield ones.neg()


async def gather():
    with Watch():
        await asyncio.gather(coroutine(2), coroutine(1))


def in_thread():
    with Watch():
        two_lines()


def replaced(count):
    """Functions that come and go, mostly at one address, each with its operator at another line."""
    for i in range(count):
        space = {"ones": ones}
        exec(compile("def function():\n" + "    1\n" * (i % 5) + "    ones.add(1)\n" +
                     "    1\n" * (5 - i % 5) + "function()\n", "<made>", "exec"), space)


def main():
    two_lines()
    list(delegate())
    sorted([2, 1], key=lambda x: ones.add(x).sum().item())
    functools.partial(two_lines)()
    list(map(lambda x: ones.add(x), range(2)))
    for depth in (3, 60, 125, 126, 127, 128, 129, 300, 900):
        recurse(depth)
    item = Object()
    len(item), item.value
    del item
    exec("ones.add(1)\n\nones.mul(2)")
    eval("ones.add(1)")
    replaced(20)
    net = Net()
    with torch.no_grad():
        for _ in range(2):
            net(ones)


with Watch():
    main()
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
asyncio.run(gather())
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(seen, file)
