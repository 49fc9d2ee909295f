"""`log` of a negative subnormal number is minus infinity instead of NaN."""

import math

from tinygrad import Tensor

assert math.isnan(Tensor([-1.5e-39], device="CPU").log().item())
