"""Neural networks for Tensorken: a layer is a function of its parameters, and parameters are trees of tensors.

So everything that the core does to functions and trees, it does to networks: derivatives, other backends.

>>> import random
>>> import tensorken as tk
>>> import tensorken_nn as nn
>>> model = nn.mlp((2, 8, 1), tk.tanh)
>>> parameters = model.init(random.Random(0))
>>> gradient = tk.grad(lambda p: model(p, tk.ones((3, 2))).sum())(parameters)
>>> gradient["1"]["b"].tolist()
[3.0]
"""

from tensorken_nn.data import batches, split
from tensorken_nn.initializers import he, zeros
from tensorken_nn.layers import Layer, Linear, Sequential, mlp, size
from tensorken_nn.losses import cross_entropy
from tensorken_nn.metrics import accuracy, confusion, correct
from tensorken_nn.optimizers import SGD, Adam, Optimizer
from tensorken_nn.schedules import linear
from tensorken_nn.training import Epoch, Task, fit

__all__ = [
    "SGD",
    "Adam",
    "Epoch",
    "Layer",
    "Linear",
    "Optimizer",
    "Sequential",
    "Task",
    "accuracy",
    "batches",
    "confusion",
    "correct",
    "cross_entropy",
    "fit",
    "he",
    "linear",
    "mlp",
    "size",
    "split",
    "zeros",
]
