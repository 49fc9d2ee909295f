"""`sign` of NaN is 0; the array API standard requires NaN."""

import torch

assert torch.sign(torch.tensor(float("nan"))).isnan()
