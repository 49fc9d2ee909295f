"""`sinh` and `cosh` of float32 have lost 4 bits before they overflow."""

import math

import jax.numpy as jnp

x = float(jnp.float32(88.7219))
assert abs(float(jnp.sinh(x)) / math.sinh(x) - 1) < 1e-6
assert abs(float(jnp.cosh(x)) / math.cosh(x) - 1) < 1e-6
