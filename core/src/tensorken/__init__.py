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
from tensorken.functions.arithmetic import (
    abs,
    absolute,
    add,
    ceil,
    clip,
    divide,
    floor,
    floor_divide,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    positive,
    pow,
    power,
    reciprocal,
    remainder,
    round,
    sign,
    square,
    subtract,
    true_divide,
    trunc,
)
from tensorken.functions.derivatives import (
    stop_gradient,
)
from tensorken.functions.elementary import (
    acos,
    acosh,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    erf,
    exp,
    exp2,
    expm1,
    hypot,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    relu,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
from tensorken.functions.logic import (
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    invert,
    isfinite,
    isinf,
    isnan,
    left_shift,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    right_shift,
    where,
)
from tensorken.functions.products import (
    dot,
    matmul,
)
from tensorken.functions.reductions import (
    argmax,
    argmin,
    cumsum,
    log_softmax,
    logsumexp,
    max,
    mean,
    min,
    softmax,
    sum,
)
from tensorken.functions.shaping import (
    astype,
    broadcast_to,
    concatenate,
    expand_dims,
    flip,
    pad,
    permute_dims,
    reshape,
    squeeze,
    stack,
    take,
    transpose,
)
from tensorken.functions.sorting import (
    argsort,
    sort,
    take_along_axis,
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
