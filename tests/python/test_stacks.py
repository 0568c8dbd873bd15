#!/usr/bin/env python3
"""What the injection sees of the interpreter's frames, against what Python says itself.

usage: test_stacks.py BUILD [PYTHON...]

Every PYTHON (this one, and those of GTRACE_TEST_PYTHON, separated by colons) is tried. Run by hand
with 3.9, 3.11, 3.13, 3.14 and 3.15.
"""

import os
import sys

from harness import HERE, Place, case, equal, main, run

# As the start-up hook asks, in frames of many kinds.
WALK = """
import asyncio, functools, sys, threading
sys.path.insert(0, {hook!r})
import gtrace_stacks
library = gtrace_stacks.PyDLL({injection!r})
seen = 0

def see(*_):
    global seen
    assert gtrace_stacks._sees_frames(library)
    seen += 1
    return seen

class Object:
    def __len__(self): return see()
    def __del__(self): see()
    def __getattr__(self, name): raise AttributeError(see())

def generator():
    yield see()
    yield from map(see, range(2))

def recurse(depth): return recurse(depth - 1) if depth else see()

async def coroutine(depth):
    await asyncio.sleep(0)
    see()
    async for _ in numbers(): see()
    if depth: await coroutine(depth - 1)

async def numbers():
    yield see()

async def gather(): await asyncio.gather(coroutine(3), coroutine(2))

see()
item = Object()
len(item), getattr(item, "none", None)
del item
list(generator()), sorted([3, 1], key=see), functools.partial(see)()
for depth in (1, 60, 100): recurse(depth)
exec(compile("def f():\\n  1\\n  return see()\\nf()", "<\\xe9\\u4e2d\\U0001f600>", "exec"))
thread = threading.Thread(target=recurse, args=(5,))
thread.start()
thread.join()
asyncio.run(gather())
for switch in sys.settrace, sys.setprofile:
    switch(lambda *_: None)
    recurse(3)
    switch(None)
print(seen)
"""


@case
def sees_the_frames_that_python_sees(build, pythons):
    program = WALK.format(hook=f'{HERE}/../../injection/python',
                          injection=f'{os.path.abspath(build)}/libgtrace-inject.so')
    for python in pythons:
        with Place() as place:
            done = run(place, [python, '-c', program])
            equal((python, done.status, done.out, done.err), (python, 0, '38\n', ''))


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:] or [
        sys.executable, *filter(None, os.environ.get('GTRACE_TEST_PYTHON', '').split(':'))]))
