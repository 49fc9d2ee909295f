"""Target: which ops kernels compute, and what fusion depends on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tensorken.kernels.elements import INLINE
from tensorken.kernels.keeping import Costs
from tensorken.kernels.nests import CountingNest
from tensorken_llvm.dtypes import TYPES
from tensorken_llvm.products import is_kernel
from tensorken_llvm.routines import Routine
from tensorken_llvm.scalars import is_supported
from tensorken_numpy.backend import Numpy

if TYPE_CHECKING:
    from tensorken_core.language.op import Op
    from tensorken_core.program.program import Equation, Variable

MAX_OPERANDS = 24
"""How many arrays one kernel reads and writes: each is a pointer in a register, or near one."""

MAX_COUNT = 400
"""How many elements and indices one kernel computes: LLVM takes long for more."""

COSTS = Costs(
    ops={
        "div": 3, "reciprocal": 3, "sqrt": 3, "hypot": 8, "remainder": 6, "nextafter": 6, "floor_divide": 20,
        "exp": 8, "exp2": 8, "expm1": 8, "sigmoid": 10, "tanh": 9, "sech_squared": 11, "gaussian": 12, "erf": 13,
        "sinh": 9, "cosh": 8, "log": 10, "log1p": 16, "log2": 12, "log10": 26, "softplus": 19, "logaddexp": 20,
        "sin": 12, "cos": 12, "tan": 13, "asin": 8, "acos": 9, "atan": 10, "atan2": 20, "asinh": 24, "acosh": 30,
        "atanh": 20, "erfinv": 40, "pow": 46, "integer_pow": 60,
    },
    read=3,
    recomputed=6,
    gathers=True,
)  # fmt: skip
"""The time of an element of float32, in that of an addition of values in registers: about 0.045 ns.

An element that does not fit in the caches of a core is written and read again in about ten times that.
"""

EXPANDED = frozenset(
    {"softmax", "log_softmax", "logsumexp", "min", "argmax", "argmin", "norm", "threefry2x32"}
)
"""Ops that numpy's backend has, but whose bodies are kernels, which compute more, and are faster."""


class Expanded(Numpy):
    """Numpy without the ops that are computed as their bodies."""

    def has(self, op: Op) -> bool:
        return op.name not in EXPANDED and super().has(op)


@dataclass(frozen=True, slots=True)
class CpuTarget:
    """What fusion depends on.

    Attributes:
        routines: for each op that is machine code, but no kernel, its code.
    """

    routines: Mapping[Equation, Routine] = field(default_factory=dict)

    @property
    def costs(self) -> Costs:
        """What it costs to compute values again."""
        return COSTS

    @property
    def max_operands(self) -> int:
        """How many values one kernel may read and write."""
        return MAX_OPERANDS

    def runs_alone(self, equation: Equation) -> bool:
        """No op."""
        return False

    def read_by_call(self, equation: Equation) -> Collection[Variable] | None:
        """What a routine reads, and the operands of an op that numpy's backend runs."""
        routine = self.routines.get(equation)
        if routine is not None:
            return routine.reads
        return None if is_computed(equation) else equation.operands

    def has_code(self, equation: Equation) -> bool:
        """Whether an op is machine code: of a kernel, or another routine."""
        return equation in self.routines or is_computed(equation)

    def fits(self, operands: Collection[Variable], count: int) -> bool:
        """Whether a kernel may have these operands and compute this many elements and indices."""
        return len(operands) <= MAX_OPERANDS and count <= MAX_COUNT

    def can_reduce(self, nest: CountingNest) -> bool:
        """Always."""
        return True


def is_computed(equation: Equation) -> bool:
    """Whether kernels compute an op."""
    dtypes = [v.dtype.name for v in (*equation.operands, *equation.results)]
    if len(equation.results) != 1 or not all([name in TYPES for name in dtypes]):
        return False
    name = equation.op.name
    if name in INLINE or name in ("sum", "max"):
        return True
    if name == "fused_multiply_add":
        return is_kernel(equation)
    return equation.op.elementwise and is_supported(name, equation.operands[-1].dtype)
