"""Pytrees: leaves, structures, and the message about two different structures."""

from __future__ import annotations

import copy
import pickle
import re
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import pytest
from hypothesis import given, strategies as st

from tensorken_core import tree
from tensorken_core.errors import ArgumentError, StructureError


class Point(NamedTuple):
    x: Any
    y: Any


Pair = namedtuple("Pair", "first second")


@dataclass
class Layer:
    weight: Any
    bias: Any
    activation: str = field(default="relu", metadata={"static": True})


@dataclass(frozen=True, slots=True)
class Scale:
    """Frozen, slotted, with an order of fields that puts the static one first, and checks that want numbers."""

    axis: int = field(metadata={"static": True})
    factor: Any
    doubled: Any = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "doubled", self.factor * 2)


class Matrix:
    """A stranger's container."""

    def __init__(self, rows, name):
        self.rows, self.name = rows, name

    def __eq__(self, other):
        return (self.rows, self.name) == (other.rows, other.name)

    __hash__ = None


tree.register(Matrix, lambda m: (iter(m.rows), m.name), lambda name, rows: Matrix(rows, name))


@tree.register_leaf
@dataclass(frozen=True)
class Unit:
    name: str


keys = st.text(max_size=2) | st.integers(-3, 3) | st.tuples(st.integers(0, 2))
trees = st.recursive(
    st.integers() | st.text(max_size=1) | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
        | st.dictionaries(keys, inner, max_size=3).map(OrderedDict)
        | st.dictionaries(keys, inner, max_size=3).map(partial(defaultdict, list))
        | st.builds(Point, inner, inner)
        | st.builds(Pair, inner, inner)
        | st.builds(Layer, inner, inner, st.sampled_from(["relu", "tanh"]))
        | st.builds(Matrix, st.lists(inner, max_size=3), st.text(max_size=1))
    ),
    max_leaves=12,
)


@pytest.mark.feature(198)
@given(trees)
def test_unflatten_inverts_flatten(value):
    leaves, structure = tree.flatten(value)
    again = tree.unflatten(structure, leaves)
    assert again == value
    assert type(again) is type(value)
    assert tree.flatten(again) == (leaves, structure)
    assert len(leaves) == structure.size
    assert tree.leaves(value) == leaves
    assert tree.structure(value) == structure
    assert hash(tree.structure(again)) == hash(structure)


@pytest.mark.feature(198)
@given(trees)
def test_the_repr_of_a_structure_is_the_tree_with_stars(value):
    stars = tree.map(lambda leaf: Star(), value)
    shown = str(tree.structure(value))
    assert repr(tree.structure(value)) == f"Structure({shown})"
    if "Matrix" not in shown and "defaultdict" not in shown and "OrderedDict" not in shown:
        assert shown == repr(stars)


class Star:
    def __repr__(self):
        return "*"


@pytest.mark.feature(198)
@given(trees)
def test_paths_lead_to_the_leaves(value):
    found, structure = tree.flatten_with_path(value)
    assert structure == tree.structure(value)
    assert [leaf for _, leaf in found] == tree.leaves(value)
    for path, leaf in found:
        if "Matrix" not in str(structure):  # it has no indexing
            assert eval(f"value{path}", {"value": value}) == leaf


@pytest.mark.feature(198)
@given(trees, trees)
def test_check_same_agrees_with_equality(a, b):
    expected, got = tree.structure(a), tree.structure(b)
    if expected == got:
        tree.check_same(expected, got, "tree")
    else:
        with pytest.raises(StructureError) as caught:
            tree.check_same(expected, got, "tree")
        assert str(caught.value).startswith("tree: at ")
        assert "\n" not in str(caught.value)
        assert not re.search(r"expected (.*), got \1;", str(caught.value))


@pytest.mark.feature(198)
@given(trees, trees)
def test_flatten_up_to_refuses_differences_above_the_leaves(a, b):
    structure = tree.structure(a)
    try:
        found = tree.flatten_up_to(structure, b)
    except StructureError:
        assert tree.structure(b) != structure
    else:
        assert tree.unflatten(structure, found) == b


