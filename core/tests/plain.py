"""Programs run equation by equation, with calls, branches and loops in Python, as a reference for passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken.compilation.call_op import CALL
from tensorken.control_flow.carries import CARRY
from tensorken.control_flow.cond_op import COND
from tensorken.control_flow.scan_op import SCAN
from tensorken.control_flow.while_op import WHILE
from tensorken_core.language.op import OPS, Op, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Program, Variable
from tensorken_core.tensor.tensor import Tensor


def on(program: Program, backend: RawTensor[Any], elements: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The elements of the outputs, flattened; all equations run one by one, including those of inner programs."""
    xs = [backend.new(v.shape, list(x), v.dtype) for v, x in zip(program.inputs, elements, strict=True)]
    ys = Plain(backend).run(program, xs)
    for y, v in zip(ys, program.outputs, strict=True):
        assert backend.shape(y) == v.shape
        assert backend.dtype(y) is v.dtype
    return [_elements(backend, y) for y in ys]


def elements_of(tensors: Sequence[Tensor]) -> list[list[Any]]:
    """The elements of tensors, flattened."""
    return [_elements(x.interpreter, x.representation) for x in tensors]


def largest(program: Program, backend: RawTensor[Any], elements: Sequence[Sequence[Any]]) -> float:
    """The largest absolute value of all intermediate results."""
    xs = [backend.new(v.shape, list(x), v.dtype) for v, x in zip(program.inputs, elements, strict=True)]
    plain = Plain(backend)
    plain.run(program, xs)
    return max([abs(e) for y in plain.seen for e in _elements(backend, y)], default=0.0)


def _elements(backend: Any, y: Any) -> list[Any]:
    return [getattr(e, "item", lambda e=e: e)() for e in backend.ravel(y)]


class Plain:
    """Like `replay`, but inner programs are not prepared: calls, branches and loops run in Python.

    Args:
        backend: the backend that runs the equations.
        changed: maps a result of an op to the value to use instead; by default the result.

    Attributes:
        seen: collects all results.
    """

    def __init__(self, backend: RawTensor[Any], changed: Callable[[Op, Any], Any] = lambda op, y: y) -> None:
        self.backend = backend
        self.changed = changed
        self.seen: list[Any] = []

    def run(self, program: Program, xs: Sequence[Any]) -> list[Any]:
        """The outputs."""
        values = dict(zip(program.inputs, xs, strict=True))

        def value(v: Variable) -> Any:
            return values[v] if v in values else program.outside(v, self.backend)

        for e in program.equations:
            operands = [value(v) for v in e.operands]
            own = {CALL: self.call, COND: self.choose, SCAN: self.scan, WHILE: self.loop}.get(e.op)
            ys = own(e, *operands) if own else run(self.backend, e.op, operands, e.params)
            ys = [self.changed(e.op, y) for y in ((ys,) if e.op.results == 1 else ys)]
            self.seen += ys
            values.update(zip(e.results, ys, strict=True))
        return [value(v) for v in program.outputs]

    def call(self, e: Equation, *xs: Any) -> list[Any]:
        """A call."""
        return self.run(e.params[0], xs)

    def choose(self, e: Equation, predicate: Any, *xs: Any) -> list[Any]:
        """A choice."""
        return self.run(e.params[0] if _elements(self.backend, predicate)[0] else e.params[1], xs)

    def loop(self, e: Equation, *xs: Any) -> list[Any]:
        """A while loop."""
        condition, body, roles = e.params
        values = list(xs)
        while _elements(self.backend, self.run(condition, values)[0])[0]:
            carried = iter(self.run(body, values))
            values = [next(carried) if r == CARRY else x for x, r in zip(values, roles, strict=True)]
        return [x for x, r in zip(values, roles, strict=True) if r == CARRY]

    def scan(self, e: Equation, *xs: Any) -> list[Any]:
        """A loop of `count` steps."""
        program, going_in, going_out, length, reverse = e.params
        values, stacks = list(xs), [list[Any]() for _ in e.results]
        for k in reversed(range(length)) if reverse else range(length):
            given = [
                self._part(x, r, k) if isinstance(r, int) else x
                for x, r in zip(values, going_in, strict=True)
            ]
            ys = self.run(program, given)
            carried = iter([y for y, r in zip(ys, going_out, strict=True) if r == CARRY])
            values = [next(carried) if r == CARRY else x for x, r in zip(values, going_in, strict=True)]
            for stack, y in zip(stacks, ys, strict=True):
                stack.insert(0 if reverse else k, y)
        carried = iter([x for x, r in zip(values, going_in, strict=True) if r == CARRY])
        return [
            next(carried) if r == CARRY else self._stacked(stack, r, v)
            for stack, r, v in zip(stacks, going_out, e.results, strict=True)
        ]

    def _part(self, x: Any, axis: int, k: int) -> Any:
        shape = self.backend.shape(x)
        limits = tuple([(k, k + 1) if i == axis else (0, n) for i, n in enumerate(shape)])
        part = run(self.backend, OPS["crop"], (x,), (limits,))
        return run(self.backend, OPS["reshape"], (part,), ((*shape[:axis], *shape[axis + 1 :]),))

    def _stacked(self, ys: Sequence[Any], axis: int, v: Variable) -> Any:
        if not ys:
            return self.backend.full(v.shape, 0, v.dtype)
        shape = (*v.shape[:axis], 1, *v.shape[axis + 1 :])
        parts = [run(self.backend, OPS["reshape"], (y,), (shape,)) for y in ys]
        return run(self.backend, OPS["concatenate"], parts, (axis,))


def bits(outputs: Sequence[Sequence[Any]]) -> list[list[str]]:
    """The elements as text, which is equal for equal bits, except for the sign and payload of NaN."""
    return [[repr(e) for e in y] for y in outputs]


def numbers(outputs: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The elements, with -0.0 as 0.0."""
    return [
        [e + 0 if isinstance(e, int | float) and not isinstance(e, bool) else e for e in y] for y in outputs
    ]
