"""The simulated GPU itself, and the sample programs without gtrace."""

import os
import subprocess

from harness import ROOT, check, check_equal


def test_says_what_a_device_says(case):
    """conform.expected is what an H200 said."""
    done = subprocess.run([os.path.join(case.simgpu, 'conform')], capture_output=True, text=True,
                          env=case.environment())
    check_equal(done.returncode, 0, 'status')
    with open(os.path.join(ROOT, 'tests/simgpu/conform.expected')) as file:
        wanted = file.read().splitlines()
    got = done.stdout.splitlines()
    for number, (mine, theirs) in enumerate(zip(got, wanted)):
        check_equal(mine, theirs, f'line {number + 1}')
    check_equal(len(got), len(wanted), 'lines')


def test_program_in_c_alone(case):
    done = subprocess.run(case.train('--threads', 3, tools=None), capture_output=True, text=True,
                          env=case.environment())
    check_equal((done.returncode, done.stdout), (0, 'trained 10 steps\n'), 'run')
    steps = case.truth()['steps']
    check_equal(len(steps), 11, 'steps')
    check(steps[4]['kernels'] == steps[5]['kernels'], 'steps differ')


def test_program_in_python_alone(case):
    done = subprocess.run(case.train_py(tools=None), capture_output=True, text=True,
                          env=case.environment())
    check_equal((done.returncode, done.stdout), (0, 'trained 10 steps\n'), 'run')
    check_equal(len(case.truth()['steps']), 11, 'steps')


def test_misspelt_fault(case):
    """A test with one would test nothing."""
    done = subprocess.run(case.train(tools=None), capture_output=True, text=True,
                          env=case.environment(faults='drpo=3'))
    check(done.returncode != 0 and 'drpo' in done.stderr, done)
