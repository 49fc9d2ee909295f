"""A cast from float64 to float16 rounds twice, since it passes through float32."""

import mlx.core as mx
import numpy as np

x = 0.7175292968645586
assert mx.array(x, mx.float64).astype(mx.float16).item() == np.float16(x)