@pytest.mark.feature(198)
@pytest.mark.parametrize(
    ("value", "leaves", "shown"),
    [
        (1.5, [1.5], "*"),
        (None, [], "None"),
        ([], [], "[]"),
        ((), [], "()"),
        ({}, [], "{}"),
        ([1, (2, None), [3]], [1, 2, 3], "[*, (*, None), [*]]"),
        ((1,), [1], "(*,)"),
        ({"b": 2, "a": 1}, [1, 2], "{'a': *, 'b': *}"),
        ({2: "x", 10: "y", 1: "z"}, ["z", "x", "y"], "{1: *, 2: *, 10: *}"),
        ({"b": 1, 2: 2, "a": 3, 1: 4}, [4, 2, 3, 1], "{1: *, 2: *, 'a': *, 'b': *}"),
        ({1j: "first", 0j: "second"}, ["first", "second"], "{1j: *, 0j: *}"),  # complex numbers have no order
        (OrderedDict(b=1, a=2), [1, 2], "OrderedDict({'b': *, 'a': *})"),
        (defaultdict(list, b=1, a=2), [2, 1], "defaultdict(<class 'list'>, {'a': *, 'b': *})"),
        (Point(1, [2, 3]), [1, 2, 3], "Point(x=*, y=[*, *])"),
        (Pair(1, None), [1], "Pair(first=*, second=None)"),
        (Layer(1, 2, "tanh"), [1, 2], "Layer(weight=*, bias=*, activation='tanh')"),
        (Scale(0, 3), [3, 6], "Scale(axis=0, factor=*, doubled=*)"),
        (Matrix([1, [2]], "m"), [1, 2], "Matrix(*, [*], 'm')"),
        (Unit("metre"), [Unit("metre")], "*"),
        ("text", ["text"], "*"),
        ({1, 2}, [{1, 2}], "*"),
        (Layer, [Layer], "*"),  # a class is not an instance of itself
        (range(3), [range(3)], "*"),
    ],
)
def test_leaves_and_containers(value, leaves, shown):
    found, structure = tree.flatten(value)
    assert found == leaves
    assert str(structure) == shown


def test_subclasses_of_containers_are_leaves():
    class Names(list):
        pass

    class Triple(tuple):
        __slots__ = ()

    for value in (Names([1, 2]), Triple((1, 2, 3))):
        assert tree.leaves(value) == [value]


@pytest.mark.feature(198)
def test_dict_structure_does_not_depend_on_the_order_of_insertion():
    assert tree.structure({"a": 0, "b": 0}) == tree.structure({"b": 0, "a": 0})
    assert tree.structure({"a": 0, 1: 0}) == tree.structure({1: 0, "a": 0})
    assert tree.structure(OrderedDict(a=0, b=0)) != tree.structure(OrderedDict(b=0, a=0))
    assert tree.structure({"a": 0}) != tree.structure(OrderedDict(a=0))


@pytest.mark.feature(198)
def test_dataclasses_are_rebuilt_without_their_init():
    again = tree.map(lambda leaf: "traced", Scale(1, 3))  # __post_init__ would make "tracedtraced"
    assert (again.axis, again.factor, again.doubled) == (1, "traced", "traced")
    with pytest.raises(AttributeError):
        again.factor = 2


@pytest.mark.feature(198)
def test_static_fields_belong_to_the_structure():
    assert tree.structure(Layer(1, 2, "relu")) == tree.structure(Layer(3, 4, "relu"))
    assert tree.structure(Layer(1, 2, "relu")) != tree.structure(Layer(1, 2, "tanh"))
    with pytest.raises(
        ArgumentError, match=r"activation=\['relu'\].* cannot be hashed: unhashable type: 'list'"
    ):
        hash(tree.structure(Layer(1, 2, ["relu"])))


def test_is_leaf_stops_at_containers():
    value = {"a": (1, 2), "b": None, "c": [(3, 4)]}
    assert tree.leaves(value, is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), (3, 4)]
    assert tree.leaves(value, is_leaf=lambda x: x is None) == [1, 2, None, 3, 4]
    assert tree.leaves(value, is_leaf=lambda x: True) == [value]
    assert tree.map(sum, value, is_leaf=lambda x: isinstance(x, tuple)) == {"a": 3, "b": None, "c": [7]}
    assert tree.flatten_with_path((1, (2,)), is_leaf=lambda x: x == (2,))[0] == [("[0]", 1), ("[1]", (2,))]


