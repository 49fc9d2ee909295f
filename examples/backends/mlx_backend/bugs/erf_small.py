"""`erf` of small numbers is 0, or has few digits."""

import math

import mlx.core as mx

assert abs(mx.erf(mx.array(1.8e-7)).item() / math.erf(1.8e-7) - 1) < 1e-6
