"""A power of a negative number with a large even exponent is NaN."""

from tinygrad import Tensor

base, exponent = Tensor([-2.0], device="CPU"), Tensor([-3e38], device="CPU")
assert base.pow(exponent).item() == 0
