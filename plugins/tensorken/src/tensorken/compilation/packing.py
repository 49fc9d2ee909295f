"""Packing: leaves put together to a tree, and taken out of one, by code that is compiled once for its structure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core import tree

LONGEST = 1000
"""How many nodes an expression may have."""


def packing(structure: tree.Structure) -> Callable[[Sequence[Any]], Any]:
    """What `tree.unflatten` does for one structure, as a function that is made once and quick to call.

    It trusts the number of its leaves.

    >>> packing(tree.structure([0, {"a": 0}]))("xy")
    ['x', {'a': 'y'}]
    """
    if len(structure.nodes) <= LONGEST:
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
    """How the expressions of a container's children become that of the container; what it names is bound."""

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
    """What takes the leaves out of trees of one structure, as a function that is made once and quick to call.

    Of another tree it gives None, or a list with containers in it: it does not look at what stands where leaves should.

    >>> unpack = unpacking(tree.structure([0, {"a": 0}]))
    >>> unpack(["x", {"a": "y"}]), unpack(["x", {"b": "y"}]), unpack(["x", {"a": ["y"]}])
    (['x', 'y'], None, ['x', ['y']])
    """
    if len(structure.nodes) > LONGEST:
        return functools.partial(_unpacked, structure)
    bound: list[Any] = []
    lines: list[str] = []
    waiting, found, count = ["t0"], [], 0
    for node in structure.nodes:
        name = waiting.pop()
        if node is None:
            found.append(name)
            continue
        children = [f"t{i}" for i in range(count + 1, count + 1 + node[2])]
        count += node[2]
        lines += _opened(name, children, node[0], node[1], bound)
        waiting += reversed(children)
    names = ", ".join(["t0", *[f"b{i}" for i in range(len(bound))]])
    body = "".join([f"        {line}\n" for line in [*lines, f"return [{', '.join(found)}]"]])
    scope: dict[str, Any] = {}
    exec(f"def unpack({names}):\n    try:\n{body}    except KeyError:\n        return None\n", scope)
    unpack: Callable[[Any], list[Any] | None] = scope["unpack"]
    unpack.__defaults__ = tuple(bound)
    return unpack


def _opened(
    name: str, children: list[str], container: tree.Container, metadata: Any, bound: list[Any]
) -> list[str]:
    """Lines that give a container's children names, and end the function if it is another container."""

    def known(value: Any) -> str:
        bound.append(value)
        return f"b{len(bound) - 1}"

    kind, count = container.kind, len(children)
    given = f"[{', '.join(children)}]"  # as a target, which may be empty
    if kind is tuple or kind is list:
        return [
            f"if type({name}) is not {known(kind)} or len({name}) != {count}: return None",
            f"{given} = {name}",
        ]
    if kind is dict:
        items = ", ".join([f"{name}[{known(key)}]" for key in metadata])
        return [
            f"if type({name}) is not dict or len({name}) != {count}: return None",
            f"{given} = [{items}]",
        ]
    return [
        f"if type({name}) is not {known(kind)}: return None",
        f"children, metadata = {known(container.flatten)}({name})",
        f"if metadata != {known(metadata)} or len(children) != {count}: return None",
        f"{given} = children",
    ]


def _unpacked(structure: tree.Structure, nested: Any) -> list[Any] | None:
    leaves, found = tree.flatten(nested)
    return leaves if found == structure else None
