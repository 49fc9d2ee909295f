"""A sum without terms is garbage: `mx.sum` reads memory behind an empty array whose shape numpy made."""

import mlx.core as mx
import numpy as np

x = mx.array(np.zeros(0, np.float32).reshape(2, 3, 0))
assert mx.sum(x, axis=(0, 2)).tolist() == [0.0, 0.0, 0.0]
