"""Pytrees: nested containers of tensors, flattened to their leaves and unflattened from them.

A tree is a leaf or a container of trees. The containers are

* `dict`: children in the order of the sorted keys, so two dicts with the same keys have the same structure
  whatever the order of insertion. Keys of types that do not compare (`1` and `"a"`) are sorted by the type's
  name first; keys that still do not compare keep the order of insertion.
* `list`, `tuple`, named tuples, `OrderedDict` (its order counts) and `defaultdict`;
* `None`, which has no leaves;
* dataclasses, frozen or not: the fields are the children, except that a field with the metadata
  `{"static": True}` belongs to the structure, and its value must be hashable. They are unflattened
  from their fields alone, without a call of `__init__` or `__post_init__`;
* the types that `register` adds.

Everything else is a leaf, other subclasses of `dict`, `list` and `tuple` included. No function here recurses, so
trees may be deeper than Python's stack.
"""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias, TypeVar

from tensorken_core.errors import ArgumentError, StructureError

__all__ = ["Container", "Structure", "check_same", "flatten", "flatten_up_to", "flatten_with_path", "leaves"]
__all__ += ["map", "register", "register_leaf", "structure", "unflatten"]

T = TypeVar("T", bound=type)
IsLeaf: TypeAlias = Callable[[Any], bool]

MAX_DEPTH = 10_000  # levels; a deeper tree is assumed to contain itself


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Container:
    """How to flatten, unflatten and print containers of one type.

    `flatten` returns the children and the container's metadata, which the other functions take.  A dataclass has
    `fields`: the names of the fields that are the children, and of the static ones, whose values are the metadata.

    >>> container, metadata, count = structure({"b": 1.0, "a": 2.0}).nodes[0]
    >>> container.kind.__name__, metadata, count, container.steps(metadata, count)
    ('dict', ('a', 'b'), 2, ['["a"]', '["b"]'])
    """

    kind: type
    flatten: Callable[[Any], tuple[Sequence[Any], Hashable]]
    unflatten: Callable[[Any, list[Any]], Any]
    steps: Callable[[Any, int], Iterable[str]]  # from (metadata, number of children): the path to each child
    show: Callable[[Any, list[str]], str]  # from (metadata, children as text): the container as text
    fields: tuple[Sequence[str], Sequence[str]] | None = None

    def __reduce__(self) -> tuple[Callable[[type], Container | None], tuple[type]]:
        return container_of, (self.kind,)  # so that structures can be pickled


Node: TypeAlias = (
    "tuple[Container, Any, int] | None"  # container, metadata, number of children; None is a leaf
)


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Structure:
    """The structure of a tree without its leaves: equal for equal nesting, keys and static fields.

    >>> structure({"b": (1.0, 2.0), "a": None})
    Structure({'a': None, 'b': (*, *)})
    """

    nodes: tuple[Node, ...]  # in the order of a walk from the root: each container before its children
    size: int  # the number of leaves

    def __hash__(self) -> int:
        try:
            return hash(self.nodes)
        except TypeError as error:
            raise ArgumentError(
                f"the structure {self} has static data that cannot be hashed: {error}"
            ) from None

    def __repr__(self) -> str:
        return f"Structure({self})"

    def __str__(self) -> str:
        return str(combine(self, ["*"] * self.size, attrgetter("show")))


LEAF = Structure((None,), 1)


# Flattening and unflattening.


def flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], Structure]:
    """The leaves of a tree, from left to right, and its structure.

    Args:
        tree: any value.
        is_leaf: called with each container; if the result is true, the container is a leaf.

    Raises:
        StructureError: if the tree is deeper than 10 000 levels, for example a list that contains itself.

    >>> flatten({"b": (1.0, 2.0), "a": 3.0})
    ([3.0, 1.0, 2.0], Structure({'a': *, 'b': (*, *)}))
    """
    if _containers[type(tree)] is None:
        return [tree], LEAF
    leaves: list[Any] = []
    nodes: list[Node] = []
    levels: list[Iterator[Any]] = [iter((tree,))]
    while levels:
        for value in levels[-1]:
            container = _containers[type(value)]
            if container is None or (is_leaf is not None and is_leaf(value)):
                leaves.append(value)
                nodes.append(None)
                continue
            children, metadata = container.flatten(value)
            nodes.append((container, metadata, len(children)))
            levels.append(iter(children))
            if len(levels) > MAX_DEPTH:
                raise StructureError(
                    f"flatten: this {type(tree).__name__} is nested more than {MAX_DEPTH} levels deep; "
                    "make sure that it does not contain itself"
                )
            break
        else:
            levels.pop()
    return leaves, Structure(tuple(nodes), len(leaves))


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these leaves: the inverse of `flatten`.

    Raises:
        StructureError: if the number of leaves differs from `structure.size`.

    >>> unflatten(structure([0, {"a": 0}]), "xy")
    ['x', {'a': 'y'}]
    """
    leaves = list(leaves)
    if len(leaves) != structure.size:
        raise StructureError(
            f"unflatten: got {len(leaves)} leaves, but {_brief(structure)} has {structure.size}"
        )
    return combine(structure, leaves, attrgetter("unflatten"))


def leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a tree, from left to right.

    >>> leaves([1, None, {"b": 2, "a": 3}])
    [1, 3, 2]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf | None = None) -> Structure:
    """The structure of a tree.

    >>> structure([1, 2]) == structure([3, 4]), structure([1, 2]) == structure((1, 2))
    (True, False)
    """
    return flatten(tree, is_leaf)[1]


def flatten_with_path(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[tuple[str, Any]], Structure]:
    """As `flatten`, but each leaf comes with its path, in Python's syntax.

    >>> flatten_with_path({"a": [1.0, 2.0], 0: 3.0})[0]
    [('[0]', 3.0), ('["a"][0]', 1.0), ('["a"][1]', 2.0)]
    """
    leaves, structure = flatten(tree, is_leaf)
    nodes = structure.nodes
    paths = (path for path, node in zip(_paths(nodes), nodes, strict=True) if node is None)
    return list(zip(paths, leaves, strict=True)), structure


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Apply `f` to the leaves of `tree`, and to the leaves or subtrees of `rest` at the same paths.

    As in JAX, `tree` alone determines the leaves: at a leaf of `tree`, a tree of `rest` may have a subtree.

    Raises:
        StructureError: if a tree of `rest` differs from `tree` above its leaves.

    >>> map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    first, structure = flatten(tree, is_leaf)
    others = [flatten_up_to(structure, other, f"map: tree {i}") for i, other in enumerate(rest, start=2)]
    return unflatten(structure, [f(*values) for values in zip(first, *others, strict=True)])


def flatten_up_to(structure: Structure, tree: Any, what: str = "tree") -> list[Any]:
    """The leaves or subtrees of `tree` at the paths of the leaves of `structure`.

    Raises:
        StructureError: if the tree differs from the structure above those paths; the message begins with `what`.

    >>> flatten_up_to(structure({"a": 0, "b": 0}), {"a": 1, "b": [2, 3]})
    [1, [2, 3]]
    """
    parts: list[Any] = []
    values = [tree]
    for position, node in enumerate(structure.nodes):
        value = values.pop()
        if node is None:
            parts.append(value)
            continue
        container = _containers[type(value)]
        children, metadata = container.flatten(value) if container else ((), None)
        actual = (container, metadata, len(children)) if container else None
        if actual != node:
            raise StructureError(_difference(structure, position, actual, what))
        values.extend(reversed(children))
    return parts


def check_same(expected: Structure, got: Structure, what: str) -> None:
    """Raise a StructureError that shows where two structures first differ; the message begins with `what`.

    Raises:
        StructureError: if they differ.

    >>> check_same(structure({"a": 0, "b": (0, 0)}), structure({"a": 0, "b": [0, 0]}), "tangents")
    Traceback (most recent call last):
    tensorken_core.errors.StructureError: tangents: at ["b"]: expected a tuple of 2, got a list of 2; \
