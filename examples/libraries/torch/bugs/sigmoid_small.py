"""`sigmoid` of eight numbers below -88.4 is 0; the results are representable down to -103."""

import torch

assert torch.sigmoid(torch.full((8,), -88.8))[0] > 2e-39
