"""Functions applied along axes: `vectorize`, `apply_along_axis`, `apply_over_axes`.

Raises:
    AxisError: if an axis is out of range, or named twice.
    ShapeError: if shapes do not fit together.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.shaping import moveaxis
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.shapes import Shape, broadcast, short_repr
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor, as_tensor
from tensorken_core.transforms.vmap import vmap

__all__ = ["apply_along_axis", "apply_over_axes", "vectorize"]


def apply_along_axis(func1d: Callable[..., Any], axis: int, x: ArrayLike, *args: Any, **keywords: Any) -> Any:
    """A function of vectors, applied to all vectors of x along an axis by `vmap`.

    Args:
        func1d: a function from a vector to a tensor of any shape, whose axes replace the axis in the result.
        args, keywords: further arguments of the function.

    Raises:
        ShapeError: if x has no vectors along the axis, because another axis has no elements.

    >>> import tensorken as tk
    >>> tk.apply_along_axis(lambda v: v[::-1].cumsum(), 0, [[1, 2], [3, 4]]).tolist()
    [[3, 4], [4, 6]]
    """
    y = as_tensor(x)
    along = axis_of("apply_along_axis", y.shape, axis)
    others = y.shape[:along] + y.shape[along + 1 :]
    if 0 in others:
        raise ShapeError(f"apply_along_axis: shape {y.shape} has no vectors along axis {along}")
    rows = moveaxis(y, along, -1).reshape((math.prod(others), y.shape[along]))
    results = vmap(lambda row: func1d(row, *args, **keywords))(rows)

    def placed(result: Tensor) -> Tensor:
        own = result.ndim - 1
        full = result.reshape((*others, *result.shape[1:]))
        return moveaxis(full, list(range(len(others), full.ndim)), list(range(along, along + own)))

    return tree.map(placed, results)


def apply_over_axes(func: Callable[..., Any], x: ArrayLike, axes: int | Sequence[int]) -> Tensor:
    """A reduction func(x, axis) applied over each of the axes in turn; the axes keep size 1.

    Raises:
        ShapeError: if the function neither keeps the number of axes nor removes one.

    >>> import tensorken as tk
    >>> tk.apply_over_axes(tk.sum, tk.ones((2, 3, 4)), (0, 2)).tolist()
    [[[8.0], [8.0], [8.0]]]
    """
    y = as_tensor(x)
    for axis in axes if isinstance(axes, Sequence) else (axes,):
        along = axis_of("apply_over_axes", y.shape, axis)
        result = func(y, along)
        if result.ndim == y.ndim - 1:
            result = result.reshape((*result.shape[:along], 1, *result.shape[along:]))
        if result.ndim != y.ndim:
            raise ShapeError(
                f"apply_over_axes: the function must keep the axes of shape {y.shape} or remove one, got {result.shape}"
            )
        y = result
    return y


# ---- vectorize ---------------------------------------------------------------------------------------------

_NAMES = r"\([^()]*\)"
_SIGNATURE = re.compile(rf"\s*({_NAMES}(?:\s*,\s*{_NAMES})*)\s*->\s*({_NAMES}(?:\s*,\s*{_NAMES})*)\s*")


def vectorize(
    pyfunc: Callable[..., Any] | None = None,
    *,
    excluded: Iterable[int | str] = (),
    signature: str | None = None,
) -> Any:
    """A function of single elements, or of arrays of some axes, extended to all further axes, which broadcast.

    It is a call of `vmap`, so the function is called once.

    Args:
        pyfunc: the function; without it a decorator is returned.
        excluded: the indices and names of arguments that are passed unchanged.  Keyword arguments are always.
        signature: the axes that the function itself takes and returns, such as "(m,n),(n)->(m)"; by default none.

    Raises:
        ArgumentError: if the signature is malformed; or when called, if it has another number of arguments.
        ShapeError: when called, if sizes do not fit the signature or do not broadcast.

    >>> import tensorken as tk
    >>> tk.vectorize(lambda a, b: tk.where(a > b, a, b))([[1], [5]], [2, 3]).tolist()
    [[2, 3], [5, 5]]
    >>> tk.vectorize(tk.dot, signature="(n),(n)->()")(tk.ones((4, 1, 3)), tk.ones((2, 3))).shape
    (4, 2)
    """
    if pyfunc is None:
        return functools.partial(vectorize, excluded=excluded, signature=signature)
    parsed = None if signature is None else _parsed(signature)
    unchanged = set(excluded)

    @functools.wraps(pyfunc)
    def call(*arguments: Any, **keywords: Any) -> Any:
        mapped = [i for i in range(len(arguments)) if i not in unchanged]
        core = [()] * len(mapped) if parsed is None else parsed
        if len(core) != len(mapped):
            raise ArgumentError(
                f"vectorize: the signature {signature} has {len(core)} arguments, got {len(mapped)}"
            )
        tensors = [as_tensor(arguments[i]) for i in mapped]
        loop = _loop_shape(tensors, core)

        def once(*rows: Tensor) -> Any:
            full = list(arguments)
            for i, row in zip(mapped, rows, strict=True):
                full[i] = row
            return pyfunc(*full, **keywords)

        if not loop:
            return tree.map(as_tensor, once(*tensors))
        count = math.prod(loop)
        flat = []
        for x, names in zip(tensors, core, strict=True):
            own = x.shape[x.ndim - len(names) :]
            flat.append(x.broadcast_to((*loop, *own)).reshape((count, *own)))
        return tree.map(lambda y: y.reshape((*loop, *y.shape[1:])), vmap(once)(*flat))

    return call


def _parsed(signature: str) -> list[tuple[str, ...]]:
    """The names of the axes of each argument."""
    match = _SIGNATURE.fullmatch(signature)
    if match is None:
        raise ArgumentError(
            f"vectorize: the signature {short_repr(signature)} is malformed; write one such as '(m,n),(n)->(m)'"
        )
    groups = re.findall(r"\(([^()]*)\)", match[1])
    return [tuple([name.strip() for name in group.split(",") if name.strip()]) for group in groups]


def _loop_shape(tensors: Sequence[Tensor], core: Sequence[tuple[str, ...]]) -> Shape:
    """The broadcast shape of the axes that are not the function's own; the own axes must fit each other."""
    sizes: dict[str, int] = {}
    loop: Shape = ()
    for x, names in zip(tensors, core, strict=True):
        if x.ndim < len(names):
            raise ShapeError(
                f"vectorize: an argument needs the axes ({','.join(names)}), got shape {x.shape}"
            )
        for name, size in zip(names, x.shape[x.ndim - len(names) :], strict=True):
            expected = int(name) if name.isdigit() else sizes.setdefault(name, size)
            if expected != size:
                raise ShapeError(
                    f"vectorize: axis {name} has size {expected} and {size}; sizes must be equal"
                )
        try:
            loop = broadcast(loop, x.shape[: x.ndim - len(names)])
        except ShapeError as error:
            raise ShapeError(f"vectorize: {error}") from None
    return loop
