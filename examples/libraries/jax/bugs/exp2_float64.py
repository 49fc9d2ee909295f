"""`exp2` of float64 has lost 9 bits near the largest exponent, and `exp2(12)` is not 4096."""

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
assert jnp.exp2(jnp.asarray(12.0)) == 4096
