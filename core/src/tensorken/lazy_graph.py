"""The graph of a lazy backend: nodes, which are values or ops that wait for their operands; and programs of them."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, Generic

from tensorken.programs.passes.common_subexpressions import exactly
from tensorken.programs.program import Equation, Literal, Program, Variable
from tensorken.spec.dtypes import exact
from tensorken.spec.interpreter import R
from tensorken.spec.op import Op
from tensorken.spec.raw import RawTensor

ITEM = Op("item", 1, shape=lambda *_: (), dtype=lambda *_: None, params=("size",))
"""One of the results of the node that it is applied to."""

_numbers = itertools.count()  # gives each node its own, operands before what follows from them


class Node(Generic[R]):
    """A value: there already, or an op on other nodes that waits.

    Attributes:
        value: on the backend below, or None.
        op: what waits; None if nothing does.
        serial: a number that no other node ever has; greater than those of the operands.
        parts: of a node with several results, those that somebody holds.
    """

    __slots__ = (
        "__weakref__",
        "dtype",
        "number",
        "op",
        "operands",
        "params",
        "parts",
        "seen",
        "serial",
        "shape",
        "value",
    )

    def __init__(
        self,
        shape: Any,
        dtype: Any,
        value: R | None = None,
        number: bool | int | float | None = None,
        op: Op | None = None,
        operands: tuple[Node[R], ...] = (),
        params: tuple[Any, ...] = (),
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.value = value
        self.number = number
        self.op = op
        self.operands = operands
        self.params = params
        self.parts: list[weakref.ref[Node[R]]] = []
        self.serial = next(_numbers)
        self.seen = -1  # the last time, counted in runs of everything, that this was found to be kept alive


def waiting_for(wanted: Iterable[Node[R]]) -> list[Node[R]]:
    """The nodes that must be computed, each after its operands; of one with several results all that are held."""
    found: set[Node[R]] = set()
    todo = list(wanted)
    while todo:
        node = todo.pop()
        if node.op is not None and node not in found:
            found.add(node)
            todo += node.operands
            todo += [part for ref in node.parts if (part := ref()) is not None]
    return sorted(found, key=lambda node: node.serial)


class Graph(Generic[R]):
    """What nodes are computed from, taken out of them.

    Attributes:
        steps: of each node the op, where its operands come from (a step before it, a leaf or a number), its params,
            and the shape and dtype of what it gives.
        leaves: the nodes with values.
        key: the structure: two graphs of one key are computed by one program.
    """

    def __init__(self, nodes: list[Node[R]]) -> None:
        self.leaves: list[Node[R]] = []
        self.steps: list[tuple[Op, tuple[Any, ...], tuple[Any, ...], Any, Any]] = []
        self._nodes = nodes.copy()
        places: dict[Node[R], Any] = {}
        for i, node in enumerate(nodes):
            operands = []
            for x in node.operands:
                place = places.get(x)
                if place is None:
                    if x.number is not None:
                        place = ("number", x.shape, x.dtype, exact(x.number))
                    else:
                        place = ("leaf", len(self.leaves))
                        self.leaves.append(x)
                    places[x] = place
                operands.append(place)
            places[node] = i
            assert node.op is not None
            self.steps.append((node.op, tuple(operands), node.params, node.shape, node.dtype))
        self._numbers = {place: x for x, place in places.items() if x.number is not None}
        self.key = (
            tuple([(op, operands, exactly(op, params)) for op, operands, params, *_ in self.steps]),
            tuple([(x.shape, x.dtype) for x in self.leaves]),
        )

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
        for i, (op, operands, params, shape, dtype) in enumerate(self.steps):
            alive = known.get(i) or self._refs[i]()
            node = Node(shape, dtype) if alive is None else alive
            node.op, node.params, node.serial = op, params, self._serials[i]
            node.operands = tuple([self._node(place, nodes) for place in operands])
            nodes.append(node)
            if op is ITEM and not any([ref() is node for ref in node.operands[0].parts]):
                node.operands[0].parts.append(weakref.ref(node))

    def _node(self, place: Any, nodes: list[Node[R]]) -> Node[R]:
        if type(place) is int:
            return nodes[place]
        return self.leaves[place[1]] if place[0] == "leaf" else self._numbers[place]

    def program(self, outputs: Sequence[int], backend: RawTensor[R]) -> Program:
        """The program that computes some of the results."""
        inputs = tuple([Variable(x.shape, x.dtype) for x in self.leaves])
        results: list[Any] = []
        equations: list[Equation] = []
        literals: dict[Any, Literal] = {}

        def variable(place: Any) -> Any:
            if type(place) is int:
                return results[place]
            if place[0] == "leaf":
                return inputs[place[1]]
            if place not in literals:
                x = self._numbers[place]
                assert x.number is not None
                literals[place] = Literal(x.shape, x.dtype, x.number)
            return literals[place]

        for op, operands, params, shape, dtype in self.steps:
            if op is ITEM:
                results.append(results[operands[0]][params[0]])
                continue
            one = op.results == 1
            defined = tuple(
                [Variable(*facts) for facts in ([(shape, dtype)] if one else zip(shape, dtype, strict=True))]
            )
            results.append(defined[0] if one else defined)
            equations.append(Equation(op, tuple([variable(place) for place in operands]), params, defined))
        chosen = tuple([results[i] for i in outputs])
        return Program(inputs, chosen, tuple(equations), name="lazy", backend=backend)
