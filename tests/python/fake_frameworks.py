"""Frameworks reduced to the shapes that the hooks rely on; PROGRAMS has files, a program that uses
them, and what is called in it."""

TRANSFORMERS = {
    'transformers/__init__.py': '',
    'transformers/trainer_callback.py': '''
class CallbackHandler:
    def on_train_begin(self, args, state, control):
        return control
    def on_step_end(self, args, state, control, **kwargs):
        return control
    def on_substep_end(self, args, state, control):
        return control
''',
    'transformers/trainer.py': '''
from transformers.trainer_callback import CallbackHandler
from torch.optim import SGD
class Trainer:
    def train(self, steps, accumulate):
        handler, optimizer = CallbackHandler(), SGD()
        assert handler.on_train_begin(1, 2, control=7) == 7
        for batch in range(steps * accumulate):
            if (batch + 1) % accumulate:
                handler.on_substep_end(1, 2, 3)
            else:
                optimizer.step()
                assert handler.on_step_end(1, 2, 3, more=4) == 3
'''}

LOOP = '''
class Progress:
    def __init__(self):
        self.current, self.ready = self, 0
class {cls}:
    def __init__(self, trainer):
        self.trainer, self.batch_progress, self.batches = trainer, Progress(), 0
    def advance(self, data_fetcher):
        if self.batches == 6:
            raise StopIteration
        self.batches += 1
        self.batch_progress.current.ready += 1
        with self.trainer.profiler.profile("run_training_batch"):
            self.trainer.batch(self.batches)
'''

PROFILER = '''
from contextlib import contextmanager
class Profiler:
    @contextmanager
    def profile(self, action_name):
        yield action_name
'''

FIT = '''
from {0}.{1} import {2} as Loop
from {0}.profilers.profiler import Profiler
class Trainer:
    profiler, global_step = Profiler(), 0
    def __init__(self, optimizers, every):
        self.optimizers, self.every = optimizers, every
    def batch(self, number):
        if self.optimizers and number % self.every == 0:
            self.global_step += len(self.optimizers)
def fit(*how):
    loop = Loop(Trainer(*how))
    try:
        while True:
            loop.advance(None)
    except StopIteration:
        pass
'''


def lightning(package, module, cls):
    files = {f'{package}/{module.replace(".", "/")}.py': LOOP.format(cls=cls),
             f'{package}/profilers/profiler.py': PROFILER}
    return {**files, **{f'{"/".join(path.split("/")[:depth])}/__init__.py': ''
                        for path in files for depth in range(1, path.count('/') + 1)}}


ENGINE = '''
class DeepSpeedEngine:
    global_steps = micro_steps = 0
    def step(self, lr_kwargs=None):
        self.micro_steps += 1
        if self.micro_steps % 4 == 0:
            self.global_steps += 1
'''

PIPELINE = '''
from deepspeed.runtime.engine import DeepSpeedEngine
class PipelineEngine(DeepSpeedEngine):
    def train_batch(self, data_iter=None):
        for i in range(4):
            self.step()
        return "loss"
'''

MEGATRON = '''
def train_step(forward_step_func, *args):
    return forward_step_func(), 0
def train(iterations):
    for i in range(iterations):
        assert train_step(lambda: 5) == (5, 0)
'''

SCHEDULERS = {
    'diffusers/__init__.py': '',
    'diffusers/schedulers/__init__.py': '',
    'diffusers/schedulers/scheduling_utils.py': '''
class SchedulerMixin:
    pass
''',
    'diffusers/schedulers/ddim.py': '''
from diffusers.schedulers.scheduling_utils import SchedulerMixin
class DDIMScheduler(SchedulerMixin):
    def step(self, output, t, eta=0):
        return output
class DerivedScheduler(DDIMScheduler):
    def step(self, output, t):
        return super().step(output, t)
''',
}

RUNNER = '''
class Work:
    def __init__(self, tokens):
        self.total_num_scheduled_tokens = tokens
class GPUModelRunner:
    def execute_model(self, scheduler_output, intermediate_tensors=None):
        return scheduler_output
class CPUModelRunner(GPUModelRunner):
    pass
'''

MODEL_RUNNER = '''
class ModelRunner:
    draft = None
    def forward(self, forward_batch):
        if self.draft:
            self.draft.forward(forward_batch)
        return forward_batch
'''

JAX = '''
class TraceMe:
    def __enter__(self):
        return self
    def __exit__(self, *error):
        return False
class TraceAnnotation(TraceMe):
    def __init__(self, name, **kwargs):
        self.name = name
class StepTraceAnnotation(TraceAnnotation):
    def __init__(self, name, **kwargs):
        super().__init__(name, _r=1, **kwargs)
'''


def package(path, text):
    parts = path.split('/')
    return {path: text, **{f'{"/".join(parts[:depth])}/__init__.py': ''
                           for depth in range(1, len(parts))}}