@pytest.mark.feature(198)
def test_map_over_several_trees():
    total = tree.map(lambda *xs: sum(xs), {"a": 1, "b": [2]}, {"b": [20], "a": 10}, {"a": 100, "b": [200]})
    assert total == {"a": 111, "b": [222]}
    moments = tree.map(lambda x, state: (x, state), [1, 2], [{"m": 0}, {"m": 5}])
    assert moments == [(1, {"m": 0}), (2, {"m": 5})]
    assert tree.map(lambda x: x + 1, 1) == 2
    with pytest.raises(
        StructureError, match=r'^map: tree 3: at \["b"\]: expected a list of 1, got a tuple of 1; '
    ):
        tree.map(max, {"a": 1, "b": [2]}, {"a": 1, "b": [2]}, {"a": 1, "b": (2,)})


def test_paths_are_printable():
    value = {"a": [Layer(1, {'say "é"\n': 2})], 0: Point(Matrix([3], ""), 4), (1, "x"): 5}
    assert [path for path, _ in tree.flatten_with_path(value)[0]] == [
        "[0].x[0]",
        "[0].y",
        '["a"][0].weight',
        '["a"][0].bias["say \\"é\\"\\n"]',
        "[(1, 'x')]",
    ]
    assert tree.flatten_with_path(7) == ([("", 7)], tree.LEAF)


class Other:
    @dataclass
    class Layer:
        weight: Any
        bias: Any


