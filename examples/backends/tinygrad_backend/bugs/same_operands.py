"""A tensor divided by itself is 1, and minus itself 0, also where it is infinite or NaN."""

from tinygrad import Tensor

x = Tensor([float("inf"), float("nan")])
assert (x / x).isnan().all().item()
assert (x - x).isnan().all().item()