the structure must be {'a': *, 'b': (*, *)}
    """
    if expected == got:
        return
    for position, (node, actual) in enumerate(zip(expected.nodes, got.nodes, strict=False)):
        if node != actual:
            raise StructureError(_difference(expected, position, actual, what))


def combine(structure: Structure, leaves: list[Any], how: Callable[[Container], Callable[..., Any]]) -> Any:
    """Combine the children of each container, innermost first, by `how(container)(metadata, children)`.

    `leaves` is empty afterwards.
    """
    done: list[Any] = []
    # in reverse order, the children of a container come before the container, and the first child comes last
    for node in reversed(structure.nodes):
        if node is None:
            done.append(leaves.pop())
        else:
            container, metadata, count = node
            start = len(done) - count
            children = done[start:]
            children.reverse()
            del done[start:]
            done.append(how(container)(metadata, children))
    return done[0]


# Paths and containers in messages.


def _paths(nodes: Iterable[Node]) -> Iterator[str]:
    """The path to each node."""
    pending = [""]
    for node in nodes:
        path = pending.pop()
        yield path
        if node is not None:
            container, metadata, count = node
            pending.extend(path + step for step in reversed([*container.steps(metadata, count)]))


def _difference(expected: Structure, position: int, got: Node, what: str) -> str:
    """The message for a tree that first differs at this node."""
    node = expected.nodes[position]
    path = next(path for i, path in enumerate(_paths(expected.nodes)) if i == position)
    expected_text, got_text, note = _kind(node), _kind(got), ""
    if node and got and node[0] is got[0]:
        steps, got_steps = [*node[0].steps(*node[1:])], [*got[0].steps(*got[1:])]
        if steps == got_steps:  # then the static data differ
            expected_text, got_text = (n[0].show(n[1], ["*"] * n[2]) for n in (node, got))
        elif set(steps) == set(got_steps):
            note = " (in another order)"
        elif node[1] is not None:  # the children have names
            clashes = [f"no {step}" for step in steps if step not in got_steps]
            clashes += [f"an unexpected {step}" for step in got_steps if step not in steps]
            more = f" and {len(clashes) - 5} more" if len(clashes) > 5 else ""
            note = f" (with {', '.join(clashes[:5])}{more})"
    elif expected_text == got_text and node and got:  # two classes of one name
        expected_text, got_text = (f"a {n[0].kind.__module__}.{n[0].kind.__qualname__}" for n in (node, got))
    return (
        f"{what}: at {path or 'the top'}: expected {expected_text}, got {got_text}{note}; "
        f"the structure must be {_brief(expected)}"
    )


def _kind(node: Node) -> str:
    if node is None:
        return "a leaf"
    container, _metadata, count = node
    name = container.kind.__name__
    return (
        "None" if container.kind is type(None) else f"{'an' if name[0] in 'AEIOU' else 'a'} {name} of {count}"
    )


def _brief(structure: Structure, width: int = 120) -> str:
    text = str(structure)
    return text if len(text) <= width else f"{text[: width - 3]}..."


# The types of containers.


class _Containers(dict[type, Container | None]):
    """The container of each type seen so far; None for the types of leaves."""

    def __missing__(self, kind: type) -> Container | None:
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            self[kind] = _named_tuple(kind)
        elif dataclasses.is_dataclass(kind):
            self[kind] = _dataclass(kind)
        else:
            self[kind] = None
        return self[kind]


def container_of(kind: type) -> Container | None:
    """The container of a type; None if its instances are leaves."""
    return _containers[kind]


def register(
    kind: type,
    flatten: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten: Callable[[Any, list[Any]], Any],
    names: Sequence[str] = (),
) -> None:
    """Register a type as a container: its instances (not instances of subclasses) are then not leaves.

    Args:
        kind: the class.
        flatten: from a container to its children and its hashable metadata, with all other data that `unflatten`
            needs.
        unflatten: from metadata and children (of any type) to a container.
        names: the attributes that hold the children, for paths; by default the children are numbered.

    Raises:
        ArgumentError: if the type is registered already.

    >>> from collections import deque
    >>> register(deque, lambda d: (d, d.maxlen), lambda maxlen, children: deque(children, maxlen))
    >>> map(abs, deque([-1, 2]))
    deque([1, 2])
    """

    def flatten_to_list(tree: Any) -> tuple[list[Any], Hashable]:
        children, metadata = flatten(tree)
        return list(children), metadata

    def show(metadata: Any, parts: list[str]) -> str:
        arguments = parts if metadata is None else [*parts, repr(metadata)]
        return f"{kind.__name__}({', '.join(arguments)})"

    steps = (lambda *_: [f".{name}" for name in names]) if names else _numbered
    _add(kind, Container(kind, flatten_to_list, unflatten, steps, show))


def register_leaf(kind: T) -> T:
    """Make the instances of a dataclass or named tuple leaves; also a decorator of the class.

    Raises:
        ArgumentError: if the type is registered already.

    >>> @register_leaf
    ... @dataclasses.dataclass(frozen=True)
    ... class Interval:
    ...     low: float
    ...     high: float
    >>> leaves({"all": Interval(0.0, 1.0)})
    [Interval(low=0.0, high=1.0)]
    """
    _add(kind, None)
    return kind


_registered: set[type] = set()


def _add(kind: type, container: Container | None) -> None:
    if kind in _registered:
        raise ArgumentError(f"register: {kind.__name__} is registered already; a type is registered once")
    _registered.add(kind)
    _containers[kind] = container


def _numbered(_metadata: Any, count: int) -> list[str]:
    return [f"[{i}]" for i in range(count)]


def _sorted_keys(mapping: dict[Any, Any]) -> tuple[Any, ...]:
    for order in (None, lambda key: (type(key).__name__, key)):
        try:
            return tuple(sorted(mapping, key=order))
        except TypeError:
            pass
    return tuple(mapping)


def _flatten_dict(tree: dict[Any, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    keys = _sorted_keys(tree)
    return [tree[key] for key in keys], keys


def _flatten_defaultdict(tree: defaultdict[Any, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    children, keys = _flatten_dict(tree)
    return children, (tree.default_factory, keys)


def _mapping(
    kind: type, flatten: Any, unflatten: Any, text: str, keys_of: Callable[[Any], Any] = lambda keys: keys
) -> Container:
    """A container whose children have keys.

    Args:
        kind: the class.
        flatten: as in `Container`.
        unflatten: as in `Container`.
        text: a container as text, with {0} for its metadata and {1} for the keys and children.
        keys_of: from the metadata to the keys, in the order of the children.
    """

    def steps(metadata: Any, _count: int) -> list[str]:
        keys = keys_of(metadata)
        return [f"[{json.dumps(k, ensure_ascii=False) if isinstance(k, str) else repr(k)}]" for k in keys]

    def show(metadata: Any, parts: list[str]) -> str:
        items = [f"{key!r}: {part}" for key, part in zip(keys_of(metadata), parts, strict=True)]
        return text.format(metadata, "{" + ", ".join(items) + "}")

    return Container(kind, flatten, unflatten, steps, show)


def _sequence(
    kind: type, unflatten: Callable[[Any, list[Any]], Any], show: Callable[[Any, list[str]], str]
) -> Container:
    """A container whose children are numbered."""
    return Container(kind, lambda tree: (tree, None), unflatten, _numbered, show)


def _named_tuple(kind: Any) -> Container:
    names: tuple[str, ...] = kind._fields

    def show(_metadata: None, parts: list[str]) -> str:
        fields = (f"{name}={part}" for name, part in zip(names, parts, strict=True))
        return f"{kind.__name__}({', '.join(fields)})"

    steps = [f".{name}" for name in names]
    return Container(
        kind, lambda tree: (tree, None), lambda _, children: kind._make(children), lambda *_: steps, show
    )


def _dataclass(kind: type) -> Container:
    fields = dataclasses.fields(kind)
    names = [field.name for field in fields if not field.metadata.get("static")]
    static = [field.name for field in fields if field.metadata.get("static")]

    def flatten(tree: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return [getattr(tree, name) for name in names], tuple([getattr(tree, name) for name in static])

    def unflatten(values: tuple[Any, ...], children: list[Any]) -> Any:
        tree: Any = object.__new__(kind)
        for name, value in zip(names + static, [*children, *values], strict=True):
            object.__setattr__(tree, name, value)  # also if the class is frozen
        return tree

    def show(values: tuple[Any, ...], parts: list[str]) -> str:
        texts = dict(zip(names + static, [*parts, *(repr(value) for value in values)], strict=True))
        return f"{kind.__name__}({', '.join(f'{field.name}={texts[field.name]}' for field in fields)})"

    return Container(kind, flatten, unflatten, lambda *_: [f".{n}" for n in names], show, (names, static))


_containers = _Containers()
for _container in (
    _sequence(list, lambda _, children: children, lambda _, parts: f"[{', '.join(parts)}]"),
    _sequence(
        tuple,
        lambda _, children: tuple(children),
        lambda _, parts: f"({', '.join(parts)}{',' if len(parts) == 1 else ''})",
    ),
    Container(type(None), lambda _: ((), None), lambda *_: None, _numbered, lambda *_: "None"),
    _mapping(dict, _flatten_dict, lambda keys, children: dict(zip(keys, children, strict=True)), "{1}"),
    _mapping(
        OrderedDict,
        lambda tree: (list(tree.values()), tuple(tree)),
        lambda keys, children: OrderedDict(zip(keys, children, strict=True)),
        "OrderedDict({1})",
    ),
    _mapping(
        defaultdict,
        _flatten_defaultdict,
        lambda metadata, children: defaultdict(metadata[0], zip(metadata[1], children, strict=True)),
        "defaultdict({0[0]!r}, {1})",
        itemgetter(1),
    ),
):
    _add(_container.kind, _container)
register_leaf(Container)
register_leaf(Structure)
