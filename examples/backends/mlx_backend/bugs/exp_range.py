"""`exp` of a number that float32 can represent is infinite from 88.0006 on, and 0 below -88."""

import mlx.core as mx

assert mx.exp(mx.array([88.5])).item() < 3e38
assert mx.exp(mx.array([-88.01])).item() > 6e-39
