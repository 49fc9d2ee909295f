"""The types of the results of transforms, which mypy and pyright check; `test_typed_calls.py` runs the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import tensorken as tk


def loss(w: tk.Tensor, scale: float = 1.0) -> tk.Tensor:
    """A scalar-valued function."""
    return (w * w * scale).sum()


def loss_and_count(w: tk.Tensor) -> tuple[tk.Tensor, int]:
    """A scalar-valued function with an auxiliary value."""
    return (w * w).sum(), 3


w = tk.ones(3)

assert_type(tk.jit(loss)(w, scale=2.0), tk.Tensor)
assert_type(tk.jit(loss_and_count)(w)[1], int)
assert_type(tk.value_and_grad(loss)(w, 2.0), tuple[tk.Tensor, Any])
assert_type(tk.value_and_grad(loss_and_count, has_aux=True)(w), tuple[tuple[tk.Tensor, int], Any])
assert_type(tk.grad(loss)(w), Any)
assert_type(tk.grad(loss_and_count, has_aux=True)(w), tuple[Any, int])
assert_type(tk.vmap(loss, (0, None))(tk.ones((2, 3)), 2.0), tk.Tensor)
assert_type(tk.checkpoint(loss)(w, 2.0), tk.Tensor)
assert_type(tk.jacrev(loss_and_count, has_aux=True)(w), tuple[Any, int])
assert_type(tk.jit(tk.value_and_grad(loss))(w), tuple[tk.Tensor, Any])


def called(f: Callable[[tk.Tensor], tk.Tensor]) -> tk.Tensor:
    """The value of a function at w."""
    return f(w)


called(tk.jit(lambda x: x * 2.0))


@tk.jit
def doubled(x: tk.Tensor) -> tk.Tensor:
    """A function under a decorator."""
    return x * 2.0


assert_type(doubled(w), tk.Tensor)


@tk.custom_jvp
def softened(x: tk.Tensor) -> tk.Tensor:
    """A function with a derivative rule."""
    return x * 1.0


assert_type(softened(w), tk.Tensor)


def wrong_calls() -> None:
    """Calls that do not fit the signature of the function: errors to type checkers; never run."""
    tk.jit(loss)()  # type: ignore[call-arg]
    tk.jit(loss)("text")  # type: ignore[arg-type]
    tk.value_and_grad(loss)(w, scales=2.0)  # type: ignore[call-arg]
    tk.vmap(loss)(w, 1.0, 2.0)  # type: ignore[call-arg]
    tk.checkpoint(loss)(w, "text")  # type: ignore[arg-type]
    softened()  # type: ignore[call-arg]
