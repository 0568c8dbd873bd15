#!/usr/bin/env python3
"""The steps of frameworks: fake ones of the shape that the hooks rely on, and those that the Python
of 'make torch' and those of GTRACE_TEST_TORCH (separated by colons) have, on the CPU.

usage: test_frameworks.py BUILD [PYTHON...]
"""

import ast
import gzip
import json
import os
import sys

import fake_torch
from fake_frameworks import NEW_LIGHTNING, FIT_NEW, PROGRAMS, TRANSFORMERS
from harness import HERE, Hook, Place, Skip, case, equal, main, run

REAL = os.path.join(os.path.dirname(HERE), 'gpu', 'frameworks')


def run_fake(hook, place, files, code, **env):
    for name, text in files.items():
        place.write(f'lib/{name}', text)
    script = place.write('script.py', code)
    return hook.run(place, script, path=[fake_torch.write(place, '2')], **env)


def fake(name):
    files, code, calls = PROGRAMS[name]

    def test(hook):
        with Place() as place:
            done = run_fake(hook, place, files, code)
            equal((done.seen(), done.calls), ((0, '', ''), calls))
            source = name.split('_')[0].replace('pytorch', 'lightning')
            equal({line.split()[1] for line in done.lines if line.startswith(('claim', 'mark'))},
                  {source})
    test.__name__ = 'steps_of_' + name
    case(test)


for NAME in PROGRAMS:
    fake(NAME)


@case
def every_module_that_is_waited_for_has_a_hook(hook):
    def names(file, kind):
        with open(f'{hook.folder}/{file}.py') as source:
            tree = ast.parse(source.read())
        return next({ast.literal_eval(key) for key in getattr(node.value, 'keys', None)
                     or node.value.elts}
                    for node in tree.body if isinstance(node, ast.Assign)
                    and node.targets[0].id == kind)
    equal(names('gtrace_hook', 'FRAMEWORKS'), names('gtrace_steps', 'HOOKS'))
    equal(names('gtrace_hook', 'TORCH'), names('gtrace_torch', 'HOOKS'))


@case
def actions_of_lightning_are_ranges(hook):
    with Place() as place:
        done = run_fake(hook, place, NEW_LIGHTNING, FIT_NEW + 'fit([1], 6)\n', FAKE_RANGES='1')
        equal(done.seen(), (0, '', ''))
        equal(done.calls, ['start', 'claim', 'start', *6 * ['push', 'pop'], 'mark'])
        assert 'push run_training_batch' in done.lines[3], done.lines[3]


@case
def frameworks_of_another_shape_are_told_once(hook):
    """A new version may lack what a hook needs, at its import or in a call."""
    with Place() as place:
        done = run_fake(hook, place, {**TRANSFORMERS, 'transformers/trainer_callback.py': ''},
                        'import transformers.trainer_callback\nprint("on")\n')
        equal((done.seen(), done.calls), ((0, 'on\n', ''), ['warn']))
        assert 'transformers.trainer_callback failed and is gone (AttributeError' in done.lines[0]
    files = {name: text.replace('.ready += 1', '.number = 1').replace('self.ready = self, 0',
                                                                      'self.number = self, 0')
             for name, text in NEW_LIGHTNING.items()}
    with Place() as place:
        done = run_fake(hook, place, files, FIT_NEW + '''
advance = Loop.advance
fit([], 1)
assert Loop.advance is advance.__wrapped__
''')
        equal((done.seen(), done.calls), ((0, '', ''), ['start', 'claim', 'warn', 'start']))
        assert '_TrainingEpochLoop.advance failed and is gone' in done.lines[2], done.lines


@case
def exceptions_of_the_program_pass(hook):
    with Place() as place:
        files, _, _ = PROGRAMS['megatron']
        done = run_fake(hook, place, files, '''
from megatron.training.training import train_step
def fail():
    raise KeyError(7)
for i in range(2):
    try:
        train_step(fail)
    except KeyError as error:
        assert error.args == (7,)
train_step(lambda: 5)
''')
        equal((done.seen(), done.calls), ((0, '', ''), ['start', 'claim', 'mark']))


@case
def untraced_frameworks_run_as_ever(hook):
    for name, (files, code, _) in PROGRAMS.items():
        with Place() as place:
            done = run_fake(hook, place, files, code, FAKE_TRACED='0')
            equal((name, done.seen(), set(done.calls)), (name, (0, '', ''), {'start'}))


