"""`sign` of NaN is 1; the array API standard requires NaN."""

import math

from tinygrad import Tensor

assert math.isnan(Tensor([math.nan], device="CPU").sign().item())
