"""The graph of a lazy backend: nodes, which are values or pending ops, and the structure of a graph."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable
from operator import attrgetter
from typing import Any, Generic

from tensorken.lazy.origins import Position
from tensorken.programs.passes.common_subexpressions import exact_key
from tensorken_core.language.dtypes import exact
from tensorken_core.language.interpreter import R
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.shapes import Shape

ITEM = Op("item", 1, shape=lambda *_: (), dtype=lambda *_: None, params=("size",))
"""Selects one of the results of its operand."""

CROP = OPS["crop"]

serials = itertools.count()
"""Gives each node a unique number, so that operands have smaller numbers than their results."""

_serial = attrgetter("serial")


class Node(Generic[R]):
    """A computed value, or a pending op on other nodes.

    Attributes:
        value: on the backend below, or None.
        op: the pending op; None if there is none.
        serial: a unique number, greater than the serials of the operands.
        parts: for a node with several results, weak references to the nodes of the results in use.
        last_count: the number of the last count of pending memory that included this node.
        position: of the user's code that called the pending op.
    """

    __slots__ = (
        "__weakref__",
        "dtype",
        "last_count",
        "op",
        "operands",
        "params",
        "parts",
        "position",
        "serial",
        "shape",
        "value",
    )

    fill_value: bool | int | float | None = None
    """The value of all elements of a Number."""

    def __init__(
        self,
        shape: Any,
        dtype: Any,
        value: R | None = None,
        op: Op | None = None,
        operands: tuple[Node[R], ...] = (),
        params: tuple[Any, ...] = (),
        position: Position | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.value = value
        self.op = op
        self.operands = operands
        self.params = params
        self.position = position
        self.parts: tuple[weakref.ref[Node[R]], ...] = ()
        self.serial = next(serials)
        self.last_count = -1


class Number(Node[R]):
    """A tensor whose elements are all one number; `key` differs for any two numbers, such as 0.0 and -0.0."""

    __slots__ = ("fill_value", "key")

    def __init__(self, shape: Any, dtype: Any, fill_value: bool | int | float) -> None:
        super().__init__(shape, dtype)
        self.fill_value = fill_value
        self.key = exact(fill_value)


def pending_nodes(outputs: Iterable[Node[R]]) -> list[Node[R]]:
    """The nodes that must be computed, each after its operands, including all results in use of ops with several
    results.
    """
    pending = {node for node in outputs if node.op is not None}
    todo = list(pending)
    while todo:
        node = todo.pop()
        for x in node.operands:
            if x.op is not None and x not in pending:
                pending.add(x)
                todo.append(x)
        for ref in node.parts:
            part = ref()
            if part is not None and part not in pending:
                pending.add(part)
                todo.append(part)
    return sorted(pending, key=_serial)


class Graph(Generic[R]):
    """The pending computation of some nodes, separate from the nodes.

    Attributes:
        steps: for each node the op; its params, or for a crop the shape of the result; then the source of each
            operand: the index of an earlier step, ~index of a leaf, or the shape and dtype of a number.
        types: for each node the shape and the dtype.
        params: for each node the params.
        positions: for each node the position of the user's code.
        leaves: the nodes with values.
        numbers: the numbers in order of use: the Number of an operand, or the start of a crop along an axis that it
            shortens.
        number_keys: for each number a unique key.
        key: the structure, which contains no numbers.
    """

    def __init__(self, nodes: list[Node[R]]) -> None:
        self.leaves: list[Node[R]] = []
        self.numbers: list[Any] = []
        self.steps: list[tuple[Any, ...]] = []
        self.types = [(node.shape, node.dtype) for node in nodes]
        self.params = [node.params for node in nodes]
        self.positions = [node.position for node in nodes]
        self._nodes = nodes.copy()
        sources: dict[Node[R], int] = {}
        leaves, numbers, steps = self.leaves, self.numbers, self.steps
        for i, node in enumerate(nodes):
            op: Any = node.op
            params: Any = node.params
            operands: list[Any] = []
            for x in node.operands:
                source = sources.get(x)
                if source is None:
                    if x.fill_value is not None:
                        numbers.append(x)
                        operands.append((x.shape, x.dtype))
                        continue
                    source = sources[x] = ~len(leaves)
                    leaves.append(x)
                operands.append(source)
            if op is CROP and fits_int32(node.operands[0].shape):
                numbers += [params[0][axis][0] for axis in cropped_axes(node.operands[0].shape, node.shape)]
                params = node.shape
            elif params:
                params = exact_key(op, params)
            sources[node] = i
            steps.append((op, params, *operands))
        self.number_keys = tuple([(int, x) if type(x) is int else x.key for x in numbers])
        self.key = (tuple(steps), tuple([(x.shape, x.dtype) for x in leaves]))

    def released(self) -> list[tuple[int, Node[R]]]:
        """Cut the nodes off from their operands; return the nodes that are still referenced elsewhere."""
        for node in self._nodes:
            node.op, node.operands = None, ()
        self._refs = [weakref.ref(node) for node in self._nodes]
        self._serials = [node.serial for node in self._nodes]
        del node, self._nodes
        return [
            (i, held)
            for i, ref in enumerate(self._refs)
            if (held := ref()) is not None and self.steps[i][0].results == 1
        ]

    def restore(self, held: list[tuple[int, Node[R]]]) -> None:
        """Undo `released` after a computation failed."""
        held_nodes = dict(held)
        nodes: list[Node[R]] = []
        numbers = iter([x for x in self.numbers if isinstance(x, Number)])

        def node_at(source: Any) -> Node[R]:
            if type(source) is tuple:
                return next(numbers)
            result: Node[R] = nodes[source] if source >= 0 else self.leaves[~source]
            return result

        for i, (op, _, *operands) in enumerate(self.steps):
            alive = held_nodes.get(i) or self._refs[i]()
            node: Node[R] = Node(*self.types[i]) if alive is None else alive
            node.op, node.params, node.serial = op, self.params[i], self._serials[i]
            node.position = self.positions[i]
            node.operands = tuple([node_at(source) for source in operands])
            nodes.append(node)
            if op is ITEM and not any([ref() is node for ref in node.operands[0].parts]):
                node.operands[0].parts += (weakref.ref(node),)


def fits_int32(shape: Shape) -> bool:
    """Whether the start of a crop of this shape fits int32, so that it may be an input."""
    return max(shape, default=0) <= 2**31


def cropped_axes(before: Shape, after: Shape) -> list[int]:
    """The axes that a crop shortens."""
    return [i for i, n in enumerate(after) if n != before[i]]
