"""CallCounter: an interpreter around the backend under test that counts the ops that run on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tensorken.programs.passes.inner_programs import inner_programs
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import Op, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.program.program import Program
from tensorken_core.rewriting.wrapper import Wrapper


class CallCounter(Wrapper[Any]):
    """The backend, with a count of the ops that it ran, and the names of missing ops that it was asked to run.

    If `reads` is set, it gets each value that is read.

    If the backend lacks an op, the op's body runs here, so that the ops of the body are counted too.  Whole programs
    are compiled for the backend itself, by compiler plugins too, as for users.

    >>> from tensorken_core.language.dtypes import float32
    >>> from tensorken_reference.backend import Reference
    >>> call_counter = CallCounter(Reference())
    >>> x = call_counter.new((2,), [1.0, 4.0], float32)
    >>> call_counter.ravel(call_counter.sqrt(x)), call_counter.counts["sqrt"]
    ([1.0, 2.0], 1)
    """

    def __init__(self, backend: RawTensor[Any]) -> None:
        super().__init__(backend)
        self.broadcasts = backend.broadcasts
        self.counts: Counter[str] = Counter()
        self.missing: set[str] = set()
        self.reads: Callable[[Any], None] | None = None
        self._interprets = type(backend).interpret is not RawTensor.interpret

    @property
    def calls(self) -> int:
        """How many ops the backend has run."""
        return sum(self.counts.values())

    def interpret(self, op: Op, operands: Sequence[Any], params: tuple[Any, ...]) -> Any:
        if self.raw.has(op) or self._interprets or op.body is None:
            try:
                result = run(self.raw, op, operands, params)
            except NotImplementedError:  # includes MissingOpError
                self.missing.add(op.name)
                raise
            self.counts[op.name] += 1
            return result
        return super().interpret(op, operands, params)

    def wrap(self, value: Any) -> Any:
        return value

    def value(self, x: Any) -> Any:
        return x

    def new(self, shape: Shape, data: Any, dtype: DType) -> Any:
        result = self.raw.new(shape, data, dtype)
        self.counts["new"] += 1
        return result

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Any:
        result = self.raw.full(shape, value, dtype)
        self.counts["full"] += 1
        return result

    def shape(self, x: Any) -> Shape:
        return self.raw.shape(x)

    def dtype(self, x: Any) -> DType:
        return self.raw.dtype(x)

    def ravel(self, x: Any) -> Any:
        if self.reads is not None:
            self.reads(x)
        return self.raw.ravel(x)

    def deferred_operands(self, x: Any) -> Sequence[Any]:
        return self.raw.deferred_operands(x)

    def settle(self, x: Any) -> Any:
        return self.raw.settle(x)

    def realize(self, x: Any) -> Any:
        return self.raw.realize(x)

    def compile_below(self, compiled: Callable[[Any, RawTensor[Any]], Any], program: Program) -> Any:
        with self._noting(program):  # folding constants runs ops
            return super().compile_below(compiled, program)

    def wrap_program(self, run: Callable[[Sequence[Any]], Sequence[Any]], program: Program) -> Any:
        def noted(values: Sequence[Any]) -> Sequence[Any]:
            with self._noting(program):
                return run(values)

        return noted

    @contextmanager
    def _noting(self, program: Program) -> Iterator[None]:
        """Record the ops of a program that are missing, if the backend raises an error that says so."""
        try:
            yield
        except NotImplementedError:
            self.missing.update([op.name for op in _ops_of(program)])
            raise


def _ops_of(program: Program) -> set[Op]:
    """The ops of a program, and of the programs that it runs."""
    return set(program.ops).union(*map(_ops_of, inner_programs(program)))
