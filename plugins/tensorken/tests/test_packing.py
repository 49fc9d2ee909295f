"""Packing: generated code does what tree.unflatten and tree.flatten do, for all kinds of trees."""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tensorken.compilation.packing import MAX_NODES, packing, unpacking
from tensorken_core import tree

Pair = namedtuple("Pair", "x y")


@dataclasses.dataclass
class Static:
    """A container with a field that is not one of its children."""

    x: float
    n: int = dataclasses.field(metadata={"static": True})


TREES = st.recursive(
    st.integers() | st.none(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner)
        | st.builds(Pair, inner, inner)
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


def test_long_structures_are_not_one_expression() -> None:
    structure = tree.structure([0] * MAX_NODES)
    pack = packing(structure)
    assert isinstance(pack, functools.partial)
    assert pack(range(MAX_NODES)) == [*range(MAX_NODES)]


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


@pytest.mark.parametrize("count", [MAX_NODES - 1, MAX_NODES])
def test_unpacking_large_trees(count: int) -> None:
    nested = {"all": [0] * count}
    unpack = unpacking(tree.structure(nested))
    assert unpack(nested) == [0] * count
    assert unpack({"all": [0] * (count + 1)}) is None


def test_unpacking_deep_trees() -> None:
    nested: Any = 1
    for _ in range(900):
        nested = (nested,)
    assert unpacking(tree.structure(nested))(nested) == [1]
