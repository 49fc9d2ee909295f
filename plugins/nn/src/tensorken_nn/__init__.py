"""Neural networks for Tensorken. A module is a tree of tensors.
Every transform of functions and trees therefore applies to networks, on every backend.

>>> import tensorken as tk
>>> import tensorken_nn as nn
>>> model = nn.mlp((2, 8, 1), tk.tanh, key=tk.random.key(0))
>>> gradient = tk.grad(lambda model: model(tk.ones((3, 2))).sum())(model)
>>> gradient[2].bias.tolist()
[3.0]
"""

import sys as _sys
import typing as _typing

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
from tensorken_nn.clipping import clip_by_global_norm, clip_by_value, global_norm
from tensorken_nn.data import hold_out
from tensorken_nn.gpt import GPT, generate
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
    GRU,
    LSTM,
    RNN,
    AvgPool2d,
    BatchNorm,
    BatchStatistics,
    Cache,
    Conv2d,
    Dropout,
    Embedding,
    Flatten,
    GlobalAvgPool2d,
    GlobalMaxPool2d,
    LayerNorm,
    Linear,
    LSTMState,
    MaxPool2d,
    MultiHeadAttention,
    Residual,
    RMSNorm,
    Sequential,
    avg_pool2d,
    conv2d,
    max_pool2d,
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
from tensorken_nn.training import Learner, Progress, Record, Summary, Task, fit, gradient_step

if not _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """The error for an unknown name; for a name of another library it names the equivalent."""
        from tensorken.arrays.elsewhere.table import missing

        raise missing("module 'tensorken_nn'", "nn", name, _sys.modules[__name__])


__all__ = [
    "GPT",
    "GRU",
    "LSTM",
    "RNN",
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "AvgPool2d",
    "BatchNorm",
    "BatchStatistics",
    "Cache",
    "Conv2d",
    "DataLoader",
    "Dropout",
    "Embedding",
    "Flatten",
    "Function",
    "GlobalAvgPool2d",
    "GlobalMaxPool2d",
    "LSTMState",
    "LayerNorm",
    "Learner",
    "Linear",
    "Lion",
    "Loader",
    "MaxPool2d",
    "Module",
    "MomentumSGD",
    "MultiHeadAttention",
    "Optimizer",
    "Progress",
    "RMSNorm",
    "RMSProp",
    "Record",
    "Residual",
    "Sequential",
    "Summary",
    "Table",
    "Task",
    "Vocabulary",
    "Windows",
    "accumulate",
    "accuracy",
    "avg_pool2d",
    "binary_cross_entropy_with_logits",
    "celu",
    "checkpoints",
    "clip_by_global_norm",
    "clip_by_value",
    "confusion",
    "conv2d",
    "correct",
    "cosine",
    "cross_entropy",
    "elu",
    "fit",
    "gelu",
    "generate",
    "global_norm",
    "glorot_normal",
    "glorot_uniform",
    "glu",
    "gradient_step",
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
    "max_pool2d",
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
