"""Packing: generated statements do what tree.unflatten and tree.flatten do, for all kinds of trees."""

from __future__ import annotations

import dataclasses
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tensorken.compilation.packing import OTHER_STRUCTURE, Code, pack, unpack
from tensorken_core import tree

Pair = namedtuple("Pair", "x y")


@dataclasses.dataclass
class Static:
    """A container with a field that is not one of its children."""

    x: float
    n: int = dataclasses.field(metadata={"static": True})


def packing(structure: tree.Structure) -> Any:
    """A function from a list of leaves to the tree."""
    code = Code()
    leaves = code.variables(structure.size)
    code.lines.append(f"[{', '.join(leaves)}] = leaves")
    code.lines.append(f"return {pack(code, structure, leaves)}")
    return code.function("leaves", "test")


def unpacking(structure: tree.Structure) -> Any:
    """A function from a tree to the list of its leaves, or None if it has another structure."""
    code = Code()
    leaves = unpack(code, structure.nodes, ["nested"], "return None")
    code.lines.append(f"return [{', '.join(leaves)}]")
    function = code.function("nested", "test")

    def leaves_or_none(nested: Any) -> Any:
        try:
            return function(nested)
        except OTHER_STRUCTURE:
            return None

    return leaves_or_none


TREES = st.recursive(
    st.integers() | st.none(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner)
        | st.builds(Pair, inner, inner)
        | st.builds(Static, inner, st.integers(0, 1))
        | st.dictionaries(st.text(max_size=3), inner).map(OrderedDict)
    ),
)


@given(TREES)
def test_packing_agrees_with_unflatten(nested: Any) -> None:
    leaves, structure = tree.flatten(nested)
    packed = packing(structure)(leaves)
    assert repr(packed) == repr(tree.unflatten(structure, leaves))
    assert packed == nested


def test_each_call_makes_new_containers() -> None:
    pack = packing(tree.structure({"a": [0], "b": defaultdict(list, c=1)}))
    one, other = pack([1, 2]), pack([1, 2])
    one["a"].append(3)
    assert other == {"a": [1], "b": {"c": 2}}
    assert other["b"].default_factory is list


@pytest.mark.parametrize("depth", [90, 1000, 5000])
def test_deep_trees(depth: int) -> None:
    nested: Any = 1
    for _ in range(depth):
        nested = (nested,)
    packed = packing(tree.structure(nested))([2])
    for _ in range(depth):
        (packed,) = packed
    assert packed == 2


@given(TREES, TREES)
def test_unpacking_gives_only_the_leaves_of_its_structure(nested: Any, other: Any) -> None:
    leaves, structure = tree.flatten(nested)
    unpack = unpacking(structure)
    assert repr(unpack(nested)) == repr(leaves)
    found = unpack(other)
    if found is not None and tree.flatten(found)[1] == tree.structure([0] * len(found)):
        assert tree.structure(other) == structure


@pytest.mark.parametrize(
    ("nested", "other"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "c": 2}),
        ({"a": 1}, OrderedDict(a=1)),
        ({"a": 1}, defaultdict(int, a=1)),
        ((1, 2), [1, 2]),
        ((1, 2), Pair(1, 2)),
        (Pair(1, 2), (1, 2)),
        ([1, 2], [1, 2, 3]),
        ([], [1]),
        (None, 1),
        ([None], [1]),
        (Static(1.0, 2), Static(1.0, 3)),
    ],
)
def test_unpacking_another_structure_gives_none(nested: Any, other: Any) -> None:
    assert unpacking(tree.structure(nested))(nested) == tree.leaves(nested)
    assert unpacking(tree.structure(nested))(other) is None


def test_large_trees() -> None:
    nested = {"all": [*range(5000)]}
    structure = tree.structure(nested)
    unpack = unpacking(structure)
    assert packing(structure)(unpack(nested)) == nested
    assert unpack({"all": [0] * 5001}) is None


def test_frozen_and_slotted_dataclasses() -> None:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Point:
        x: Any
        name: str = dataclasses.field(metadata={"static": True})
        y: Any = None

    structure = tree.structure(Point(1, "p", [2]))
    assert packing(structure)([3, 4]) == Point(3, "p", [4])
    assert unpacking(structure)(Point(3, "p", [4])) == [3, 4]
    assert unpacking(structure)(Point(3, "q", [4])) is None


def test_generated_functions_are_in_no_cycle() -> None:
    code = Code()
    code.lines.append(f"return {code.constant(Pair)}")
    kept = weakref.ref(code.function("", "test"))
    assert kept() is None


def test_unpacking_deep_trees() -> None:
    nested: Any = 1
    for _ in range(900):
        nested = (nested,)
    assert unpacking(tree.structure(nested))(nested) == [1]
