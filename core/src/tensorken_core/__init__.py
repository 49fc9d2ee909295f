"""The minimal core: the language of tensor ops, its levels and transforms, rewriting, programs, and the plugin host.

The public names are loaded when they are first used, so a backend or a command that imports one module of core does not
load the others.

>>> import tensorken_core as core
>>> with core.use_backend("reference"):
...     core.grad(lambda x: (x.sin() * x).sum())(core.as_tensor([0.0, 1.0])).tolist()
[0.0, 1.3817732334136963]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorken_core import errors, tree
    from tensorken_core.host.registry import backends, default_backend, devices, use_backend
    from tensorken_core.language.diffable import Diffable
    from tensorken_core.language.dtypes import (
        DType,
        bfloat16,
        bool_,
        float16,
        float32,
        float64,
        int8,
        int16,
        int32,
        int64,
        uint8,
        uint16,
        uint32,
        uint64,
    )
    from tensorken_core.language.interpreter import Interpreter
    from tensorken_core.language.op import OPS, Op, register, run
    from tensorken_core.language.raw import RawTensor
    from tensorken_core.levels.batch import Batch
    from tensorken_core.levels.forward import Forward
    from tensorken_core.levels.reverse import Reverse
    from tensorken_core.levels.trace import Trace
    from tensorken_core.program.program import Program
    from tensorken_core.rewriting.fuse import Fuse
    from tensorken_core.rewriting.shape_tracker import ShapeTracker
    from tensorken_core.rewriting.view import View
    from tensorken_core.tensor.level import Level, current_level, interpreter_below, lifted
    from tensorken_core.tensor.tensor import Tensor, result_at
    from tensorken_core.transforms.checkpoint import checkpoint
    from tensorken_core.transforms.custom_rules import custom_jvp, custom_vjp
    from tensorken_core.transforms.grad import grad, jvp, value_and_grad, vjp
    from tensorken_core.transforms.jacobian import hessian, jacfwd, jacrev
    from tensorken_core.transforms.linearize import linearize
    from tensorken_core.transforms.vmap import vmap

__all__ = ["OPS", "Batch", "DType", "Diffable", "Forward", "Fuse", "Interpreter", "Level", "Op"]
__all__ += ["Program", "RawTensor", "Reverse", "ShapeTracker", "Tensor", "Trace", "View"]
__all__ += ["as_tensor", "backends", "bfloat16", "bool_", "checkpoint", "current_level", "custom_jvp"]
__all__ += ["custom_vjp", "default_backend", "devices", "errors", "float16", "float32", "float64"]
__all__ += ["grad", "hessian", "int8", "int16", "int32", "int64", "interpreter_below"]
__all__ += ["jacfwd", "jacrev", "jvp"]
__all__ += ["lifted", "linearize", "register", "result_at", "run", "tree", "uint8", "uint16"]
__all__ += ["uint32", "uint64", "use_backend"]
__all__ += ["value_and_grad", "vjp", "vmap"]

_MODULES = {
    "host.registry": ("backends", "default_backend", "devices", "use_backend"),
    "language.diffable": ("Diffable",),
    "language.dtypes": (
        *("DType", "bfloat16", "bool_", "float16", "float32", "float64", "int8", "int16", "int32"),
        *("int64", "uint8", "uint16", "uint32", "uint64"),
    ),
    "language.interpreter": ("Interpreter",),
    "language.op": ("OPS", "Op", "register", "run"),
    "language.raw": ("RawTensor",),
    "levels.batch": ("Batch",),
    "levels.forward": ("Forward",),
    "levels.reverse": ("Reverse",),
    "levels.trace": ("Trace",),
    "program.program": ("Program",),
    "rewriting.fuse": ("Fuse",),
    "rewriting.shape_tracker": ("ShapeTracker",),
    "rewriting.view": ("View",),
    "tensor.level": ("Level", "current_level", "interpreter_below", "lifted"),
    "tensor.tensor": ("Tensor", "result_at"),
    "transforms.checkpoint": ("checkpoint",),
    "transforms.custom_rules": ("custom_jvp", "custom_vjp"),
    "transforms.grad": ("grad", "jvp", "value_and_grad", "vjp"),
    "transforms.jacobian": ("hessian", "jacfwd", "jacrev"),
    "transforms.linearize": ("linearize",),
    "transforms.vmap": ("vmap",),
}
"""The public names of each module."""

_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def as_tensor(data: Any, dtype: Any = None, *, backend: Any = None) -> Tensor:
    """A tensor of a number or of nested sequences of numbers.

    Args:
        data: a number, or nested sequences of numbers that are not ragged.
        dtype: of the result; by default float32 for floats, int32 for ints, bool for bools.
        backend: a name such as `"reference"`, or an interpreter; the default backend if None.

    Raises:
        ArgumentError, ShapeError: if the data are anything else, or ragged.

    >>> import tensorken_core as core
    >>> core.as_tensor([[1, 2], [3, 4]], backend="reference").shape
    (2, 2)
    """
    from tensorken_core.host.registry import resolve
    from tensorken_core.language.dtypes import as_dtype
    from tensorken_core.tensor.tensor import Tensor

    return Tensor.from_numbers(resolve(backend), data, None if dtype is None else as_dtype(dtype))


def __getattr__(name: str) -> Any:
    if name in ("errors", "tree"):
        return importlib.import_module(f"{__name__}.{name}")
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    importlib.import_module(f"{__name__}.host.registry")  # sets the default backend
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
