"""`max` ignores NaN, and so does `maximum`."""

import math

from tinygrad import Tensor

assert math.isnan(Tensor([1.0, math.nan], device="CPU").max().item())
