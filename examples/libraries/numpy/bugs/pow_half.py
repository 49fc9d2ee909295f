"""A power with one repeated exponent of 0.5 is a square root: of -0.0 it is -0.0, and of -inf NaN, for 0 and inf."""

import numpy as np

x, half = np.array([-0.0, -np.inf]), np.array([0.5, 0.5])
assert np.array_equal(np.power(x, half), [0, np.inf])
assert np.array_equal(np.power(x, np.broadcast_to(0.5, 2)), np.power(x, half))
