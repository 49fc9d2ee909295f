"""A function of `vectorize` that was called with floats computes int64 in float64, to which numpy casts it."""

import numpy as np
from numba import vectorize

add = vectorize(lambda a, b: a + b)
add(1.0, 2.0)
assert int(add(np.int64(2**53), np.int64(1))) == 2**53 + 1
