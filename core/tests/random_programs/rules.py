"""Functions with custom derivative rules, for Tensorken and JAX: `xp` is either of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NAMES = ("with_jvp", "with_vjp")


def with_jvp(xp: Any, f: Callable[..., Any], derivative: Callable[..., Any]) -> Any:
    """A function of one tensor with the custom JVP `derivative(x) * tangent`."""
    g = xp.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (g(*primals), derivative(*primals) * tangents[0]))
    return g


def with_vjp(xp: Any, f: Callable[..., Any], derivative: Callable[..., Any]) -> Any:
    """A function of one tensor with the custom VJP `derivative(x) * cotangent`."""
    g = xp.custom_vjp(f)
    g.defvjp(lambda x: (f(x), x), lambda x, cotangent: (derivative(x) * cotangent,))
    return g
