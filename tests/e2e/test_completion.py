"""Command lines completed by real shells on a terminal, from gtrace's own tables."""

import os
import pty
import select
import shutil
import signal
import subprocess
import time

from harness import ROOT, TIMEOUT_S, Skip, check, check_equal, each

SCRIPTS = os.path.join(ROOT, 'cmd', 'completion')
SHELLS = {
    'bash': (['bash', '--norc', '--noprofile', '-i'], f'. {SCRIPTS}/gtrace.bash'),
    'zsh': (['zsh', '-f', '-i'], f'fpath=({SCRIPTS} $fpath); autoload -U compinit; compinit -u -D'),
}


class Shell:
    def __init__(self, case, argv):
        env = case.environment(env={'TERM': 'dumb', 'HOME': case.out, 'PATH': f'{case.build}:/usr/bin:/bin',
                                    'LC_ALL': 'C', 'INPUTRC': '/dev/null'})
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(case.out)
            os.execvpe(argv[0], argv, env)

    def type(self, text):
        os.write(self.master, text.encode())

    def expect(self, text):
        """What it prints until then."""
        seen = b''
        end = time.monotonic() + TIMEOUT_S
        while text.encode() not in seen:
            ready = select.select([self.master], [], [], max(0, end - time.monotonic()))[0]
            check(ready, 'no', repr(text), 'but', seen)
            seen += os.read(self.master, 4096)
        return seen.decode()

    def close(self):
        os.close(self.master)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


CASES = {
    'command': ('su', 'summary'),
    'option': ('run --step-sou', '--step-source'),
    'choice': ('run --step-source opt', 'optimizer'),
    'long_choice': ('run --step-source=opt', 'optimizer'),
    'choice_of_another_command': ('check --format js', 'json'),
    'directory': ('run -o direc', 'directory/'),
    'file': ('check some', 'some.json'),
    'command_to_trace': ('run --active 3 -- ls some', 'some.json'),
}


@each(**{f'{shell}_{name}': [shell, *case] for shell in SHELLS for name, case in CASES.items()})
def test_completion(case, name, typed, completed):
    argv, setup = SHELLS[name]
    if not shutil.which(argv[0]):
        raise Skip(f'no {name}')
    os.mkdir(os.path.join(case.out, 'directory'))
    open(os.path.join(case.out, 'some.json'), 'w').close()
    shell = Shell(case, argv)
    try:
        shell.type(f'{setup}; echo set-"up"\n')
        shell.expect('set-up')
        shell.type(f'gtrace {typed}\t')
        shell.expect(completed)
    finally:
        shell.close()


def complete(case, *words):
    """What bash offers for the last of these words, behind "gtrace"."""
    script = ('. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gtrace; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(['bash', '-c', script, 'bash', f'{SCRIPTS}/gtrace.bash', case.gtrace_path, *words],
                          capture_output=True, text=True, timeout=TIMEOUT_S, cwd=case.out,
                          env=case.environment(env={'PATH': '/usr/bin'}))
    check_equal(done.stderr, '', 'stderr')
    return done.stdout.split()


def test_what_bash_offers(case):
    commands = complete(case, '')
    check({'run', 'summary', 'check', 'cut', 'doctor'} <= set(commands), commands)
    check('self-test' not in commands, commands)
    check_equal(complete(case, '--v'), ['--version'], '--v')
    check_equal(complete(case, 'run', '--no-sh'), ['--no-shapes'], '--no-sh')
    check_equal(complete(case, 'run', '--then', '=', 's'), ['stop'], '--then=s')
    check_equal(complete(case, 'run', '-o', '/us'), ['/usr'], '-o /us')
    check_equal(complete(case, 'run', '--active', ''), [], '--active')
    check_equal(complete(case, 'run', '--force', 'setpri'), ['setpriv'], 'run --force setpri')
    check_equal(complete(case, 'run', 'ls', '/us'), ['/usr'], 'run ls /us')
    check_equal(complete(case, 'run', '--', 'ls', '--no-sh'), [], 'options of another program')
    check_equal(complete(case, 'doctor', 'x'), [], 'operands of doctor')
    check_equal(complete(case, 'nonsense', '--'), [], 'options of no command')
