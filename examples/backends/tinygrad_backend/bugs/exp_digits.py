"""`exp` of float32 has 18 correct bits for large operands, instead of 24."""

import math

from tinygrad import Tensor

x = 88.70923614501953
assert abs(Tensor([x], device="CPU").exp().item() / math.exp(x) - 1) < 1e-6
