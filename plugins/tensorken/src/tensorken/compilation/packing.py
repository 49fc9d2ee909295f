"""Packing: functions that build a tree from leaves, or extract the leaves, generated once for each structure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core import tree

MAX_NODES = 1000
"""The most nodes of a generated expression."""


def packing(structure: tree.Structure) -> Callable[[Sequence[Any]], Any]:
    """A fast function that does what `tree.unflatten` does for one structure.

    It does not check the number of leaves.

    >>> packing(tree.structure([0, {"a": 0}]))("xy")
    ['x', {'a': 'y'}]
    """
    if len(structure.nodes) <= MAX_NODES:
        bound: list[Any] = []
        text = tree.combine(structure, [f"leaves[{i}]" for i in range(structure.size)], _expression(bound))
        names = ", ".join(["leaves", *[f"b{i}" for i in range(len(bound))]])
        try:
            make: Callable[..., Any] = eval(f"lambda {names}: {text}")
        except (
            SyntaxError,
            MemoryError,
            RecursionError,
        ):  # Python's parser has a limit of its own on nesting
            pass
        else:
            make.__defaults__ = tuple(bound)
            return make
    return functools.partial(tree.unflatten, structure)


def _expression(bound: list[Any]) -> Callable[[tree.Container], Callable[[Any, list[str]], str]]:
    """A function from a container to its expression in terms of its children's; constants of it are added to
    `bound`.
    """

    def name(value: Any) -> str:
        bound.append(value)
        return f"b{len(bound) - 1}"

    def of(container: tree.Container) -> Callable[[Any, list[str]], str]:
        def expression(metadata: Any, children: list[str]) -> str:
            inner = ", ".join(children)
            if container.kind is tuple:
                return f"({inner}{',' * (len(children) == 1)})"
            if container.kind is list:
                return f"[{inner}]"
            if container.kind is dict:
                items = [f"{name(key)}: {child}" for key, child in zip(metadata, children, strict=True)]
                return f"{{{', '.join(items)}}}"
            return f"{name(container.unflatten)}({name(metadata)}, [{inner}])"

        return expression

    return of


def unpacking(structure: tree.Structure) -> Callable[[Any], list[Any] | None]:
    """A fast function that extracts the leaves of trees of one structure.

    For another tree it returns None, or a list that contains containers: it does not check that leaves are leaves.

    >>> unpack = unpacking(tree.structure([0, {"a": 0}]))
    >>> unpack(["x", {"a": "y"}]), unpack(["x", {"b": "y"}]), unpack(["x", {"a": ["y"]}])
    (['x', 'y'], None, ['x', ['y']])
    """
    if len(structure.nodes) > MAX_NODES:
        return functools.partial(_unpacked, structure)
    bound: list[Any] = []
    lines: list[str] = []
    pending, found, count = ["t0"], [], 0
    for node in structure.nodes:
        name = pending.pop()
        if node is None:
            found.append(name)
            continue
        children = [f"t{i}" for i in range(count + 1, count + 1 + node[2])]
        count += node[2]
        lines += _unpack_lines(name, children, node[0], node[1], bound)
        pending += reversed(children)
    names = ", ".join(["t0", *[f"b{i}" for i in range(len(bound))]])
    body = "".join([f"        {line}\n" for line in [*lines, f"return [{', '.join(found)}]"]])
    scope: dict[str, Any] = {}
    exec(f"def unpack({names}):\n    try:\n{body}    except KeyError:\n        return None\n", scope)
    unpack: Callable[[Any], list[Any] | None] = scope["unpack"]
    unpack.__defaults__ = tuple(bound)
    return unpack


def _unpack_lines(
    name: str, children: list[str], container: tree.Container, metadata: Any, bound: list[Any]
) -> list[str]:
    """Code that binds a container's children to names, and returns None for another container."""

    def bind(value: Any) -> str:
        bound.append(value)
        return f"b{len(bound) - 1}"

    kind, count = container.kind, len(children)
    targets = f"[{', '.join(children)}]"  # an assignment target, which may be empty
    if kind is tuple or kind is list:
        return [
            f"if type({name}) is not {bind(kind)} or len({name}) != {count}: return None",
            f"{targets} = {name}",
        ]
    if kind is dict:
        items = ", ".join([f"{name}[{bind(key)}]" for key in metadata])
        return [
            f"if type({name}) is not dict or len({name}) != {count}: return None",
            f"{targets} = [{items}]",
        ]
    return [
        f"if type({name}) is not {bind(kind)}: return None",
        f"children, metadata = {bind(container.flatten)}({name})",
        f"if metadata != {bind(metadata)} or len(children) != {count}: return None",
        f"{targets} = children",
    ]


def _unpacked(structure: tree.Structure, nested: Any) -> list[Any] | None:
    leaves, found = tree.flatten(nested)
    return leaves if found == structure else None
