"""A cast from float64 to float16 rounds twice, since it passes through float32."""

import torch

assert torch.tensor(1 + 2**-11 + 2**-40, dtype=torch.float64).half() == 1 + 2**-10
