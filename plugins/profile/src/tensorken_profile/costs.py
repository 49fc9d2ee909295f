"""Costs: how much arithmetic an op does and how many bytes it moves, by rules on shapes that are said here once.

A count is of the op's definition, not of what a machine does for it: `exp` counts 1 for each element, as `add` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log2, prod
from typing import Any

from tensorken.programs.passes.inlining import inline
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import Op
from tensorken_core.language.shapes import Shape, multiplied
from tensorken_core.program.program import Program

Kind = tuple[Shape, DType]
"""What is known of a value: its shape and its dtype."""

Rule = Callable[..., float]
"""`(*operand shapes, *params) -> count`."""


def _each(count: float) -> Rule:
    """So much for each element of the first operand."""
    return lambda shape, *rest: count * prod(shape)


def _sorted(shape: Shape, axis: int) -> float:
    return prod(shape) * max(1.0, log2(max(shape[axis], 1)))


def _contracted(a: Shape, b: Shape, axes: Any) -> float:
    return 2 * prod(multiplied(a, b, ()))


def _matrices(count: Callable[[int, int], float]) -> Rule:
    """So much for each matrix, of `m` rows and `n` columns with m >= n, in the last two axes."""

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
    **dict.fromkeys("sum prod max min argmax argmin cumsum cumprod".split(), _each(1)),
    "scatter_add": _each(1),
    "norm": _each(2),
    "logsumexp": _each(4),  # max, subtract, exp, sum
    "softmax": _each(5),  # and divide
    "log_softmax": _each(5),
    "sort": _sorted,
    "argsort": _sorted,
    "fused_multiply_add": _contracted,
    # Golub and Van Loan, Matrix Computations, 4th edition: 4.2.5, 3.2.9, 5.2.9, 8.3.1, figure 8.6.1
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
}  # fmt: skip
"""Of ops that are not elementwise; one that is not here counts 1 for each element of its results."""

MOVEMENT = frozenset("reshape permute expand flip crop".split())
"""Ops that a backend whose results may be views of operands does without moving anything."""


def arithmetic(op: Op, operands: Sequence[Shape], params: Sequence[Any], results: Sequence[Shape]) -> int:
    """The number of operations on elements: floating-point ones, and integer ones alike.

    Of a loop that says how many steps it has, in all of them; else in one.  Of two branches, in the longer.

    >>> from tensorken_core.language.op import OPS
    >>> arithmetic(OPS["fused_multiply_add"], [(2, 3, 1), (1, 3, 4)], [(1,)], [(2, 1, 4)])
    48
    >>> arithmetic(OPS["tanh"], [(2, 3)], [], [(2, 3)])
    6
    """
    inner = [param for param in params if isinstance(param, Program)]
    if inner:
        counts = [arithmetic_of(program) for program in inner]
        steps = [param for kind, param in zip(op.params, params, strict=True) if kind == "size"]
        each = max(counts) if op.name == "cond" else sum(counts)
        count: int = prod(steps) * each
        return count
    rule = RULES.get(op.name)
    if rule is None:
        return sum(map(prod, results))
    return round(rule(*operands, *params))


def arithmetic_of(program: Program) -> int:
    """That of all its equations, each once."""

    def count() -> int:
        return sum(
            [
                arithmetic(e.op, [v.shape for v in e.operands], e.params, [v.shape for v in e.results])
                for e in inline(program).equations
            ]
        )

    return program.once("arithmetic", count)


def size_in_bytes(kinds: Sequence[Kind]) -> int:
    """What values of these shapes and dtypes take in memory.

    >>> import tensorken as tk
    >>> size_in_bytes([((2, 3), tk.float32), ((), tk.bool)])
    25
    """
    return sum([prod(shape) * dtype.itemsize for shape, dtype in kinds])
