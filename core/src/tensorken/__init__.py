"""Tensorken: a small language of tensor operations, and its interpreters.

>>> import tensorken as tk
>>> tk.grad(lambda x: (tk.sin(x) * x).sum())(tk.tensor([0.0, 1.0])).tolist()
[0.0, 1.3817732334136963]
"""

from tensorken import errors, testing, tree
from tensorken.creation import (
    arange,
    eye,
    full,
    full_like,
    linspace,
    new,
    ones,
    ones_like,
    randn,
    scalar,
    symbol,
    tensor,
    zeros,
    zeros_like,
)
from tensorken.custom import elementwise
from tensorken.functions import (
    abs,
    add,
    argmax,
    astype,
    broadcast_to,
    concatenate,
    cos,
    cumsum,
    divide,
    dot,
    equal,
    exp,
    expand_dims,
    expm1,
    flip,
    floor,
    less,
    log,
    log1p,
    log_softmax,
    logsumexp,
    matmul,
    max,
    maximum,
    mean,
    min,
    minimum,
    multiply,
    negative,
    pad,
    permute_dims,
    power,
    reciprocal,
    relu,
    reshape,
    sigmoid,
    sign,
    sin,
    softmax,
    sqrt,
    square,
    squeeze,
    stack,
    stop_gradient,
    subtract,
    sum,
    take,
    tan,
    tanh,
    transpose,
    where,
)
from tensorken.fuse import Fuse
from tensorken.jacobians import hessian, hvp, jacfwd, jacrev
from tensorken.registry import backends, default_backend, devices, use_backend
from tensorken.shape_tracker import ShapeTracker
from tensorken.spec.dtypes import DType, bool_, float16, float32, float64, int32, int64
from tensorken.tensor import Tensor
from tensorken.transforms import derivative, elementwise_grad, grad, jvp, value_and_grad, vjp

bool = bool_
concat = concatenate
