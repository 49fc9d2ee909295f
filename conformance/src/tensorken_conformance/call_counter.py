"""CallCounter: an interpreter around the backend under test, which counts what really runs on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tensorken.programs.passes.inner_programs import inner_programs
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import Op, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.program.program import Program


class CallCounter(RawTensor[Any]):
    """The backend as it is, with a count of the ops that it ran; the backend itself never sees the count.

    Beside that it notes which ops the backend was asked for and has not.

    Where the backend lacks an op, the op's body runs here, so that the ops of the body are counted too.

    >>> from tensorken_core.language.dtypes import float32
    >>> from tensorken_reference.backend import Reference
    >>> call_counter = CallCounter(Reference())
    >>> x = call_counter.new((2,), [1.0, 4.0], float32)
    >>> call_counter.ravel(call_counter.sqrt(x)), call_counter.counts["sqrt"]
    ([1.0, 2.0], 1)
    """

    def __init__(self, backend: RawTensor[Any]) -> None:
        self.backend = backend
        self.broadcasts = backend.broadcasts
        self.capabilities = backend.capabilities
        self.counts: Counter[str] = Counter()
        self.missing: set[str] = set()
        self._interprets = type(backend).interpret is not RawTensor.interpret

    def __repr__(self) -> str:
        return f"CallCounter({self.backend!r})"

    @property
    def calls(self) -> int:
        """How many ops the backend has run."""
        return sum(self.counts.values())

    def interpret(self, op: Op, operands: Sequence[Any], params: tuple[Any, ...]) -> Any:
        if self.backend.has(op) or self._interprets or op.body is None:
            try:
                result = run(self.backend, op, operands, params)
            except NotImplementedError:  # MissingOpError, too
                self.missing.add(op.name)
                raise
            self.counts[op.name] += 1
            return result
        return super().interpret(op, operands, params)

    def has(self, op: Op) -> bool:
        return self.backend.has(op)

    def new(self, shape: Shape, data: Any, dtype: DType) -> Any:
        result = self.backend.new(shape, data, dtype)
        self.counts["new"] += 1
        return result

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Any:
        result = self.backend.full(shape, value, dtype)
        self.counts["full"] += 1
        return result

    def shape(self, x: Any) -> Shape:
        return self.backend.shape(x)

    def dtype(self, x: Any) -> DType:
        return self.backend.dtype(x)

    def ravel(self, x: Any) -> Any:
        return self.backend.ravel(x)

    def factors(self, x: Any) -> Sequence[Any]:
        return self.backend.factors(x)

    def settle(self, x: Any) -> Any:
        return self.backend.settle(x)

    def realize(self, x: Any) -> Any:
        return self.backend.realize(x)

    def compile(self, program: Program) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
        compiled = self.backend.compile(program)
        if compiled is None:
            return None

        def noted(values: Sequence[Any]) -> Sequence[Any]:
            try:
                return compiled(values)
            except NotImplementedError:  # of one of these ops, which the backend runs by itself
                self.missing.update([op.name for op in _ops_of(program)])
                raise

        return noted


def _ops_of(program: Program) -> set[Op]:
    """The ops of a program, and of the programs that it runs."""
    return set(program.ops).union(*map(_ops_of, inner_programs(program)))
