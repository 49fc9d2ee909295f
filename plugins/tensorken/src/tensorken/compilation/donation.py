"""Donation: arguments of a call that the call may overwrite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken_core.errors import EscapedTensorError
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.tensor.level import Level
from tensorken_core.tensor.tensor import Tensor


class Donated(Level[Any]):
    """The level of donated tensors: they keep their shape and dtype, and any op on them is an error."""

    transform = ""

    def __init__(self, inner: Interpreter[Any], name: str) -> None:
        super().__init__(inner)
        self.closed = True
        self.name = name
        self.placeholder = f"donated to a call of {name}"

    def escaped_error(self, op_name: str) -> EscapedTensorError:
        return EscapedTensorError(
            f"{op_name}: this tensor was donated to a call of {self.name}, and its memory is reused; use the "
            f"result of the call, or leave the argument out of donate_argnums"
        )

    def lift(self, x: Any) -> Any:
        return x  # the other operand is a number; the op raises the error

    def lower(self, x: Any) -> Any:
        raise self.escaped_error("value")

    def interpret(self, op: Any, operands: Sequence[Any], params: tuple[Any, ...]) -> Any:
        raise self.escaped_error(op.name)


def donate(xs: Sequence[Tensor], donated_level: Donated) -> None:
    """Drop the values of tensors, which move to the level `donated_level`; shapes and dtypes stay known."""
    for x in xs:
        _ = x.shape, x.dtype  # compute them while the value exists
        x.interpreter, x.representation = donated_level, None
