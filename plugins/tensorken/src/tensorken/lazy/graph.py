"""The graph of a lazy backend: nodes, which are values or ops that wait for their operands; and its structure."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable
from operator import attrgetter
from typing import Any, Generic

from tensorken.programs.passes.common_subexpressions import exactly
from tensorken_core.language.dtypes import exact
from tensorken_core.language.interpreter import R
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.shapes import Shape

ITEM = Op("item", 1, shape=lambda *_: (), dtype=lambda *_: None, params=("size",))
"""One of the results of the node that it is applied to."""

CROP = OPS["crop"]

serials = itertools.count()
"""Gives each node its own, operands before what follows from them."""

_serial = attrgetter("serial")


class Node(Generic[R]):
    """A value: there already, or an op on other nodes that waits.

    Attributes:
        value: on the backend below, or None.
        op: what waits; None if nothing does.
        serial: a number that no other node ever has; greater than those of the operands.
        parts: of a node with several results, those that somebody holds.
        seen: in which count of what waits this was last found to be kept alive.
    """

    __slots__ = (
        "__weakref__",
        "dtype",
        "op",
        "operands",
        "params",
        "parts",
        "seen",
        "serial",
        "shape",
        "value",
    )

    number: bool | int | float | None = None
    """What all elements are, of a Number."""

    def __init__(
        self,
        shape: Any,
        dtype: Any,
        value: R | None = None,
        op: Op | None = None,
        operands: tuple[Node[R], ...] = (),
        params: tuple[Any, ...] = (),
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.value = value
        self.op = op
        self.operands = operands
        self.params = params
        self.parts: tuple[weakref.ref[Node[R]], ...] = ()
        self.serial = next(serials)
        self.seen = -1


class Number(Node[R]):
    """Elements that are all one number; `told` is what no other number has."""

    __slots__ = ("number", "told")

    def __init__(self, shape: Any, dtype: Any, number: bool | int | float) -> None:
        super().__init__(shape, dtype)
        self.number = number
        self.told = exact(number)


def pending_nodes(wanted: Iterable[Node[R]]) -> list[Node[R]]:
    """The nodes that must be computed, each after its operands; of one with several results all that are held."""
    found = {node for node in wanted if node.op is not None}
    todo = list(found)
    while todo:
        node = todo.pop()
        for x in node.operands:
            if x.op is not None and x not in found:
                found.add(x)
                todo.append(x)
        for ref in node.parts:
            part = ref()
            if part is not None and part not in found:
                found.add(part)
                todo.append(part)
    return sorted(found, key=_serial)


class Graph(Generic[R]):
    """What nodes are computed from, taken out of them.

    Attributes:
        steps: of each node the op; its params, or of a crop the shape of what it gives; then where each operand comes
            from: a step before it as its place, a leaf as ~place, a number as its shape and dtype.
        facts: of each node the shape and the dtype.
        params: of each node.
        leaves: the nodes with values.
        numbers: in the order of their uses, whichever node they are: the Number of an operand, or where a crop begins
            along an axis that it shortens.
        told: what tells these numbers from all others, in the same order.
        key: the structure, which has no number in it.
    """

    def __init__(self, nodes: list[Node[R]]) -> None:
        self.leaves: list[Node[R]] = []
        self.numbers: list[Any] = []
        self.steps: list[tuple[Any, ...]] = []
        self.facts = [(node.shape, node.dtype) for node in nodes]
        self.params = [node.params for node in nodes]
        self._nodes = nodes.copy()
        places: dict[Node[R], int] = {}
        leaves, numbers, steps = self.leaves, self.numbers, self.steps
        for i, node in enumerate(nodes):
            op: Any = node.op
            params: Any = node.params
            operands: list[Any] = []
            for x in node.operands:
                place = places.get(x)
                if place is None:
                    if x.number is not None:
                        numbers.append(x)
                        operands.append((x.shape, x.dtype))
                        continue
                    place = places[x] = ~len(leaves)
                    leaves.append(x)
                operands.append(place)
            if op is CROP and movable(node.operands[0].shape):
                numbers += [params[0][axis][0] for axis in shortened(node.operands[0].shape, node.shape)]
                params = node.shape
            elif params:
                params = exactly(op, params)
            places[node] = i
            steps.append((op, params, *operands))
        self.told = tuple([(int, x) if type(x) is int else x.told for x in numbers])
        self.key = (tuple(steps), tuple([(x.shape, x.dtype) for x in leaves]))

    def released(self) -> list[tuple[int, Node[R]]]:
        """Cut the nodes off from their operands; those that are still there then, held by somebody else."""
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
        """Undo the release, as nothing could be computed."""
        known = dict(held)
        nodes: list[Node[R]] = []
        numbers = iter([x for x in self.numbers if isinstance(x, Number)])

        def node_at(place: Any) -> Node[R]:
            if type(place) is tuple:
                return next(numbers)
            found: Node[R] = nodes[place] if place >= 0 else self.leaves[~place]
            return found

        for i, (op, _, *operands) in enumerate(self.steps):
            alive = known.get(i) or self._refs[i]()
            node: Node[R] = Node(*self.facts[i]) if alive is None else alive
            node.op, node.params, node.serial = op, self.params[i], self._serials[i]
            node.operands = tuple([node_at(place) for place in operands])
            nodes.append(node)
            if op is ITEM and not any([ref() is node for ref in node.operands[0].parts]):
                node.operands[0].parts += (weakref.ref(node),)


def movable(shape: Shape) -> bool:
    """Whether int32 can tell where a crop of this shape begins, so that it may be an input."""
    return max(shape, default=0) <= 2**31


def shortened(before: Shape, after: Shape) -> list[int]:
    """The axes that a crop takes something off."""
    return [i for i, n in enumerate(after) if n != before[i]]
