"""`sin` loses digits near multiples of pi: here it has four."""

import math

import mlx.core as mx

x = -8333995.0
assert abs(mx.sin(mx.array(x)).item() / math.sin(x) - 1) < 1e-6
