"""Pytrees: nested containers of tensors, flattened to their leaves and unflattened from them.

A tree is a leaf or a container of trees.  Containers are dicts, whose children are in the order of the sorted keys,
`OrderedDict` and `defaultdict`, lists, tuples, named tuples, None, which has no leaves, dataclasses, whose fields with
the metadata `{"static": True}` belong to the structure, and the types that `register` adds.  All else is a leaf; so are
complex numbers and tensors, which transforms see as pairs of their parts.

>>> import tensorken as tk
>>> tk.tree.map(lambda x: 2 * x, {"a": 1, "b": (2, 3)})
{'a': 2, 'b': (4, 6)}
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

from tensorken.complex_numbers.tensor import ComplexTensor
from tensorken_core import tree as _core
from tensorken_core.errors import StructureError
from tensorken_core.tree import (
    Container,
    IsLeaf,
    Structure,
    check_same,
    flatten_up_to,
    register,
    register_leaf,
    unflatten,
)

__all__ = [
    "Container",
    "Structure",
    "all",
    "broadcast",
    "check_same",
    "flatten",
    "flatten_up_to",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "register",
    "register_leaf",
    "structure",
    "transpose",
    "unflatten",
]

_NO_INITIALIZER: Any = object()


def _or_complex(is_leaf: IsLeaf | None) -> IsLeaf:
    """`is_leaf`, or whether a value is complex."""
    return lambda x: isinstance(x, ComplexTensor | complex) or (is_leaf is not None and is_leaf(x))


def flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], Structure]:
    """The leaves of a tree, from left to right, and its structure.

    Args:
        tree: any value.
        is_leaf: called with each container; if the result is true, the container is a leaf.

    Raises:
        StructureError: if the tree is deeper than 10 000 levels, for example a list that contains itself.

    >>> import tensorken as tk
    >>> tk.tree.flatten({"b": (1.0, 2.0), "a": 3.0j})
    ([3j, 1.0, 2.0], Structure({'a': *, 'b': (*, *)}))
    """
    return _core.flatten(tree, _or_complex(is_leaf))


def flatten_with_path(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[tuple[str, Any]], Structure]:
    """As `flatten`, but each leaf comes with its path, in Python's syntax.

    >>> import tensorken as tk
    >>> tk.tree.flatten_with_path({"a": [1.0, 2.0], 0: 3.0})[0]
    [('[0]', 3.0), ('["a"][0]', 1.0), ('["a"][1]', 2.0)]
    """
    return _core.flatten_with_path(tree, _or_complex(is_leaf))


def leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a tree, from left to right.

    >>> import tensorken as tk
    >>> tk.tree.leaves([1, None, {"b": 2, "a": 3}])
    [1, 3, 2]
    """
    return _core.leaves(tree, _or_complex(is_leaf))


