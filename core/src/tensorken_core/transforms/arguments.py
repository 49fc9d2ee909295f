"""Arguments of transforms: functions, argnums, and leaves as tensors, tangents and cotangents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tensorken_core import tree
from tensorken_core.errors import ArgumentError, GradientError, ShapeError, StructureError
from tensorken_core.language.dtypes import DType, exact
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.language.op import Op
from tensorken_core.tensor.level import interpreter_below
from tensorken_core.tensor.number import as_argument
from tensorken_core.tensor.tensor import Tensor, as_tensor

Function = Callable[..., Any]
Argnums = int | Sequence[int]

for leaf_type in (DType, Op):  # dataclasses that are not containers of tensors
    tree.register_leaf(leaf_type)


def check_function(name: str, f: Any) -> Function:
    """f, checked to be callable."""
    if not callable(f):
        raise ArgumentError(
            f"{name}: need a function, got {type(f).__name__}; write {name}(f), not {name}(f(x))"
        )
    return f  # type: ignore[no-any-return]


def name_of(f: Any) -> str:
    """The name of a user's function, for messages."""
    return str(getattr(f, "__name__", type(f).__name__)).strip("<>")


def check_sequences(name: str, primals: Any, tangents: Any) -> None:
    """Raise unless the primals and the tangents are sequences of one length."""
    for what, values in (("primals", primals), ("tangents", tangents)):
        if not isinstance(values, tuple | list):
            raise ArgumentError(
                f"{name}: {what} must be a tuple or list, one entry for each argument, got {type(values).__name__}"
            )
    if len(primals) != len(tangents):
        raise StructureError(
            f"{name}: {len(primals)} primals and {len(tangents)} tangents; need one tangent for each primal"
        )


def argnums_of(name: str, argnums: Any, count: int, what: str = "argnums") -> tuple[int, ...]:
    """Non-negative positions of the chosen arguments."""
    if type(argnums) is int and 0 <= argnums < count:
        return (argnums,)
    chosen = tuple(argnums) if isinstance(argnums, tuple | list) else (argnums,)
    for i in chosen:
        if type(i) is not int or not -count <= i < count:
            raise ArgumentError(
                f"{name}: {what} {argnums!r} does not fit a call with {count} positional arguments; "
                f"give positions from 0, and pass these arguments by position"
            )
    positions = tuple([i % count for i in chosen])
    if len(set(positions)) != len(positions):
        raise ArgumentError(f"{name}: {what} {argnums!r} contains an argument twice; give each once")
    return positions


def argnums_partial(
    f: Function, arguments: Sequence[Any], positions: Sequence[int], keywords: dict[str, Any]
) -> Function:
    """f as a function of only the chosen arguments."""

    def partial(*chosen: Any) -> Any:
        full = list(arguments)
        for i, x in zip(positions, chosen, strict=True):
            full[i] = x
        return f(*full, **keywords)

    return partial


def at_indices(values: Sequence[Any], indices: Sequence[int], count: int) -> list[Any]:
    """A list of `count` entries with the values at the indices, and None elsewhere."""
    full = [None] * count
    for i, x in zip(indices, values, strict=True):
        full[i] = x
    return full


def per_argnum(chosen: tuple[Any, ...], argnums: Argnums) -> Any:
    """The results for the chosen arguments: the only one if argnums is an int, else a tuple."""
    return chosen[0] if isinstance(argnums, int) else chosen


def as_variable(name: str, leaf: Any, index: int, structure: Any = None) -> Tensor:
    """A leaf of the arguments as a tensor, which must be floating-point."""
    try:
        x = as_argument(leaf)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: argument leaf {index}: {error}") from None
    if x.dtype.kind != "float":
        hint = "" if name in ("jvp", "vjp", "linearize") else ", or leave the argument out of argnums"
        raise GradientError(
            f"{name}: cannot differentiate {x.dtype} of shape {x.shape} at {_path(structure, index)} of the arguments; "
            f"pass floats (x.astype('float32')){hint}"
        )
    return x


def primals_of(name: str, leaves: Sequence[Any], structure: tree.Structure) -> list[Tensor]:
    """The leaves of the arguments as tensors; at least one must be floating-point."""
    values: list[Tensor] = []
    for i, leaf in enumerate(leaves):
        try:
            values.append(as_argument(leaf))
        except ArgumentError as error:
            raise ArgumentError(f"{name}: argument leaf {i}: {error}") from None
    if values and not any([x.dtype.kind == "float" for x in values]):
        as_variable(name, values[0], 0, structure)  # which raises
    return values


