"""Packing: the leaves of a tree put together by an expression that is compiled once for its structure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tensorken import tree

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