NEW_LIGHTNING = lightning('lightning/pytorch', 'loops.training_epoch_loop', '_TrainingEpochLoop')
FIT_NEW = FIT.format('lightning.pytorch', 'loops.training_epoch_loop', '_TrainingEpochLoop')

PROGRAMS = {
    'transformers': (TRANSFORMERS, '''
from transformers.trainer import Trainer
Trainer().train(3, 4)
''', ['start', 'claim', *3 * ['optimizer', 'mark']]),
    'lightning': (NEW_LIGHTNING, FIT_NEW + 'fit([1], 3)\n', ['start', 'claim', 'start', *2 * ['mark']]),
    'lightning_with_two_optimizers': (NEW_LIGHTNING, FIT_NEW + 'fit([1, 2], 2)\n',
                                      ['start', 'claim', 'start', *3 * ['mark']]),
    'lightning_without_optimizer': (NEW_LIGHTNING, FIT_NEW + 'fit([], 1)\n',
                                    ['start', 'claim', 'start', *6 * ['mark']]),
    'pytorch_lightning': (
        lightning('pytorch_lightning', 'loops.training_epoch_loop', '_TrainingEpochLoop'),
        FIT.format('pytorch_lightning', 'loops.training_epoch_loop', '_TrainingEpochLoop')
        + 'fit([1], 3)\n', ['start', 'claim', 'start', *2 * ['mark']]),
    'pytorch_lightning_1': (
        lightning('pytorch_lightning', 'loops.epoch.training_epoch_loop', 'TrainingEpochLoop'),
        FIT.format('pytorch_lightning', 'loops.epoch.training_epoch_loop', 'TrainingEpochLoop')
        + 'fit([1], 3)\n', ['start', 'claim', 'start', *2 * ['mark']]),
    'deepspeed': (package('deepspeed/runtime/engine.py', ENGINE), '''
from deepspeed.runtime.engine import DeepSpeedEngine
engine = DeepSpeedEngine()
for batch in range(12):
    engine.step()
''', ['start', 'claim', *3 * ['mark']]),
    'deepspeed_pipeline': ({**package('deepspeed/runtime/engine.py', ENGINE),
                            **package('deepspeed/runtime/pipe/engine.py', PIPELINE)}, '''
from deepspeed.runtime.pipe.engine import PipelineEngine
engine = PipelineEngine()
for batch in range(3):
    assert engine.train_batch() == "loss"
''', ['start', 'claim', *3 * ['mark']]),
    'megatron': (package('megatron/training/training.py', MEGATRON), '''
from megatron.training.training import train
train(3)
''', ['start', 'claim', *3 * ['mark']]),
    'megatron_before_it_was_a_package': (package('megatron/training.py', MEGATRON), '''
from megatron.training import train
train(3)
''', ['start', 'claim', *3 * ['mark']]),
    'megatron_that_takes_it_from_its_module': (
        {**package('megatron/training/training.py', MEGATRON),
         'megatron/training/__init__.py': 'from megatron.training.training import train_step\n'}, '''
from megatron.training import train_step
assert train_step(lambda: 5) == (5, 0)
''', ['start', 'claim', 'mark']),
    'diffusers': (SCHEDULERS, '''
import inspect
from diffusers.schedulers.ddim import DDIMScheduler, DerivedScheduler
class Mine(DDIMScheduler):
    def step(self, output, t):
        return 3
assert "eta" in inspect.signature(DDIMScheduler().step).parameters
for scheduler in DDIMScheduler(), DerivedScheduler(), Mine():
    assert scheduler.step(3, 4) == 3
''', ['start', 'claim', *3 * ['mark']]),
    'vllm': (package('vllm/v1/worker/gpu_model_runner.py', RUNNER), '''
from vllm.v1.worker.gpu_model_runner import CPUModelRunner, Work
runner = CPUModelRunner()
for tokens in 5, 0, 1, 1:
    assert runner.execute_model(Work(tokens)).total_num_scheduled_tokens == tokens
''', ['start', 'claim', *3 * ['mark']]),
    'sglang_with_a_draft_model': (package('sglang/srt/model_executor/model_runner.py',
                                          MODEL_RUNNER), '''
from sglang.srt.model_executor.model_runner import ModelRunner
target, draft = ModelRunner(), ModelRunner()
for batch in range(3):
    assert target.forward(batch) == batch
    draft.forward(batch)
target = ModelRunner()
target.draft = draft
target.forward(0)
''', ['start', 'claim', *4 * ['mark']]),
    'jax': (package('jax/_src/profiler.py', JAX), '''
from jax._src.profiler import StepTraceAnnotation, TraceAnnotation
for i in range(3):
    with StepTraceAnnotation("train", step_num=i):
        with TraceAnnotation("part"):
            pass
''', ['start', 'claim', *3 * ['mark']]),
}
