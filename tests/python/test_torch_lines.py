#!/usr/bin/env python3
"""Phases, lines and stacks of a program in a trace of real torch, on the CPU.

usage: test_torch_lines.py BUILD [PYTHON...]     (see torch_traces.py)
"""

import json
import os
import re
import subprocess
import sys

from harness import HERE, Place, Skip, case, equal, run
from torch_traces import FIRST, LAST, content, main_with_torch


def summary_of(gtrace, path, *options):
    done = subprocess.run([f'{gtrace.build}/gtrace', 'summary', '--format', 'json', *options, path],
                          check=True, capture_output=True)
    return json.loads(done.stdout)['files'][0]


@case
def steps_have_phases(gtrace):
    for python, torch, _ in gtrace.torches:
        with Place() as place:
            steps = summary_of(gtrace, gtrace.trace(place, python, 'loader'))['steps']
            equal((torch, len(steps)), (torch, LAST - FIRST + 1))
            for step in steps:
                phases = step['phases']
                equal((torch, sorted(name for name, us in phases.items() if us <= 0)), (torch, []))
                equal((torch, round(sum(phases.values()), 3)), (torch, step['dur_us']))


LINES = '''
import torch
linear = torch.nn.Linear(64, 64)
def model(x):
    return torch.relu(linear(x))
def train():
    model(torch.ones(8, 64)).sum().backward()
'''


def check_lines(gtrace, torch, path, places):
    """The backward pass is of the line of its forward pass."""
    lines = {row['function']: row for row in summary_of(gtrace, path, '--by', 'line')['lines']
             if row['file'] and row['file'].endswith('lines.py')}
    model, train = lines['model'], lines['train']
    equal((torch, model['line'], train['line']), (torch, *places))
    equal((torch, model['calls']), (torch, 2))  # linear and relu
    assert train['calls'] >= 2, lines  # ones, sum
    assert model['backward_cpu_us'] > 0 and train['backward_cpu_us'] > 0, lines


@case
def lines_of_the_program(gtrace):
    for python, torch, _ in gtrace.torches:
        with Place() as place:
            script = place.write('lines.py', LINES + 'train()\n')
            gtrace.run(place, [python, script], ['--step-source', 'none', '--with-stack'])
            check_lines(gtrace, torch, f'{place.path}/lines-rank0.trace.json.gz', (5, 7))


@case
def lines_where_functions_begin(gtrace):
    """All that torch.profiler writes of stacks."""
    tried = False
    for python, torch, has_kineto in gtrace.torches:
        if not has_kineto:
            continue
        tried = True
        with Place() as place:
            script = place.write('lines.py', LINES + '''
from torch.profiler import profile
with profile(with_stack=True) as prof:
    train()
prof.export_chrome_trace("lines.json")
''')
            done = run(place, [python, script])
            equal((torch, done.status), (torch, 0))
            check_lines(gtrace, torch, f'{place.path}/lines.json', (4, 6))
    if not tried:
        raise Skip('no torch with Kineto')


FRAME = re.compile(r'(.*?)\((\d+)\): ([^;]*);')  # of a "Call stack"


def frames_of(event):
    return [(os.path.basename(file), int(line), function)
            for file, line, function in FRAME.findall(event['args'].get('Call stack', ''))]


@case
def operators_have_the_stacks_that_python_has(gtrace):
    for python, torch, _ in gtrace.torches:
        with Place() as place:
            gtrace.run(place, [python, f'{HERE}/stacks_program.py', 'seen.json'],
                       ['--step-source', 'none', '--with-stack', '--with-modules', '--name', 's'])
            trace = content(f'{place.path}/s-rank0.trace.json.gz')
            seen = content(f'{place.path}/seen.json')
        equal((torch, trace['with_stack'], trace['with_modules']), (torch, 1, 1))
        equal((torch, trace['gtrace']['complete']), (torch, True))
        operators = [event for event in trace['traceEvents'] if event.get('cat') == 'cpu_op']
        operators.sort(key=lambda event: (event['ts'], -event['dur']))
        assert len(seen) > 100
        left = iter(operators)
        for name, frames in seen:
            frames = [(os.path.basename(file), line, function) for file, line, function in frames]
            cut = len(frames) > 128
            for event in left:
                got = frames_of(event)
                if cut and got and got[-1] == ('...', 0, 'outer frames'):
                    assert 64 < len(got) - 1 <= 128
                    got[-1:] = frames[len(got) - 1:]
                if event['name'] == name and got == frames:
                    break
            else:
                raise AssertionError(f'torch {torch}: no {name} in {frames}')
        modules = {event['args'].get('Module Hierarchy') for event in operators}
        equal((torch, modules), (torch, {None, 'Net_0', 'Net_0.Linear_0', 'Net_0.Linear_1'}))
        functions = {event['name'] for event in trace['traceEvents']
                     if event.get('cat') == 'python_function'}
        assert {'nn.Module: Net_0', 'nn.Module: Linear_1'} <= functions, functions
        with open(f'{HERE}/stacks_program.py', encoding='utf-8') as file:
            line = file.read().splitlines().index('def two_lines():') + 1
        assert f'stacks_program.py({line}): two_lines' in functions, functions


if __name__ == '__main__':
    sys.exit(main_with_torch(__doc__))
