"""What transforms take and get: functions, argnums, leaves that are, or become, tensors, and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core import tree
from tensorken_core.errors import ArgumentError, GradientError, ShapeError, StructureError
from tensorken_core.language.dtypes import DType, exact
from tensorken_core.language.op import Op
from tensorken_core.tensor.tensor import Tensor, as_tensor

Function = Callable[..., Any]
Argnums = int | Sequence[int]

for record in (DType, Op):  # dataclasses, but no containers of tensors
    tree.register_leaf(record)


def check_function(name: str, f: Any) -> Function:
    """f, which must be callable."""
    if not callable(f):
        raise ArgumentError(
            f"{name}: need a function, got {type(f).__name__}; write {name}(f), not {name}(f(x))"
        )
    return f  # type: ignore[no-any-return]


def name_of(f: Any) -> str:
    """The name of a user's function, for messages."""
    return str(getattr(f, "__name__", type(f).__name__)).strip("<>")


def check_sequences(name: str, primals: Any, tangents: Any) -> None:
    """Raise unless both are sequences of one length."""
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise ArgumentError(
                f"{name}: {what} must be a tuple or list, one entry for each argument, got {type(given).__name__}"
            )
    if len(primals) != len(tangents):
        raise StructureError(
            f"{name}: {len(primals)} primals and {len(tangents)} tangents; need one tangent for each primal"
        )


def places_of(name: str, argnums: Any, count: int, what: str = "argnums") -> tuple[int, ...]:
    """Non-negative positions of the chosen arguments."""
    if type(argnums) is int and 0 <= argnums < count:
        return (argnums,)
    chosen = tuple(argnums) if isinstance(argnums, tuple | list) else (argnums,)
    for i in chosen:
        if type(i) is not int or not -count <= i < count:
            raise ArgumentError(
                f"{name}: {what} {argnums!r} does not fit a call with {count} positional arguments; "
                f"give their places, from 0, and pass what they name by position"
            )
    places = tuple([i % count for i in chosen])
    if len(set(places)) != len(places):
        raise ArgumentError(f"{name}: {what} {argnums!r} names an argument twice; name each once")
    return places


def partial_of(
    f: Function, arguments: Sequence[Any], places: Sequence[int], keywords: dict[str, Any]
) -> Function:
    """f as a function of the chosen arguments alone."""

    def partial(*chosen: Any) -> Any:
        full = list(arguments)
        for i, x in zip(places, chosen, strict=True):
            full[i] = x
        return f(*full, **keywords)

    return partial


def at_places(values: Sequence[Any], places: Sequence[int], count: int) -> list[Any]:
    """A list of so many entries with the values at their places, and None elsewhere."""
    full = [None] * count
    for i, x in zip(places, values, strict=True):
        full[i] = x
    return full


def over_inputs(chosen: tuple[Any, ...], argnums: Argnums) -> Any:
    """What belongs to the chosen arguments: alone if one was chosen by an int, else as a tuple."""
    return chosen[0] if isinstance(argnums, int) else chosen


def variable(name: str, leaf: Any, index: int, structure: Any = None) -> Tensor:
    """A leaf of the arguments as a floating-point tensor."""
    try:
        x = as_tensor(leaf)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: argument leaf {index}: {error}") from None
    if x.dtype.kind != "float":
        out_of = "" if name in ("jvp", "vjp", "linearize") else ", or leave the argument out of argnums"
        raise GradientError(
            f"{name}: cannot differentiate {x.dtype} of shape {x.shape} at {_path(structure, index)} of the arguments; "
            f"pass floats (x.astype('float32')){out_of}"
        )
    return x


def primals_of(name: str, leaves: Sequence[Any], structure: tree.Structure) -> list[Tensor]:
    """The leaves of the arguments as tensors; integers and bools may be among them, but not alone."""
    values: list[Tensor] = []
    for i, leaf in enumerate(leaves):
        try:
            values.append(as_tensor(leaf))
        except ArgumentError as error:
            raise ArgumentError(f"{name}: argument leaf {i}: {error}") from None
    if values and not any([x.dtype.kind == "float" for x in values]):
        variable(name, values[0], 0, structure)  # which raises
    return values


def floats_among(values: Sequence[Tensor]) -> list[int]:
    """The places of the floating-point tensors: of those that have derivatives."""
    return [i for i, x in enumerate(values) if x.dtype.kind == "float"]


def directions_of(
    name: str, what: str, structure: tree.Structure, values: Sequence[Tensor], given: Any
) -> list[Tensor | None]:
    """The leaves of tangents or cotangents, one for each value; None where None stands for an integer's.

    Args:
        name: the transform, for messages.
        what: "tangents" of primals, in which an integer or bool must have None, or "cotangent" of results, in which it
            may.
        structure: the structure of the values.
        values: what has these tangents or cotangents.
        given: the tree of them.
    """
    leaves, own = tree.flatten(given)
    if own != structure:
        parts = tree.flatten_up_to(structure, given, f"{name}: {what}")
        filled = [
            _NONE if t is None and x.dtype.kind != "float" else t for x, t in zip(values, parts, strict=True)
        ]
        leaves, own = tree.flatten(tree.unflatten(structure, filled))
        tree.check_same(structure, own, f"{name}: {what}")
    found: list[Tensor | None] = []
    for i, (x, t) in enumerate(zip(values, leaves, strict=True)):
        if t is not _NONE and what == "tangents" and x.dtype.kind != "float":
            raise GradientError(
                f"{name}: the primal at {_path(structure, i)} is {x.dtype}, whose tangent must be None; "
                f"pass None, or floats for both (x.astype('float32'))"
            )
        found.append(None if t is _NONE else matching(name, what.removesuffix("s"), x, t))
    return found


_NONE = object()
"""Stands for a None that is as a leaf."""


def _path(structure: Any, index: int) -> str:
    """Where a leaf stands among the arguments, each of which is one leaf if there is no structure."""
    if structure is None:
        return f"[{index}]"
    path: str = tree.flatten_with_path(tree.unflatten(structure, range(structure.size)))[0][index][0]
    return path


def matching(name: str, what: str, x: Tensor, t: Any) -> Tensor:
    """A tangent or cotangent, which must have x's shape and dtype; a Python number takes the dtype."""
    found = x.scalar(float(t)) if type(t) in (bool, int, float) and x.shape == () else as_tensor(t)
    if found.shape != x.shape:
        raise ShapeError(
            f"{name}: the {what} has shape {found.shape}, need {x.shape}, that of its primal; reshape it"
        )
    if found.dtype is not x.dtype:
        raise GradientError(
            f"{name}: the {what} is {found.dtype}, need {x.dtype}, that of its primal; cast it (t.astype)"
        )
    return found


class Static:
    """An argument that the function gets as it is: 1, 1.0 and True are three of them, 0.0 and -0.0 two."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key = _told_apart(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _told_apart(value: Any) -> Any:
    """What is equal for values of one type that are equal, numbers and tuples of them by their bits."""
    if type(value) in (bool, int, float):
        return exact(value)
    return (type(value), tuple([_told_apart(x) for x in value]) if type(value) is tuple else value)