@case
def what_the_user_chose_rules(hook):
    """The real library and command, on fake frameworks: which source it is, and of which step the
    last one in the trace is."""
    trainer = 'from transformers.trainer import Trainer\n'
    train = 'Trainer().train(10, 4)\n'
    wrapped = trainer + '''
import gtrace
from transformers.trainer_callback import CallbackHandler
end = CallbackHandler.on_step_end
def on_step_end(self, *args, **kwargs):
    gtrace.step()
    gtrace.step()
    return end(self, *args, **kwargs)
CallbackHandler.on_step_end = on_step_end
''' + train
    call = ['--step-call', 'transformers.trainer_callback:CallbackHandler.on_substep_end']
    for options, code, source, last in (
            ([], trainer + train, 'transformers', 10),
            (['--skip-first', '0', '--wait', '0'], trainer + train, 'transformers', 10),
            (['--step-source', 'framework'], trainer + train, 'transformers', 10),
            (['--step-source', 'optimizer'], trainer + train, 'optimizer', 10),
            ([], wrapped, 'api', 20),
            (['--step-source', 'framework'], wrapped, 'transformers', 10),
            (call, trainer + train, 'call', 30)):
        with Place() as place:
            for name, text in TRANSFORMERS.items():
                place.write(f'lib/{name}', text)
            done = run(place, [f'{hook.build}/gtrace', 'run', '--active', '100', *options, '--',
                               hook.python, place.write('it.py', code)],
                       {'GTRACE_INJECTION': f'{hook.build}/libgtrace-inject.so',
                        'PYTHONPATH': fake_torch.write(place, '2')})
            equal((options, done.status), (options, 0))
            with gzip.open(f'{place.path}/it-rank0.trace.json.gz') as file:
                trace = json.load(file)
            steps = [int(event['name'].partition('#')[2]) for event in trace['traceEvents']
                     if event['name'].startswith('ProfilerStep#')]
            equal((options, trace['gtrace']['step_source'], max(steps)), (options, source, last))


# ---- the real ones ------------------------------------------------------------------------------

STEPS = 10


def has(place, python, module):
    return not run(place, [python, '-c', f'import importlib.util as u, sys; sys.exit(not u.find_spec({module!r}))']).status


def real(script, *options, needs='torch', source, gtrace=()):
    def test(hook):
        tried = False
        for python in hook.pythons:
            with Place() as place:
                if not has(place, python, needs):
                    continue
                tried = True
                argv = [python, f'{REAL}/{script}.py', str(STEPS), *options]
                done = run(place, [f'{hook.build}/gtrace', 'run', '-q', '--active', '20',
                                   '--name', 'it', *gtrace, '--', *argv],
                           {'HOME': place.path, 'CUDA_VISIBLE_DEVICES': '', 'HF_HUB_OFFLINE': '1',
                            'OMP_NUM_THREADS': '1', 'GTRACE_INJECTION': f'{hook.build}/libgtrace-inject.so'})
                equal((done.status, done.err if done.status else ''), (0, ''))
                assert f'steps {STEPS}' in done.out.splitlines(), done.out
                with gzip.open(f'{place.path}/it-rank0.trace.json.gz') as file:
                    trace = json.load(file)
                equal(trace['gtrace']['step_source'], source)
                names = {event['name'] for event in trace['traceEvents']}
                # the first mark ends step 0, the last one begins a step that never ends
                first = 3
                equal({name for name in names if name.startswith('ProfilerStep#')},
                      {f'ProfilerStep#{step}' for step in range(first, STEPS + 1)})
        if not tried:
            raise Skip(f'no Python here has {needs}')
    test.__name__ = '_'.join(['steps_of_real', script, *options])
    case(test)


real('trainer', needs='transformers', source='transformers')
real('fit', 'accumulate', needs='lightning', source='lightning')
real('fit', 'manual', needs='lightning', source='lightning')
real('accelerated', needs='accelerate', source='optimizer')
real('diffusion', 'pipeline', needs='diffusers', source='diffusers')
real('diffusion', 'loop', needs='diffusers', source='diffusers')
real('denoise', 'train', source='optimizer')
real('denoise', 'sample', source='call', gtrace=['--step-call', '__main__:denoise'])
real('denoise', 'ranges', source='nvtx', gtrace=['--step-range', '^denoise [0-9]+$'])
real('jax_steps', needs='jax', source='jax')


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    HOOK = Hook(sys.argv[1])
    HOOK.build = os.path.abspath(sys.argv[1])
    HOOK.pythons = [python for python in sys.argv[2:] or [
        f'{HERE}/../../build/deps/torch/bin/python', *os.environ.get('GTRACE_TEST_TORCH', '').split(':')]
        if python and os.path.exists(python)]
    sys.exit(main(HOOK))
