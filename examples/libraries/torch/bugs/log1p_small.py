"""`log1p` of the smallest negative number is 0; it is the number itself."""

import torch

x = torch.tensor(-1.4e-45)
assert torch.log1p(x) == x
