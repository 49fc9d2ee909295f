"""Neural networks for Tensorken: modules are trees of tensors.

So everything that the core does to functions and trees, it does to networks: derivatives, other backends.

>>> import tensorken as tk
>>> import tensorken_nn as nn
>>> model = nn.mlp((2, 8, 1), tk.tanh, key=tk.random.key(0))
>>> gradient = tk.grad(lambda model: model(tk.ones((3, 2))).sum())(model)
>>> gradient[2].bias.tolist()
[3.0]
"""

from tensorken_nn import checkpoints
from tensorken_nn.accumulation import accumulate
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
from tensorken_nn.checkpoints import CheckpointError
from tensorken_nn.clipping import clip_by_global_norm, clip_by_value, global_norm
from tensorken_nn.data import batches, hold_out, split
from tensorken_nn.initializers import (
    glorot_normal,
    glorot_uniform,
    he_normal,
    he_uniform,
    lecun_normal,
    lecun_uniform,
    orthogonal,
    truncated_normal,
    xavier_normal,
    xavier_uniform,
    zeros,
)
from tensorken_nn.interchange import load_json, save_json
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
from tensorken_nn.loader import DataLoader, Loader, Windows
from tensorken_nn.losses import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber,
    kl_divergence,
    l1,
    squared_error,
)
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
from tensorken_nn.prefetching import prefetch
from tensorken_nn.schedules import cosine, join, linear, staircase, warmup
from tensorken_nn.tables import Table, read_csv
from tensorken_nn.text import Vocabulary, read_text
from tensorken_nn.training import Epoch, Task, fit

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "BatchNorm",
    "CheckpointError",
    "DataLoader",
    "Dropout",
    "Embedding",
    "Epoch",
    "Flatten",
    "Function",
    "LayerNorm",
    "Linear",
    "Lion",
    "Loader",
    "Module",
    "MomentumSGD",
    "Optimizer",
    "RMSNorm",
    "RMSProp",
    "Residual",
    "Sequential",
    "Statistics",
    "Table",
    "Task",
    "Vocabulary",
    "Windows",
    "accumulate",
    "accuracy",
    "batches",
    "binary_cross_entropy_with_logits",
    "celu",
    "checkpoints",
    "clip_by_global_norm",
    "clip_by_value",
    "confusion",
    "correct",
    "cosine",
    "cross_entropy",
    "elu",
    "fit",
    "gelu",
    "global_norm",
    "glorot_normal",
    "glorot_uniform",
    "glu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "he_normal",
    "he_uniform",
    "hold_out",
    "huber",
    "join",
    "kl_divergence",
    "l1",
    "leaky_relu",
    "lecun_normal",
    "lecun_uniform",
    "linear",
    "load_json",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "mlp",
    "named_parameters",
    "only_matrices",
    "orthogonal",
    "prefetch",
    "read_csv",
    "read_text",
    "relu",
    "relu6",
    "save_json",
    "selu",
    "sigmoid",
    "silu",
    "size",
    "softmax",
    "softplus",
    "softsign",
    "split",
    "squared_error",
    "staircase",
    "static",
    "swish",
    "tanh",
    "truncated_normal",
    "warmup",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]
