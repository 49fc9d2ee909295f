"""linearize: run a function once, and return its derivative there as a linear function."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tensorken_core import tree
from tensorken_core.errors import GradientError
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.op import Op, run
from tensorken_core.levels.forward import jvp_of_op
from tensorken_core.levels.reverse import TapeValue
from tensorken_core.program.program import opaque_ops, without_debug_ops
from tensorken_core.tensor.level import Level, lifted
from tensorken_core.tensor.number import Number
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.arguments import (
    Function,
    check_function,
    flatten,
    float_positions,
    inner_interpreter,
    primals_of,
    tangents_of,
)
from tensorken_core.transforms.grad import primals_at, results_at

__all__ = ["linearize"]


@dataclass(slots=True)
class Step:
    """A recorded op: the indices and values of its operands and results, and its params."""

    op: Op
    parents: list[int | None]
    primals: list[Any]
    indices: list[int]
    results: list[Any]
    params: tuple[Any, ...]


class Linearize(Level[TapeValue[R]]):
    """Computes each op at once, and records the values that its JVP rule needs."""

    transform = "linearize"
    hint = "return it from the function"

    def __init__(self, inner: Interpreter[Any]) -> None:
        super().__init__(inner)
        self.steps: list[Step] = []
        self._new_indices = itertools.count()  # atomic, as other threads may record too

    def lift(self, x: R) -> TapeValue[R]:
        return TapeValue(x, None)

    def lower(self, x: TapeValue[R]) -> R:
        return x.primal

    def variable(self, x: R) -> TapeValue[R]:
        """A value with a tangent."""
        return TapeValue(x, next(self._new_indices))

    def interpret(self, op: Op, operands: Sequence[TapeValue[R]], params: tuple[Any, ...]) -> Any:
        if self.closed:
            raise self.escaped_error(op.name)
        primals = [x.primal for x in operands]
        parents = [x.index for x in operands]
        if op.primal_rule is not None and any([parent is not None for parent in parents]):
            xs = [Tensor(self.inner, p) for p in primals]
            ys, kept = op.primal_rule(tuple([parent is not None for parent in parents]), xs, params)
            indices = [next(self._new_indices) for _ in ys]
            results = [y.representation for y in (*ys, *kept)]
            self.steps.append(Step(op, parents, primals, indices, results, params))
            return tuple([TapeValue(y.representation, index) for y, index in zip(ys, indices, strict=True)])
        is_active = any([parent is not None for parent in parents])
        if op.higher_order is not None and is_active and "io" in opaque_ops(params):
            raise GradientError(
                f"{op.name}: linearize would run its io_callback again at each call of the linear function; use "
                f"tk.jvp, or tk.debug.callback"
            )
        y = run(self.inner, op, primals, params)
        results = [y] if op.results == 1 else list(y)
        if op.differentiable and is_active:
            indices = [next(self._new_indices) for _ in results]
            self.steps.append(Step(op, parents, primals, indices, results, without_debug_ops(params)))
            traced = [TapeValue(x, index) for x, index in zip(results, indices, strict=True)]
        else:
            traced = [TapeValue(x, None) for x in results]
        return traced[0] if op.results == 1 else tuple(traced)

    def push(self, tangents: dict[int, Tensor]) -> dict[int, Tensor]:
        """The tangents of all values, by index, from the tangents of the variables; missing tangents are zero."""
        inner = self.inner
        for step in self.steps:
            operand_tangents = [None if parent is None else tangents.get(parent) for parent in step.parents]
            if not any([t is not None for t in operand_tangents]):
                continue
            xs = [Tensor(inner, x) for x in step.primals]
            ys = [Tensor(inner, y) for y in step.results]
            pushed = jvp_of_op(step.op, operand_tangents, ys, xs, step.params)
            # zip is not strict: step.results may have residuals after the results, which have no tangents
            tangents.update([(i, t) for i, t in zip(step.indices, pushed, strict=False) if t is not None])
        return tangents


def linearize(f: Function, *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """f at the primals, and its derivative there as a linear function of tangents.

    f runs once; each call of the linear function computes only the derivative.  It keeps all intermediate values of f.

    Args:
        f: a function of pytrees of tensors.
        primals: its arguments, at least one of them floating-point; others may be integers or bools.

    Returns:
        (result, push_forward), where `push_forward(*tangents)` takes a tangent for each primal, of its structure,
        shapes and dtypes (None for an integer or bool), and returns the tangent of the result, as `jvp` does.

    Raises:
        GradientError: if no primal is floating-point.
        StructureError, ShapeError: by push_forward, if the tangents do not match the primals.

    >>> import tensorken as tk
    >>> y, push_forward = tk.linearize(tk.square, 3.0)
    >>> y.item(), push_forward(1.0).item(), push_forward(2.0).item()
    (9.0, 6.0, 12.0)
    """
    check_function("linearize", f)
    arguments, structure = flatten(primals)
    values = primals_of("linearize", arguments, structure)
    positions = float_positions(values)
    inner = inner_interpreter("linearize", values)
    level: Linearize[Any] = Linearize(inner)
    variables = list(values)
    for i in positions:
        x = values[i]
        variables[i] = Number.like(x, level, level.variable(lifted(x, inner)))
    outputs, out_structure, _ = results_at(level, "linearize", f, tree.unflatten(structure, variables), False)
    results = primals_at(outputs, inner)

    def push_forward(*tangents: Any) -> Any:
        """The tangent of the result."""
        ts = tangents_of("linearize", "tangents", structure, values, tangents)
        pushed_at = level.push({k: t for k, i in enumerate(positions) if (t := ts[i]) is not None})
        pushed = [
            y.zeros_like() if (t := pushed_at.get(traced.representation.index)) is None else t
            for y, traced in zip(results, outputs, strict=True)
        ]
        return tree.unflatten(out_structure, pushed)

    return tree.unflatten(out_structure, results), push_forward
