"""Donation: tensors given away with a call, whose memory its results may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken_core.errors import EscapedTensorError
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.tensor.level import Level
from tensorken_core.tensor.tensor import Tensor


class Donated(Level[Any]):
    """What a tensor that was given away lives on: it knows its shape and dtype, and any op is an error."""

    transform = ""

    def __init__(self, inner: Interpreter[Any], name: str) -> None:
        super().__init__(inner)
        self.closed = True
        self.name = name
        self.placeholder = f"donated to a call of {name}"

    def escaped_error(self, op_name: str) -> EscapedTensorError:
        return EscapedTensorError(
            f"{op_name}: this tensor was donated to a call of {self.name}, and its memory is gone; use what that "
            f"returned, or leave the argument out of donate_argnums"
        )

    def lift(self, x: Any) -> Any:
        return x  # a number beside the tensor; the op that follows is refused

    def lower(self, x: Any) -> Any:
        raise self.escaped_error("value")

    def interpret(self, op: Any, operands: Sequence[Any], params: tuple[Any, ...]) -> Any:
        raise self.escaped_error(op.name)


def give_away(xs: Sequence[Tensor], gone: Donated) -> None:
    """Let go of the values of tensors, which live on `gone` from now on; what they know of themselves stays."""
    for x in xs:
        _ = x.shape, x.dtype  # computed now, if they were not known yet
        x.interpreter, x.representation = gone, None
