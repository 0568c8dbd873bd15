"""Readers of traces that come from PyPI: a virtual environment in build/deps for each."""

import os
import subprocess
import sys


def install(name, *installs):
    """Its python, with what each of these lists of pip's arguments asks for; or None and why not."""
    directory = f'build/deps/{name}'
    python = f'{directory}/bin/python'
    ready = f'{directory}/ready'
    if os.path.exists(ready):
        return python, None
    pip = [python, '-m', 'pip', '--quiet', '--disable-pip-version-check', 'install']
    for command in [sys.executable, '-m', 'venv', '--clear', directory], *(pip + args for args in installs):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            last = done.stdout.strip().splitlines()[-1:]
            return None, last[0] if last else f'{command[0]} failed'
    open(ready, 'w').close()
    return python, None
