"""`erfinv` of float64 has the digits of float32."""

import math

import mlx.core as mx

assert abs(math.erf(mx.erfinv(mx.array(0.5, mx.float64)).item()) - 0.5) < 1e-14
