"""`log1p` of float64 is off by 79 representable numbers."""

import math

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
x = -0.40676366827823895
assert abs(float(jnp.log1p(jnp.asarray(x))) / math.log1p(x) - 1) < 2e-15
