"""Packing: what tree.unflatten does, for trees of every kind, by one expression."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tensorken import tree
from tensorken.packing import LONGEST, packing

Pair = namedtuple("Pair", "x y")

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
def test_it_gives_what_unflatten_gives(nested: Any) -> None:
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


def test_long_ones_are_no_expression() -> None:
    structure = tree.structure([0] * LONGEST)
    pack = packing(structure)
    assert isinstance(pack, functools.partial)
    assert pack(range(LONGEST)) == [*range(LONGEST)]
