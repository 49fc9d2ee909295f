# mypy: disable-error-code="empty-body"
"""The op `with_placement`: the identity, which says on which devices a value lies."""

from __future__ import annotations

from typing import Any

from tensorken_core.errors import BackendError
from tensorken_core.language.declare import linear
from tensorken_core.language.dtype_rules import movement
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.op import OPS
from tensorken_core.tensor.tensor import Tensor


def check_has_placements(name: str, backend: Any) -> None:
    """Raise a BackendError if a backend has no placements."""
    if not backend.has(OPS["with_placement"]):
        raise BackendError(
            f"{name}: the backend {Interpreter.name_of(backend)} has no placements; pass None, or use a backend "
            f"that has some, such as jax"
        )


def _body(x: Tensor, placement: Any, batch_axes: int) -> Tensor:
    if placement is not None:
        base = x.interpreter.base
        # While a program is lowered, the base is a writer of equations for a backend.
        check_has_placements("with_placement", getattr(base, "backend", base))
    return x


def _transpose(t: Tensor, y: Tensor, x: Tensor, placement: Any, batch_axes: int) -> Any:
    return t.apply(OPS["with_placement"], placement, batch_axes)


def _batch(flags: tuple[bool, ...], xs: list[Tensor], params: tuple[Any, int]) -> Any:
    placement, batch_axes = params
    return xs[0].apply(OPS["with_placement"], placement, batch_axes + 1)


class Placements(Interpreter[R]):
    """The placement of values on devices."""

    @linear(
        lambda x, placement, batch_axes: x,
        _transpose,
        (((2, 3),), (None, 0)),
        dtype=movement(params=2),
        params=("placement", "size"),
        body=_body,
        batch=_batch,
    )
    def with_placement(self, x: R, placement: Any, batch_axes: int) -> R:
        """x, placed as an object of the backend's library says; unchanged if it is None.

        The placement says nothing about the first `batch_axes` axes, which `vmap` has added.
        """
