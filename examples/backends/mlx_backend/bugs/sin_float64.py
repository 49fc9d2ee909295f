"""`sin` and `cos` of float64 have the digits of float32."""

import math

import mlx.core as mx

assert abs(mx.sin(mx.array(1.0, mx.float64)).item() - math.sin(1.0)) < 1e-14
assert abs(mx.cos(mx.array(1.0, mx.float64)).item() - math.cos(1.0)) < 1e-14
