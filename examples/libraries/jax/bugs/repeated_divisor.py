"""A compiled quotient by one repeated number multiplies by its reciprocal, which is flushed to 0 if it is subnormal."""

import jax
import jax.numpy as jnp

x = jnp.full((2, 3), 3.4028235e38, "float32")
assert (jax.jit(lambda x, y: x / y)(x, x[0, 0]) == 1).all()
