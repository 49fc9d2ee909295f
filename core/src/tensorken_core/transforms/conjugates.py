"""Conjugates of the cotangents of complex tensors, which are trees of their real and imaginary parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken_core import tree
from tensorken_core.language.interpreter import Interpreter


def imaginary_leaves(structure: tree.Structure | None) -> Sequence[int]:
    """The indices of the leaves of a structure that are imaginary parts of complex tensors."""
    if structure is None:
        return ()
    found, leaves = [], 0
    nodes = structure.nodes
    for i, node in enumerate(nodes):
        if node is None:
            leaves += 1
        elif node[0].kind in (complex, Interpreter.complex_type) and nodes[i + 1] is None:
            found.append(leaves + 1)
    return found


def conjugated(structure: tree.Structure | None, leaves: Sequence[Any]) -> list[Any]:
    """The leaves with the conjugates of complex tensors.

    The cotangent of x + iy for a real value f is df/dx - i df/dy, as in JAX: so that the cotangents of a holomorphic
    function are its derivative times those of the result, without conjugates.  The parts have the cotangents df/dx and
    df/dy.
    """
    found = list(leaves)
    for i in imaginary_leaves(structure):
        found[i] = None if found[i] is None else -found[i]
    return found


def conjugated_tree(value: Any) -> Any:
    """The tree with the conjugates of complex tensors; see `conjugated`."""
    leaves, structure = tree.flatten(value)
    return tree.unflatten(structure, conjugated(structure, leaves)) if imaginary_leaves(structure) else value
