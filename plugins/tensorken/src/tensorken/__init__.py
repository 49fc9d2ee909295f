"""Tensors with numpy's names, their transforms, and compiled programs, on any backend.

>>> import tensorken as tk
>>> tk.grad(lambda x: (tk.sin(x) * x).sum())(tk.tensor([0.0, 1.0])).tolist()
[0.0, 1.3817732334136963]
"""

from __future__ import annotations

import importlib as _importlib
import inspect as _inspect
import os as _os
import typing as _typing

from tensorken import (
    ops as _ops,  # noqa: F401 -- registers ops
    tree as tree,
)
from tensorken.array_like import *
from tensorken.arrays import methods as _methods  # noqa: F401 -- attaches methods to Tensor
from tensorken.arrays.creation import *
from tensorken.arrays.display.options import *
from tensorken.arrays.elsewhere import methods as _methods_elsewhere
from tensorken.arrays.functions.arithmetic import *
from tensorken.arrays.functions.broadcasting import *
from tensorken.arrays.functions.complex_parts import *
from tensorken.arrays.functions.constants import *
from tensorken.arrays.functions.convolution import *
from tensorken.arrays.functions.counting import *
from tensorken.arrays.functions.cumulative import *
from tensorken.arrays.functions.diagonals import *
from tensorken.arrays.functions.editing import *
from tensorken.arrays.functions.einsum import *
from tensorken.arrays.functions.elementary import *
from tensorken.arrays.functions.floats import *
from tensorken.arrays.functions.grids import *
from tensorken.arrays.functions.interchange import *
from tensorken.arrays.functions.joining import *
from tensorken.arrays.functions.logic import *
from tensorken.arrays.functions.placement import *
from tensorken.arrays.functions.products import *
from tensorken.arrays.functions.promotion import *
from tensorken.arrays.functions.ranges import *
from tensorken.arrays.functions.reductions import *
from tensorken.arrays.functions.reordering import *
from tensorken.arrays.functions.repeating import *
from tensorken.arrays.functions.searching import *
from tensorken.arrays.functions.sets import *
from tensorken.arrays.functions.shaping import *
from tensorken.arrays.functions.sorting import *
from tensorken.arrays.functions.statistics import *
from tensorken.arrays.functions.stop_gradient import *
from tensorken.arrays.functions.strides import *
from tensorken.arrays.indexing import s_ as s_
from tensorken.arrays.namespace import *
from tensorken.complex_numbers import rules as _rules  # noqa: F401 -- complex tensors
from tensorken.derivatives import *
from tensorken_core import errors as errors
from tensorken_core.host.registry import (
    backends as backends,
    default_backend as default_backend,
    devices as devices,
    use_backend as use_backend,
)
from tensorken_core.language.dtypes import (
    DType as DType,
    bfloat16 as bfloat16,
    bool_ as bool_,
    complex64 as complex64,
    complex128 as complex128,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from tensorken_core.language.op import LAZY_OPS as _LAZY_OPS
from tensorken_core.tensor.tensor import Tensor as Tensor
from tensorken_core.transforms.grad import *
from tensorken_core.transforms.jacobian import *
from tensorken_core.transforms.vmap import *

if _typing.TYPE_CHECKING:
    from tensorken import (
        debug as debug,
        distributed as distributed,
        fft as fft,
        linalg as linalg,
        programs as programs,
        random as random,
        special as special,
        testing as testing,
    )
    from tensorken.arrays.functions.activations import *
    from tensorken.arrays.functions.bins import *
    from tensorken.arrays.functions.bits import *
    from tensorken.arrays.functions.blocks import *
    from tensorken.arrays.functions.choices import *
    from tensorken.arrays.functions.covariances import *
    from tensorken.arrays.functions.files import *
    from tensorken.arrays.functions.float_parts import *
    from tensorken.arrays.functions.index_vectors import *
    from tensorken.arrays.functions.integers import *
    from tensorken.arrays.functions.mapping import *
    from tensorken.arrays.functions.nans import *
    from tensorken.arrays.functions.orders import *
    from tensorken.arrays.functions.polynomials import *
    from tensorken.arrays.functions.running_extremes import *
    from tensorken.arrays.functions.set_operations import *
    from tensorken.arrays.functions.shape_queries import *
    from tensorken.arrays.functions.signals import *
    from tensorken.arrays.functions.windows import *
    from tensorken.callbacks import *
    from tensorken.collectives import *
    from tensorken.compilation.eager import *
    from tensorken.compilation.jit import *
    from tensorken.control_flow import *
    from tensorken.debugging import *
    from tensorken.distributed.spread import *
    from tensorken.lazy.interpreter import Lazy as Lazy
    from tensorken.linalg import norm as norm
    from tensorken.programs import Program as Program
    from tensorken.programs.trace import *
    from tensorken.special import i0 as i0
    from tensorken_core.rewriting.fuse import Fuse as Fuse
    from tensorken_core.rewriting.shape_tracker import ShapeTracker as ShapeTracker
    from tensorken_core.transforms.checkpoint import *
    from tensorken_core.transforms.custom_rules import *
    from tensorken_core.transforms.linearize import *

    __version__: str

bool = bool_

if _os.environ.get("TENSORKEN_DEBUG_NANS"):
    _importlib.import_module("tensorken.debugging")  # enables the check

_LATER = {
    "tensorken.arrays.functions.activations": (
        "celu",
        "elu",
        "gelu",
        "glu",
        "hard_sigmoid",
        "hard_silu",
        "hard_swish",
        "hard_tanh",
        "leaky_relu",
        "log_sigmoid",
        "mish",
        "relu6",
        "selu",
        "silu",
        "soft_sign",
        "squareplus",
        "swish",
    ),
    "tensorken.arrays.functions.bins": ("digitize", "histogram2d", "histogram_bin_edges", "histogramdd"),
    "tensorken.arrays.functions.bits": ("packbits", "unpackbits"),
    "tensorken.arrays.functions.blocks": (
        "block",
        "c_",
        "ediff1d",
        "fill_diagonal",
        "r_",
        "resize",
        "trim_zeros",
    ),
    "tensorken.arrays.functions.choices": ("choose", "compress", "extract", "piecewise", "select"),
    "tensorken.arrays.functions.covariances": ("corrcoef", "cov"),
    "tensorken.arrays.functions.files": ("frombuffer", "load", "save", "savez", "savez_compressed"),
    "tensorken.arrays.functions.float_parts": (
        "fabs",
        "float_power",
        "frexp",
        "ldexp",
        "logaddexp2",
        "modf",
        "spacing",
    ),
    "tensorken.arrays.functions.index_vectors": (
        "diag_indices",
        "diag_indices_from",
        "ix_",
        "mask_indices",
        "ravel_multi_index",
        "tril_indices",
        "tril_indices_from",
        "triu_indices",
        "triu_indices_from",
        "unravel_index",
    ),
    "tensorken.arrays.functions.integers": ("bitwise_count", "gcd", "lcm"),
    "tensorken.arrays.functions.mapping": ("apply_along_axis", "apply_over_axes", "vectorize"),
    "tensorken.arrays.functions.nans": (
        "nanargmax",
        "nanargmin",
        "nancumprod",
        "nancumsum",
        "nanmax",
        "nanmean",
        "nanmedian",
        "nanmin",
        "nanpercentile",
        "nanprod",
        "nanquantile",
        "nanstd",
        "nansum",
        "nanvar",
    ),
    "tensorken.arrays.functions.orders": (
        "argpartition",
        "lexsort",
        "partition",
        "place",
        "put",
        "put_along_axis",
        "scatter",
    ),
    "tensorken.arrays.functions.polynomials": (
        "poly",
        "polyadd",
        "polyder",
        "polydiv",
        "polyfit",
        "polyint",
        "polymul",
        "polysub",
        "polyval",
        "roots",
    ),
    "tensorken.arrays.functions.running_extremes": ("cummax", "cummin"),
    "tensorken.arrays.functions.set_operations": ("intersect1d", "setdiff1d", "setxor1d", "union1d"),
    "tensorken.arrays.functions.shape_queries": (
        "array_equiv",
        "copy",
        "isscalar",
        "iterable",
        "ndim",
        "shape",
        "size",
    ),
    "tensorken.arrays.functions.signals": (
        "convolve",
        "correlate",
        "gradient",
        "interp",
        "trapezoid",
        "unwrap",
    ),
    "tensorken.arrays.functions.windows": ("bartlett", "blackman", "hamming", "hanning", "kaiser"),
    "tensorken.callbacks": ("ShapeDtypeStruct", "io_callback", "pure_callback"),
    "tensorken.collectives": (
        "all_gather",
        "all_to_all",
        "axis_index",
        "axis_size",
        "pmax",
        "pmean",
        "pmin",
        "ppermute",
        "psum",
        "psum_scatter",
    ),
    "tensorken.compilation.eager": ("disable_jit",),
    "tensorken.compilation.jit": ("jit",),
    "tensorken.control_flow": (
        "associative_scan",
        "cond",
        "fori_loop",
        "map",
        "scan",
        "switch",
        "while_loop",
    ),
    "tensorken.debugging": ("debug_nans",),
    "tensorken.distributed.spread": ("spread",),
    "tensorken.lazy.interpreter": ("Lazy",),
    "tensorken.linalg": ("norm",),
    "tensorken.programs": ("Program",),
    "tensorken.programs.trace": ("eval_shape", "trace"),
    "tensorken.special": ("i0",),
    "tensorken_core.rewriting.fuse": ("Fuse",),
    "tensorken_core.rewriting.shape_tracker": ("ShapeTracker",),
    "tensorken_core.transforms.checkpoint": ("checkpoint",),
    "tensorken_core.transforms.custom_rules": ("custom_jvp", "custom_vjp"),
    "tensorken_core.transforms.linearize": ("linearize",),
}
"""The lazy names: each module is imported when one of its names is first used.  The imports under TYPE_CHECKING repeat
them, since type checkers cannot read this table; tests/test_imports.py compares the two."""

_LAZY_OPS.update(
    {
        "call": "tensorken.compilation.call_op",
        "cond": "tensorken.control_flow.cond_op",
        "scan": "tensorken.control_flow.scan_op",
        "while_loop": "tensorken.control_flow.while_op",
    }
)

_MODULE_OF = {name: module for module, names in _LATER.items() for name in names}
_methods_elsewhere.attach(
    [
        *(n for n, x in globals().items() if _inspect.isfunction(x) and not n.startswith("_")),
        *(n for n, module in _MODULE_OF.items() if ".functions." in module and not n.endswith("_")),
    ]
)
_SUBMODULES = ("debug", "distributed", "fft", "linalg", "programs", "random", "special", "testing")
_INTERNAL = {  # a feature of the language, and subpackages that an import has loaded
    name
    for name, value in globals().items()
    if name == "annotations" or (isinstance(value, type(_os)) and name not in ("errors", "tree"))
}
_PUBLIC = frozenset(name for name in globals() if not name.startswith("_")) - _INTERNAL


def _missing(name: str) -> AttributeError:
    """The error for an unknown name; for a name of another library it names the equivalent."""
    from tensorken.arrays.elsewhere.table import missing

    return missing("module 'tensorken'", "tk", name, _importlib.import_module(__name__))


if not _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Load a lazy name on first use: a name of `_LATER`, a submodule, the version, or a name that a plugin adds."""
        from tensorken.plugin_names import load_name
        from tensorken_core.host.discovery import core_version

        if name == "__version__":
            return core_version() or "unknown"
        if name.startswith("_"):
            raise _missing(name)
        if name in _SUBMODULES:
            return _importlib.import_module(f"{__name__}.{name}")
        if name in _MODULE_OF:
            value = getattr(_importlib.import_module(_MODULE_OF[name]), name)
            globals()[name] = value
            return value
        try:
            return load_name(name)
        except KeyError:
            raise _missing(name) from None
        except errors.BackendError as error:
            raise AttributeError(f"tensorken.{name}: {error}") from error

    def __dir__() -> list[str]:
        """The public names, including lazy names that are not loaded yet and names that plugins add."""
        from tensorken.plugin_names import plugin_names

        dunder = {name for name in globals() if name.startswith("__")}
        return sorted({*_PUBLIC, *dunder, *_MODULE_OF, *_SUBMODULES, *plugin_names()})
