"""Cost model: the arithmetic of an op and the bytes it moves, by rules on shapes.

Counts follow the definition of an op, not its implementation: `exp` counts 1 for each element, as `add` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log2, prod
from typing import Any

from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.shapes import Shape, multiplied
from tensorken_core.program.program import Program

ShapeDtype = tuple[Shape, DType]
"""The shape and dtype of a value."""

Rule = Callable[..., float]
"""`(*operand shapes, *params) -> count`."""


def _each(count: float) -> Rule:
    """A fixed count for each element of the first operand."""
    return lambda shape, *rest: count * prod(shape)


def _sorted(shape: Shape, axis: int) -> float:
    return prod(shape) * max(1.0, log2(max(shape[axis], 1)))


def _transformed(count: float) -> Rule:
    """A count for each element and each doubling of the length, the last axis."""
    return lambda shape, *rest: count * prod(shape) * max(1.0, log2(max(shape[-1], 1)))


def _contracted(a: Shape, b: Shape, axes: Any) -> float:
    return 2 * prod(multiplied(a, b, ()))


def _convolved(x: Shape, kernel: Shape, *params: Any) -> float:
    result: Shape = OPS["convolution"].shape(x, kernel, *params)
    return 2 * prod(result) * prod(kernel[1:])


def _matrices(count: Callable[[int, int], float]) -> Rule:
    """A count for each matrix in the last two axes, as a function of its larger size m and its smaller size n."""

    def rule(shape: Shape, *rest: Any) -> float:
        n, m = sorted(shape[-2:])
        return prod(shape[:-2]) * count(m, n)

    return rule


def _solved(a: Shape, b: Shape, *params: Any) -> float:
    return prod(a[:-2]) * 2 / 3 * a[-1] ** 3 + _substituted(a, b) * 2


def _substituted(a: Shape, b: Shape, *params: Any) -> float:
    return prod(b) * a[-1]


RULES: dict[str, Rule] = {
    **dict.fromkeys("reshape permute expand flip pad crop concatenate gather cast to_bits from_bits".split(), _each(0)),
    "with_placement": _each(0),
    **dict.fromkeys("sum prod max min argmax argmin cumsum cumprod".split(), _each(1)),
    "scatter_add": _each(1),
    "norm": _each(2),
    "logsumexp": _each(4),  # max, subtract, exp, sum
    "softmax": _each(5),  # and divide
    "log_softmax": _each(5),
    "sort": _sorted,
    "argsort": _sorted,
    "fused_multiply_add": _contracted,
    "convolution": _convolved,
    "matmul": lambda a, b: 2 * prod(a) * b[-1],
    # Van Loan, Computational Frameworks for the Fast Fourier Transform: 1.4.1
    "fft": _transformed(5.0),
    "rfft": _transformed(2.5),
    "irfft": lambda shape, other, size: _transformed(2.5)((*shape[:-1], size)),
    # Golub and Van Loan, Matrix Computations, 4th edition: 4.2.5, 3.2.9, 5.2.9, 7.5.6, 8.3.1, figure 8.6.1
    "cholesky": _matrices(lambda m, n: n**3 / 3),
    "det": _matrices(lambda m, n: 2 / 3 * n**3),
    "slogdet": _matrices(lambda m, n: 2 / 3 * n**3),
    "inv": _matrices(lambda m, n: 2 * n**3),
    "solve": _solved,
    "triangular_solve": _substituted,
    "qr": _matrices(lambda m, n: 4 * m * n**2 - 4 / 3 * n**3),
    "eigvalsh": _matrices(lambda m, n: 4 / 3 * n**3),
    "eigh": _matrices(lambda m, n: 9 * n**3),
    "svdvals": _matrices(lambda m, n: 2 * m * n**2 + 2 * n**3),
    "svd": _matrices(lambda m, n: 6 * m * n**2 + 20 * n**3),
    "eigvals": _matrices(lambda m, n: 10 * n**3),
    "eig": _matrices(lambda m, n: 25 * n**3),
}  # fmt: skip
"""The rules of ops that are not elementwise; other ops count 1 for each element of their results."""


def _complex(rule: Rule) -> Rule:
    """The rule of pairs of parts: a product and a sum of complex numbers are four times as many real ones."""
    return lambda *shapes: 4.0 * rule(*shapes[::2])


_OF_MATRICES = (
    "cholesky det slogdet inv solve triangular_solve qr eigvalsh eigh svdvals svd eigvals eig".split()
)
RULES |= {f"complex_{name}": _complex(RULES[name]) for name in _OF_MATRICES}

MOVEMENT_OPS = frozenset("reshape permute expand flip crop".split())
"""Ops that move no data on a backend whose results may be views of operands."""


def flop_count(op: Op, operands: Sequence[Shape], params: Sequence[Any], results: Sequence[Shape]) -> int:
    """The number of operations on elements, floating-point or integer.

    A loop counts all steps if their number is known, else one. Of two branches, the larger counts.

    >>> from tensorken_core.language.op import OPS
    >>> flop_count(OPS["fused_multiply_add"], [(2, 3, 1), (1, 3, 4)], [(1,)], [(2, 1, 4)])
    48
    >>> flop_count(OPS["tanh"], [(2, 3)], [], [(2, 3)])
    6
    """
    inner = [param for param in params if isinstance(param, Program)]
    if inner:
        counts = [program_flop_count(program) for program in inner]
        steps = [param for param_kind, param in zip(op.params, params, strict=True) if param_kind == "size"]
        per_step = max(counts) if op.name == "cond" else sum(counts)
        count: int = prod(steps) * per_step
        return count
    rule = RULES.get(op.name)
    if rule is None:
        return sum(map(prod, results))
    return round(rule(*operands, *params))


def program_flop_count(program: Program) -> int:
    """The sum of the counts of all equations of a program."""

    def count() -> int:
        return sum(
            [
                flop_count(e.op, [v.shape for v in e.operands], e.params, [v.shape for v in e.results])
                for e in program.equations
            ]
        )

    return program.once("arithmetic", count)


def size_in_bytes(shape_dtypes: Sequence[ShapeDtype]) -> int:
    """The memory of values of these shapes and dtypes.

    >>> import tensorken as tk
    >>> size_in_bytes([((2, 3), tk.float32), ((), tk.bool)])
    25
    """
    return sum([prod(shape) * dtype.itemsize for shape, dtype in shape_dtypes])
