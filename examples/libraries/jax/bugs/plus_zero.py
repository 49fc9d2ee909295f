"""A compiled sum with 0.0 is taken for its other operand, so -0.0 + 0.0 is -0.0."""

import jax
import jax.numpy as jnp

assert not jnp.signbit(jax.jit(lambda x: x + 0.0)(jnp.float32(-0.0)))
