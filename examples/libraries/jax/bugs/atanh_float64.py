"""`arctanh` of float64 is off by 64 representable numbers."""

import math

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
x = 0.4040061958189527
assert abs(float(jnp.arctanh(jnp.asarray(x))) / math.atanh(x) - 1) < 2e-15