def structure(tree: Any, is_leaf: IsLeaf | None = None) -> Structure:
    """The structure of a tree.

    >>> import tensorken as tk
    >>> tk.tree.structure([1, 2]) == tk.tree.structure([3, 4])
    True
    """
    return _core.structure(tree, _or_complex(is_leaf))


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Apply `f` to the leaves of `tree`, and to the leaves or subtrees of `rest` at the same paths.

    As in JAX, `tree` alone determines the leaves: at a leaf of `tree`, a tree of `rest` may have a subtree.

    Raises:
        StructureError: if a tree of `rest` differs from `tree` above its leaves.

    >>> import tensorken as tk
    >>> tk.tree.map(lambda x, y: x + y, {"a": 1, "b": [2j]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [(20+2j)]}
    """
    return _core.map(f, tree, *rest, is_leaf=_or_complex(is_leaf))


def all(tree: Any, *, is_leaf: IsLeaf | None = None) -> bool:
    """Whether all leaves of a tree are true.

    >>> import tensorken as tk
    >>> tk.tree.all({"a": True, "b": (True, tk.tensor(1.0))}), tk.tree.all([1, 0])
    (True, False)
    """
    return builtins.all(leaves(tree, is_leaf))


def broadcast(prefix: Any, tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """A tree with the structure of `tree`, whose leaves are those of `prefix` above them.

    Raises:
        StructureError: if the tree differs from `prefix` above the leaves of `prefix`.

    >>> import tensorken as tk
    >>> tk.tree.broadcast({"a": 0, "b": 1}, {"a": [10, 20], "b": 30})
    {'a': [0, 0], 'b': 1}
    """

    def filled(leaf: Any, part: Any) -> Any:
        return map(lambda _: leaf, part, is_leaf=is_leaf)

    return map(filled, prefix, tree, is_leaf=is_leaf)


def leaves_with_path(tree: Any, is_leaf: IsLeaf | None = None) -> list[tuple[str, Any]]:
    """The leaves of a tree, each with its path in Python's syntax.

    >>> import tensorken as tk
    >>> tk.tree.leaves_with_path({"a": [1.0, 2.0]})
    [('["a"][0]', 1.0), ('["a"][1]', 2.0)]
    """
    return flatten_with_path(tree, is_leaf)[0]


def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """As `map`, but `f` gets the path of each leaf first, in Python's syntax.

    Raises:
        StructureError: if a tree of `rest` differs from `tree` above its leaves.

    >>> import tensorken as tk
    >>> tk.tree.map_with_path(lambda path, x: f"{path} = {x}", {"a": [1, 2]})
    {'a': ['["a"][0] = 1', '["a"][1] = 2']}
    """
    pairs, found = flatten_with_path(tree, is_leaf)
    others = [
        flatten_up_to(found, other, f"map_with_path: tree {i}") for i, other in enumerate(rest, start=2)
    ]
    values = zip(*others, strict=True) if others else [()] * len(pairs)
    return unflatten(found, [f(*pair, *more) for pair, more in zip(pairs, values, strict=True)])


def reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _NO_INITIALIZER,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """Combine the leaves of a tree from left to right by a function of two arguments.

    Args:
        function: of the result so far and a leaf.
        tree: any tree.
        initializer: the result before the first leaf; without it, the first leaf.
        is_leaf: whether a subtree counts as a leaf.

    Raises:
        StructureError: if the tree has no leaf, and there is no initializer.

    >>> import tensorken as tk
    >>> tk.tree.reduce(lambda total, x: total + x, {"a": 1, "b": (2, 3)})
    6
    """
    values = leaves(tree, is_leaf)
    if initializer is not _NO_INITIALIZER:
        return functools.reduce(function, values, initializer)
    if not values:
        raise StructureError("reduce: the tree has no leaf; pass an initializer")
    return functools.reduce(function, values)


def transpose(outer: Structure, inner: Structure | None, tree: Any) -> Any:
    """A tree of trees, turned inside out: from `outer` of `inner` to `inner` of `outer`.

    Args:
        outer: the structure of the tree above the inner trees.
        inner: the structure of the inner trees; None for that of the first one.
        tree: the tree of trees.

    Raises:
        StructureError: if the tree has not these structures, or inner is None and there is no inner tree.

    >>> import tensorken as tk
    >>> pairs = {"a": (1, 2), "b": (3, 4)}
    >>> tk.tree.transpose(tk.tree.structure({"a": 0, "b": 0}), tk.tree.structure((0, 0)), pairs)
    ({'a': 1, 'b': 3}, {'a': 2, 'b': 4})
    """
    parts = flatten_up_to(outer, tree, "transpose: the tree")
    if inner is None:
        if not parts:
            raise StructureError("transpose: there is no inner tree; pass its structure")
        inner = structure(parts[0])
    rows = []
    for part in parts:
        check_same(inner, structure(part), "transpose: an inner tree")
        rows.append(leaves(part))
    columns = zip(*rows, strict=True) if rows else [()] * inner.size
    return unflatten(inner, [unflatten(outer, column) for column in columns])
