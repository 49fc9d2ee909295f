"""`nextafter` of two subnormal numbers is the second one, since they compare as equal."""

import jax.numpy as jnp
import numpy as np

x, y = np.float32(1e-40), np.float32(1e-39)
assert np.asarray(jnp.nextafter(jnp.asarray(x), jnp.asarray(y))) == np.nextafter(x, y)
