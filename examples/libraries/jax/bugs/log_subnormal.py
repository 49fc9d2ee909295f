"""The logarithm of a subnormal number is neither that of the number, -92.1, nor that of 0."""

import jax.numpy as jnp

y = jnp.log(jnp.full(3, 1e-40, "float32"))[0]
assert abs(y + 92.1034) < 0.001 or y == -jnp.inf
