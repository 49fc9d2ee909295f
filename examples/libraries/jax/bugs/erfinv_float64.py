"""`erfinv` of float64 is off by 50 000 representable numbers near 1."""

import math

import jax
from jax.scipy.special import erfinv

jax.config.update("jax_enable_x64", True)
x = 0.9999999357314016
y = float(erfinv(jax.numpy.asarray(x)))
assert abs(math.erfc(y) / (1 - x) - 1) < 1e-13