@pytest.mark.feature(198)
@pytest.mark.parametrize(
    ("expected", "got", "message"),
    [
        (
            {"a": 0, "b": [0, (0, 0)]},
            {"a": 0, "b": [0, [0, 0]]},
            """at ["b"][1]: expected a tuple of 2, got a list of 2; the structure must be {'a': *, 'b': [*, (*, *)]}""",
        ),
        (1, [1], "at the top: expected a leaf, got a list of 1; the structure must be *"),
        ([1], 1, "at the top: expected a list of 1, got a leaf; the structure must be [*]"),
        ([1, 2], [1, 2, 3], "at the top: expected a list of 2, got a list of 3; "),
        ([1, None], [1, 2], "at [1]: expected None, got a leaf; "),
        ([1, 2], [1, None], "at [1]: expected a leaf, got None; "),
        (
            {"a": 1},
            {"b": 1},
            """expected a dict of 1, got a dict of 1 (with no ["a"], an unexpected ["b"]); """,
        ),
        ({"a": 1, "b": 1}, {"a": 1}, """expected a dict of 2, got a dict of 1 (with no ["b"]); """),
        ({}, {"a": 1, "b": 1}, """got a dict of 2 (with an unexpected ["a"], an unexpected ["b"]); """),
        (
            [OrderedDict(a=1, b=2)],
            [OrderedDict(b=2, a=1)],
            "at [0]: expected an OrderedDict of 2, got an OrderedDict of 2 (in another order); ",
        ),
        (
            Point(1, Layer(1, 2, "relu")),
            Point(1, Layer(1, 2, "tanh")),
            "at .y: expected Layer(weight=*, bias=*, activation='relu'), "
            "got Layer(weight=*, bias=*, activation='tanh'); ",
        ),
        (
            Layer(1, [2]),
            Other.Layer(1, [2]),
            f"at the top: expected a {__name__}.Layer, got a {__name__}.Other.Layer; ",
        ),
        (Matrix([1, 2], "m"), Matrix([1, 2], "n"), "expected Matrix(*, *, 'm'), got Matrix(*, *, 'n'); "),
        (
            defaultdict(list, a=1),
            defaultdict(int, a=1),
            "expected defaultdict(<class 'list'>, {'a': *}), got defaultdict(<class 'int'>, {'a': *}); ",
        ),
        (
            dict.fromkeys("a"),
            dict.fromkeys("abcdefghi"),
            """["b"], an unexpected ["c"], an unexpected ["d"], an unexpected ["e"], an unexpected ["f"] and 3 more)""",
        ),
        (list(range(99)), list(range(98)), f"; the structure must be [{'*, ' * 38}*,..."),
    ],
)
def test_differences_are_one_clear_line(expected, got, message):
    with pytest.raises(StructureError) as caught:
        tree.check_same(tree.structure(expected), tree.structure(got), "tangents")
    assert str(caught.value).startswith("tangents: at ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_flatten_up_to_names_the_place():
    structure = tree.structure({"a": 0, "b": [0, {"c": 0}]})
    assert tree.flatten_up_to(structure, {"b": [None, {"c": (1, 2)}], "a": []}) == [[], None, (1, 2)]
    with pytest.raises(StructureError, match=r'^state: at \["b"\]\[1\]: expected a dict of 1, got a leaf; '):
        tree.flatten_up_to(structure, {"a": 0, "b": [0, 1]}, "state")


def test_unflatten_needs_as_many_leaves():
    structure = tree.structure({"a": 0, "b": (0, 0)})
    for leaves in ([1, 2], [1, 2, 3, 4], []):
        message = f"unflatten: got {len(leaves)} leaves, but {{'a': *, 'b': (*, *)}} has 3"
        with pytest.raises(StructureError, match=f"^{re.escape(message)}$"):
            tree.unflatten(structure, leaves)
    assert tree.unflatten(structure, iter("xyz")) == {"a": "x", "b": ("y", "z")}


def nested(depth):
    value = 1.0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.feature(198)
def test_trees_may_be_deeper_than_the_stack():
    structure = tree.structure(nested(5000))
    assert structure == tree.structure(tree.map(lambda x: x + 1, nested(5000)))
    assert hash(structure) == hash(tree.structure(nested(5000)))
    assert str(structure) == "[" * 5000 + "*" + "]" * 5000
    ((path, leaf),) = tree.flatten_with_path(nested(2000))[0]
    assert (path, leaf) == ("[0]" * 2000, 1.0)
    with pytest.raises(StructureError) as caught:
        tree.check_same(structure, tree.structure(nested(1000)), "x")
    assert "expected a list of 1, got a leaf" in str(caught.value)


@pytest.mark.parametrize("others", [0, 3])
def test_a_tree_that_contains_itself_is_an_error(others):
    value: list[Any] = [1.0] * others
    value.append({"again": value})
    with pytest.raises(
        StructureError, match=r"this list is nested more than 10000 levels deep; .* contain itself"
    ):
        tree.flatten(value)
    assert tree.leaves({"a": 1}) == [1]  # the next call works


def test_structures_are_values():
    structure = tree.structure({"a": Layer(1, Point(2, 3)), "b": None})
    assert {structure: 1}[tree.structure({"b": None, "a": Layer(4, Point(5, 6))})] == 1
    assert structure != "structure"
    for again in (pickle.loads(pickle.dumps(structure)), copy.deepcopy(structure)):
        assert again == structure
        assert tree.unflatten(again, "xyz") == {"a": Layer("x", Point("y", "z")), "b": None}
    assert tree.leaves([structure]) == [structure]


def test_a_leaf_costs_no_walk():
    assert tree.structure(1.0) is tree.structure("x") is tree.LEAF


def test_register():
    class Box:
        def __init__(self, inside):
            self.inside = inside

    before = Box([1])
    assert tree.leaves(before) == [before]  # met before it is registered
    tree.register(Box, lambda box: ([box.inside], None), lambda _, children: Box(*children))
    assert tree.leaves(before) == [1]
    assert tree.map(lambda x: x + 1, Box({"a": 1})).inside == {"a": 2}
    assert str(tree.structure(before)) == "Box([*])"

    @dataclass
    class Units:
        name: str

    assert tree.leaves(Units("m")) == ["m"]
    assert tree.register_leaf(Units) is Units
    assert tree.leaves(Units("m")) == [Units("m")]


@pytest.mark.parametrize("kind", [dict, list, tuple, type(None), Matrix, Unit])
def test_a_type_is_registered_once(kind):
    with pytest.raises(
        ArgumentError, match=f"^register: {kind.__name__} is registered already; a type is registered"
    ):
        tree.register(kind, lambda x: ((), None), lambda _metadata, _children: None)
    with pytest.raises(ArgumentError, match=f"^register_leaf: {kind.__name__} is registered already"):
        tree.register_leaf(kind)
