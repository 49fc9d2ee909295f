"""`log_softmax` rounds the logarithm of the sum before it subtracts, so that a result near 0 has three digits."""

import torch

x = torch.tensor([13.0, 0.0, -1.0], dtype=torch.float64)
y, z = torch.log_softmax(x, 0)[0], torch.log_softmax(x.float(), 0)[0]
assert abs(z / y - 1) < 1e-5
