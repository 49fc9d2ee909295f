"""`exp` of float64 has the digits and the range of float32."""

import math

import mlx.core as mx

assert abs(mx.exp(mx.array(1.0, mx.float64)).item() - math.e) < 1e-14
assert mx.exp(mx.array(100.0, mx.float64)).item() < 3e43
