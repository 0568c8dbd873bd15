"""A jitted training step under JAX's own step annotation, without PyTorch.

usage: jax_steps.py [STEPS]
"""
import sys

import jax
import jax.numpy as jnp

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 10


@jax.jit
def train_step(weights, batch):
    loss = lambda w: jnp.square(jnp.tanh(batch @ w)).mean()
    return weights - 0.1 * jax.grad(loss)(weights)


weights = jnp.ones((64, 64))
for step in range(STEPS):
    with jax.profiler.StepTraceAnnotation('train', step_num=step):
        weights = train_step(weights, jnp.ones((32, 64)))
weights.block_until_ready()
print('steps', STEPS)
