"""`sign` of NaN is 0; the array API standard requires NaN."""

import mlx.core as mx

assert mx.isnan(mx.sign(mx.array(float("nan")))).item()
