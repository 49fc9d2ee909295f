"""The square root of eight float64 is not correctly rounded."""

import math

import torch

x = 0.5720397101981094
assert torch.sqrt(torch.full((8,), x, dtype=torch.float64))[0].item() == math.sqrt(x)
