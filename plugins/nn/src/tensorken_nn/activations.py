"""Activation functions, which are functions of `tensorken`; four have PyTorch's names here.

Values and derivatives agree with PyTorch, also at kinks.
"""

from __future__ import annotations

from tensorken import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid as hardsigmoid,
    hard_swish as hardswish,
    hard_tanh as hardtanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign as softsign,
    softmax,
    softplus,
    swish,
    tanh,
)

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "softsign",
    "swish",
    "tanh",
]
