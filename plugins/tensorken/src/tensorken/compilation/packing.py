"""Packing: generated statements that unpack trees of one structure, or build such a tree from its leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorken.programs.code import Code
from tensorken_core import tree

OTHER_STRUCTURE = (AttributeError, KeyError, ValueError)
"""The errors of the statements of `unpack` for a tree of another structure."""


def unpack(code: Code, nodes: Sequence[tree.Node], trees: Sequence[str], otherwise: str) -> list[str]:
    """Write statements that unpack trees; return the names of the leaves.

    The statements do not check that leaves are leaves; for another structure they may raise `OTHER_STRUCTURE`.

    Args:
        code: gets the statements.
        nodes: the nodes of the structures of the trees, one after the other.
        trees: the names of the trees.
        otherwise: the statement that runs if a tree has another structure.
    """
    leaves: list[str] = []
    pending = [*reversed(trees)]
    for node in nodes:
        name = pending.pop()
        if node is None:
            leaves.append(name)
            continue
        container, metadata, count = node
        children = code.variables(count)
        pending += reversed(children)
        kind, targets = code.constant(container.kind), f"[{', '.join(children)}]"  # targets may be empty
        if container.kind is type(None):
            code.lines.append(f"if {name} is not None: {otherwise}")
        elif container.kind is tuple or container.kind is list:
            code.lines += [f"if type({name}) is not {kind}: {otherwise}", f"{targets} = {name}"]
        elif container.kind is dict:
            code.lines.append(f"if type({name}) is not dict or len({name}) != {count}: {otherwise}")
            for child, key in zip(children, metadata, strict=True):
                code.lines.append(f"{child} = {name}[{code.constant(key)}]")
        elif container.fields is not None:
            fields, static = container.fields
            code.lines.append(f"if type({name}) is not {kind}: {otherwise}")
            if static:
                values = "".join([f"{name}.{field}, " for field in static])
                code.lines.append(f"if ({values}) != {code.constant(metadata)}: {otherwise}")
            for child, field in zip(children, fields, strict=True):
                code.lines.append(f"{child} = {name}.{field}")
        else:
            code.lines += [
                f"if type({name}) is not {kind}: {otherwise}",
                f"children, metadata = {code.constant(container.flatten)}({name})",
                f"if metadata != {code.constant(metadata)}: {otherwise}",
                f"{targets} = children",
            ]
    return leaves


def pack(code: Code, structure: tree.Structure, leaves: Sequence[str]) -> str:
    """Write statements that build the tree with these leaves as `tree.unflatten` does; return its name.

    Args:
        code: gets the statements.
        structure: the structure of the tree.
        leaves: the names of the leaves.
    """

    def builder(container: tree.Container) -> Callable[[Any, list[str]], str]:
        def build(metadata: Any, children: list[str]) -> str:
            kind, inner, name = container.kind, ", ".join(children), code.variable()
            if kind is type(None):
                return "None"
            if kind is tuple:
                code.lines.append(f"{name} = ({inner}{',' * (len(children) == 1)})")
            elif kind is list:
                code.lines.append(f"{name} = [{inner}]")
            elif kind is dict:
                keys = [code.constant(key) for key in metadata]
                items = ", ".join([f"{key}: {child}" for key, child in zip(keys, children, strict=True)])
                code.lines.append(f"{name} = {{{items}}}")
            elif container.fields is not None:
                set_field = code.constant(object.__setattr__)  # also if the class is frozen
                code.lines.append(f"{name} = {code.constant(object.__new__)}({code.constant(kind)})")
                values = [*children, *[code.constant(value) for value in metadata]]
                for field, value in zip([*container.fields[0], *container.fields[1]], values, strict=True):
                    code.lines.append(f"{set_field}({name}, {field!r}, {value})")
            else:
                unflatten = code.constant(container.unflatten)
                code.lines.append(f"{name} = {unflatten}({code.constant(metadata)}, [{inner}])")
            return name

        return build

    built: str = tree.combine(structure, [*leaves], builder)
    return built
