"""Wrapper: an interpreter around a backend, whose tensors hold that backend's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from tensorken_core.language.interpreter import R
from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape

V = TypeVar("V")


class DonatableArgs(list[Any]):
    """Representations that nobody else refers to, unless others do: who runs a program may take donated ones out."""


class Wrapper(RawTensor[R]):
    """What interpreters over another backend share; not a level: it changes the representation."""

    def __init__(self, raw: RawTensor[Any]) -> None:
        self.raw = raw
        self.capabilities = raw.capabilities

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw!r})"

    def hold(self, value: Any) -> R:
        """A value of the backend below, as one of this."""
        raise NotImplementedError(f"{type(self).__name__} must define hold(value)")

    def value(self, x: R) -> Any:
        """The value of the backend below, in full."""
        raise NotImplementedError(f"{type(self).__name__} must define value(x)")

    def around(
        self,
        run: Callable[[Sequence[Any]], Sequence[Any]],
        shapes: Sequence[Shape],
        donated: Collection[int] = (),
    ) -> Any:
        """What `run` of the backend below is here.

        Args:
            run: from representations there to such.
            shapes: of its results.
            donated: the places of operands whose memory results may have: those of a Given.
        """
        return lambda xs: [self.hold(y) for y in run([self.value(x) for x in xs])]

    def ravel(self, x: R) -> Any:
        return self.raw.ravel(self.value(x))

    def has(self, op: Op) -> bool:
        return self.raw.has(op)