def flatten(arguments: Any) -> tuple[list[Any], tree.Structure]:
    """`tree.flatten`, with complex arrays of other libraries as complex tensors, which are trees of their parts."""
    leaves, structure = tree.flatten(arguments)
    if any([type(x) is not Tensor and _is_complex(x) for x in leaves]):
        leaves = [as_tensor(x) if _is_complex(x) else x for x in leaves]
        return tree.flatten(tree.unflatten(structure, leaves))
    return leaves, structure


def with_complex_tensors(arguments: Any) -> Any:
    """The tree with complex arrays of other libraries as complex tensors."""
    if all([type(x) is Tensor for x in arguments]):
        return arguments
    leaves, structure = flatten(arguments)
    return tree.unflatten(structure, leaves)


def _is_complex(x: Any) -> bool:
    return type(x) is not Tensor and getattr(getattr(x, "dtype", None), "kind", None) == "c"


def inner_interpreter(name: str, tensors: Iterable[Tensor | None]) -> Interpreter[Any]:
    """The interpreter below a new level of a transform, from its operands."""
    interpreters = [x.interpreter for x in tensors if x is not None]
    return interpreter_below(interpreters, name)


def float_positions(values: Sequence[Tensor]) -> list[int]:
    """The indices of the floating-point tensors, which have derivatives."""
    return [i for i, x in enumerate(values) if x.dtype.kind == "float"]


def leaves_or_none(structure: tree.Structure, value: Any, what: str) -> list[Any]:
    """The leaves of a tangent or cotangent; None in place of a subtree is None for each of its leaves.

    Raises:
        StructureError: if the value has another structure; the message begins with `what`.
    """
    leaves, prefix = tree.flatten(value, is_leaf=lambda x: x is None)
    try:
        parts = tree.flatten_up_to(prefix, tree.unflatten(structure, range(structure.size)))
        counts = [len(tree.leaves(part)) for part in parts]
        if all([count == 1 or leaf is None for leaf, count in zip(leaves, counts, strict=True)]):
            return [t for t, count in zip(leaves, counts, strict=True) for t in [t] * count]
    except StructureError:
        pass
    tree.check_same(structure, tree.structure(value), what)
    return []


def tangents_of(
    name: str, what: str, structure: tree.Structure, values: Sequence[Tensor], tangents: Any
) -> list[Tensor | None]:
    """The leaves of tangents or cotangents, one for each value; None only for an integer or bool.

    Args:
        name: the transform, for messages.
        what: "tangents" (None for every integer or bool primal), or "cotangent" (may be None for such a result).
        structure: the structure of the values.
        values: the primals or results.
        tangents: the tree of tangents or cotangents.
    """
    leaves, actual = flatten(tangents)
    if actual != structure:
        leaves = tree.flatten_up_to(structure, tangents, f"{name}: {what}")
        required = [
            0 if t is None and x.dtype.kind != "float" else t for x, t in zip(values, leaves, strict=True)
        ]
        tree.check_same(structure, tree.structure(tree.unflatten(structure, required)), f"{name}: {what}")
    for i, (x, t) in enumerate(zip(values, leaves, strict=True)):
        if t is not None and what == "tangents" and x.dtype.kind != "float":
            raise GradientError(
                f"{name}: the primal at {_path(structure, i)} is {x.dtype}, whose tangent must be None; "
                f"pass None, or floats for both (x.astype('float32'))"
            )
    singular = what.removesuffix("s")
    return [
        None if t is None else tangent_like(name, singular, x, t) for x, t in zip(values, leaves, strict=True)
    ]


def _path(structure: Any, index: int) -> str:
    """The path to a leaf of the arguments; without a structure each argument is one leaf."""
    if structure is None:
        return f"[{index}]"
    path: str = tree.flatten_with_path(tree.unflatten(structure, range(structure.size)))[0][index][0]
    return path


def tangent_like(name: str, what: str, x: Tensor, t: Any) -> Tensor:
    """A tangent or cotangent, checked to have the shape and dtype of x; a Python number takes the dtype."""
    tangent = x.scalar(float(t)) if type(t) in (bool, int, float) and x.shape == () else as_tensor(t)
    if tangent.shape != x.shape:
        raise ShapeError(
            f"{name}: the {what} has shape {tangent.shape}, need {x.shape}, that of its primal; reshape it"
        )
    if tangent.dtype is not x.dtype:
        raise GradientError(
            f"{name}: the {what} is {tangent.dtype}, need {x.dtype}, that of its primal; cast it (t.astype)"
        )
    return tangent


class Static:
    """A static argument as part of a cache key, in which 1, 1.0 and True differ, and so do 0.0 and -0.0."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key = _exact_key(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _exact_key(value: Any) -> Any:
    """A key that is equal for equal values of one type; numbers, also in tuples, are compared by their bits."""
    if type(value) in (bool, int, float):
        return exact(value)
    return (type(value), tuple([_exact_key(x) for x in value]) if type(value) is tuple else value)
