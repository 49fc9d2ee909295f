"""Wrapper: the base class of interpreters over a backend that change its representation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from tensorken_core.language.interpreter import R
from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape


class DonatableArgs(list[Any]):
    """The arguments of one run; the callee may pop donated ones and so drop the last reference to their memory."""


class Wrapper(RawTensor[R]):
    """An interpreter whose representations wrap those of another backend; it is no level."""

    def __init__(self, raw: RawTensor[Any]) -> None:
        self.raw = raw
        self.capabilities = raw.capabilities

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw!r})"

    def wrap(self, value: Any) -> R:
        """The representation here of a value of the wrapped backend."""
        raise NotImplementedError(f"{type(self).__name__} must define wrap(value)")

    def value(self, x: R) -> Any:
        """The value of the wrapped backend, computed in full."""
        raise NotImplementedError(f"{type(self).__name__} must define value(x)")

    def wrap_program(
        self,
        run: Callable[[Sequence[Any]], Sequence[Any]],
        shapes: Sequence[Shape],
        donated: Collection[int] = (),
    ) -> Any:
        """A compiled program of the wrapped backend, as a function of representations of this one.

        Args:
            run: the program: from values of the wrapped backend to values of it.
            shapes: the shapes of the results.
            donated: the indices of operands whose memory the results may take, if these are `DonatableArgs`.
        """
        return lambda xs: [self.wrap(y) for y in run([self.value(x) for x in xs])]

    def ravel(self, x: R) -> Any:
        return self.raw.ravel(self.value(x))

    def has(self, op: Op) -> bool:
        return self.raw.has(op)
