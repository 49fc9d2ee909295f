"""The modes in which a function is called: eager, compiled, batched."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

import tensorken as tk

Array = Any


def leaves(result: Any) -> list[Any]:
    """The results of a call as a flat list: tensors, or what numpy makes arrays of."""
    if isinstance(result, tuple | list):
        return [leaf for part in result for leaf in leaves(part)]
    return [result]


def is_operand(x: Any) -> bool:
    """Whether an argument becomes a tensor."""
    return isinstance(x, np.ndarray | np.generic)


def tensors(arguments: tuple[Any, ...]) -> list[Any]:
    """The arguments with tensors for arrays."""
    return [tk.tensor(np.asarray(x)) if is_operand(x) else x for x in arguments]


def closed(f: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], list[Any]]:
    """The function of its tensors alone, and these tensors."""
    places = [k for k, x in enumerate(arguments) if is_operand(x)]

    def of_tensors(*xs: Any) -> Any:
        given = list(arguments)
        for k, x in zip(places, xs, strict=True):
            given[k] = x
        return f(*given)

    return of_tensors, [tk.tensor(np.asarray(arguments[k])) for k in places]


def eager(f: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Array]:
    """The results of a call."""
    of_tensors, xs = closed(f, arguments)
    return [np.asarray(y) for y in leaves(of_tensors(*xs))]


def jit(f: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Array]:
    """The results of a compiled call, without machine code."""
    of_tensors, xs = closed(f, arguments)
    return [np.asarray(y) for y in leaves(tk.jit(of_tensors)(*xs))]


def machine_code(f: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Array]:
    """The results of a compiled call, in machine code."""
    before = os.environ.get("TENSORKEN_COMPILERS")
    os.environ["TENSORKEN_COMPILERS"] = "llvm"
    try:
        return jit(f, arguments)
    finally:
        if before is None:
            del os.environ["TENSORKEN_COMPILERS"]
        else:
            os.environ["TENSORKEN_COMPILERS"] = before


def vmap(f: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Array]:
    """The results of the second of three examples of a batch."""
    of_tensors, xs = closed(f, arguments)
    batches = [tk.stack([x, x, x]) for x in xs]
    return [np.asarray(y)[1] for y in leaves(tk.vmap(of_tensors)(*batches))]


MODES: dict[str, Callable[..., list[Array]]] = {
    "eager": eager,
    "jit": jit,
    "machine code": machine_code,
    "vmap": vmap,
}
