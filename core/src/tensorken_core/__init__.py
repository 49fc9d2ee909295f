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
    from tensorken_core import errors as errors, tree as tree
    from tensorken_core.host.registry import (
        backends as backends,
        default_backend as default_backend,
        devices as devices,
        use_backend as use_backend,
    )
    from tensorken_core.language.diffable import Diffable as Diffable
    from tensorken_core.language.dtypes import (
        DType as DType,
        bool_ as bool_,
        float16 as float16,
        float32 as float32,
        float64 as float64,
        int32 as int32,
        int64 as int64,
    )
    from tensorken_core.language.interpreter import Interpreter as Interpreter
    from tensorken_core.language.op import OPS as OPS, Op as Op, register as register, run as run
    from tensorken_core.language.raw import RawTensor as RawTensor
    from tensorken_core.levels.batch import Batch as Batch
    from tensorken_core.levels.forward import Forward as Forward
    from tensorken_core.levels.reverse import Reverse as Reverse
    from tensorken_core.levels.trace import Trace as Trace
    from tensorken_core.program.program import Program as Program
    from tensorken_core.rewriting.fuse import Fuse as Fuse
    from tensorken_core.rewriting.shape_tracker import ShapeTracker as ShapeTracker
    from tensorken_core.rewriting.view import View as View
    from tensorken_core.tensor.level import (
        Level as Level,
        current_level as current_level,
        interpreter_below as interpreter_below,
        lifted as lifted,
    )
    from tensorken_core.tensor.tensor import Tensor as Tensor, result_at as result_at
    from tensorken_core.transforms.checkpoint import checkpoint as checkpoint
    from tensorken_core.transforms.custom_rules import custom_jvp as custom_jvp, custom_vjp as custom_vjp
    from tensorken_core.transforms.grad import (
        grad as grad,
        jvp as jvp,
        value_and_grad as value_and_grad,
        vjp as vjp,
    )
    from tensorken_core.transforms.jacobian import (
        hessian as hessian,
        jacfwd as jacfwd,
        jacrev as jacrev,
    )
    from tensorken_core.transforms.linearize import linearize as linearize
    from tensorken_core.transforms.vmap import vmap as vmap

_MODULES = {
    "host.registry": ("backends", "default_backend", "devices", "use_backend"),
    "language.diffable": ("Diffable",),
    "language.dtypes": ("DType", "bool_", "float16", "float32", "float64", "int32", "int64"),
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
"""For each module the public names that it defines."""

_PLACES = {name: module for module, names in _MODULES.items() for name in names}


def as_tensor(data: Any, dtype: Any = None, *, backend: Any = None) -> Tensor:
    """A tensor of a number or of nested sequences of numbers.

    Args:
        data: a number, or sequences of one length each, nested.
        dtype: of the result; by default float32 for floats, int32 for ints, bool for bools.
        backend: a name such as `"reference"`, or an interpreter; the default backend if None.

    Raises:
        ArgumentError, ShapeError: if the data are neither.

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
    module = _PLACES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    importlib.import_module(f"{__name__}.host.registry")  # which sets the default backend
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({"errors", "tree", "as_tensor", *_PLACES})
