"""Neural networks for Tensorken: modules are trees of tensors.

So everything that the core does to functions and trees, it does to networks: derivatives, other backends.

>>> import tensorken as tk
>>> import tensorken_nn as nn
>>> model = nn.mlp((2, 8, 1), tk.tanh, key=tk.random.key(0))
>>> gradient = tk.grad(lambda model: model(tk.ones((3, 2))).sum())(model)
>>> gradient[2].bias.tolist()
[3.0]
"""

from tensorken_nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softmax,
    softplus,
    softsign,
    swish,
    tanh,
)
from tensorken_nn.data import batches, split
from tensorken_nn.initializers import he_normal, lecun_normal, zeros
from tensorken_nn.layers import (
    BatchNorm,
    Dropout,
    Embedding,
    Flatten,
    LayerNorm,
    Linear,
    Residual,
    RMSNorm,
    Sequential,
    Statistics,
    mlp,
)
from tensorken_nn.losses import cross_entropy
from tensorken_nn.metrics import accuracy, confusion, correct
from tensorken_nn.module import Function, Module, named_parameters, size, static
from tensorken_nn.optimizers import (
    SGD,
    Adagrad,
    Adam,
    AdamW,
    Lion,
    MomentumSGD,
    Optimizer,
    RMSProp,
    only_matrices,
)
from tensorken_nn.schedules import cosine, join, linear, staircase, warmup
from tensorken_nn.training import Epoch, Task, fit

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "BatchNorm",
    "Dropout",
    "Embedding",
    "Epoch",
    "Flatten",
    "Function",
    "LayerNorm",
    "Linear",
    "Lion",
    "Module",
    "MomentumSGD",
    "Optimizer",
    "RMSNorm",
    "RMSProp",
    "Residual",
    "Sequential",
    "Statistics",
    "Task",
    "accuracy",
    "batches",
    "celu",
    "confusion",
    "correct",
    "cosine",
    "cross_entropy",
    "elu",
    "fit",
    "gelu",
    "glu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "he_normal",
    "join",
    "leaky_relu",
    "lecun_normal",
    "linear",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "mlp",
    "named_parameters",
    "only_matrices",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "size",
    "softmax",
    "softplus",
    "softsign",
    "split",
    "staircase",
    "static",
    "swish",
    "tanh",
    "warmup",
    "zeros",
]
