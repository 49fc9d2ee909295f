"""`nan >= 1` is True: it is computed as the opposite of `nan < 1`."""

from tinygrad import Tensor

assert not (Tensor([float("nan")], device="CPU") >= 1).item()
