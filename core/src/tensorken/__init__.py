"""Tensorken: a small language of tensor operations, and its interpreters.

>>> import tensorken as tk
>>> tk.grad(lambda x: (tk.sin(x) * x).sum())(tk.tensor([0.0, 1.0])).tolist()
[0.0, 1.3817732334136963]
"""

import typing as _typing

from tensorken import (
    errors as errors,
    linalg as linalg,
    methods as _methods,  # noqa: F401, which attaches them to Tensor
    programs as programs,
    random as random,
    testing as testing,
    tree as tree,
)
from tensorken.compilation import *
from tensorken.control_flow import *
from tensorken.creation import *
from tensorken.custom import *
from tensorken.debugging import *
from tensorken.eager import *
from tensorken.functions.arithmetic import *
from tensorken.functions.broadcasting import *
from tensorken.functions.constants import *
from tensorken.functions.counting import *
from tensorken.functions.derivatives import *
from tensorken.functions.diagonals import *
from tensorken.functions.editing import *
from tensorken.functions.einsum import *
from tensorken.functions.elementary import *
from tensorken.functions.floats import *
from tensorken.functions.grids import *
from tensorken.functions.interchange import *
from tensorken.functions.joining import *
from tensorken.functions.logic import *
from tensorken.functions.products import *
from tensorken.functions.promotion import *
from tensorken.functions.ranges import *
from tensorken.functions.reductions import *
from tensorken.functions.reordering import *
from tensorken.functions.repeating import *
from tensorken.functions.scans import *
from tensorken.functions.searching import *
from tensorken.functions.sets import *
from tensorken.functions.shaping import *
from tensorken.functions.sorting import *
from tensorken.functions.statistics import *
from tensorken.functions.strides import *
from tensorken.fuse import Fuse as Fuse
from tensorken.indexing import s_ as s_
from tensorken.jacobians import *
from tensorken.lazy import Lazy as Lazy
from tensorken.linalg import norm as norm
from tensorken.linearization import *
from tensorken.namespace import *
from tensorken.programs import Program as Program, methods as _program_methods
from tensorken.registry import (
    backends as backends,
    default_backend as default_backend,
    devices as devices,
    use_backend as use_backend,
)
from tensorken.rematerialize import *
from tensorken.shape_tracker import ShapeTracker as ShapeTracker
from tensorken.spec.dtypes import (
    DType as DType,
    bool_ as bool_,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int32 as int32,
    int64 as int64,
)
from tensorken.tensor import Tensor as Tensor
from tensorken.trace_function import *
from tensorken.transforms import *
from tensorken.vectorization import *

bool = bool_
_program_methods.attach()

if _typing.TYPE_CHECKING:
    __version__: str
else:

    def __getattr__(name: str) -> object:
        """What is looked up where it is asked for: the version, as reading metadata takes time, and plugins' names."""
        from tensorken.discovery import core_version
        from tensorken.errors import BackendError
        from tensorken.names_elsewhere import MODULE, missing
        from tensorken.registry import REGISTRY

        if name == "__version__":
            return core_version() or "unknown"
        if not name.startswith("_"):
            try:
                return REGISTRY.named(name)
            except KeyError:
                pass
            except BackendError as error:
                raise AttributeError(f"tensorken.{name}: {error}") from error
        known = missing("module 'tensorken'", name, MODULE)
        if known is not None:
            raise known
        raise AttributeError(
            f"module 'tensorken' has no attribute {name!r}", name=name, obj=__import__(__name__)
        )

    def __dir__() -> list[str]:
        """The names that are here, and those that installed plugins add."""
        from tensorken.registry import REGISTRY

        return sorted({*globals(), *REGISTRY.names()})
