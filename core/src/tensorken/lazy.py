"""Lazy: an interpreter over a backend that only writes down ops; a value that is read is computed as one program."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, Generic

from tensorken.programs.execution import prepared
from tensorken.programs.program import Equation, Literal, Program, Variable
from tensorken.spec.dtypes import DType
from tensorken.spec.interpreter import R
from tensorken.spec.op import OPS, Op
from tensorken.spec.raw import RawTensor
from tensorken.spec.shapes import Shape
from tensorken.wrapper import Wrapper

BUDGET = 2048
"""How many ops may wait before they run, though nobody has read anything."""

BYTES = 2**28
"""How many bytes waiting ops may keep alive before they run."""

PROGRAMS = 256
"""How many programs are kept, the last used ones."""

_KEEP_THE_NUMBER = frozenset(OPS[name] for name in ("reshape", "expand", "permute", "flip", "crop"))
"""Ops that make of a tensor of equal elements another one of the same number."""

_ITEM = Op("item", 1, shape=lambda *_: (), dtype=lambda *_: None, params=("size",))
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


class Lazy(Wrapper[Node[R]]):
    """A backend that computes what `raw` computes, once a value is read, or too much work waits.

    Ops make a graph.  The same op on the same nodes is the same node, so nothing is computed twice.  Reading a value
    makes a program of all that it follows from and that has not been computed; the program is compiled, if `raw` does
    that, else run op by op, and kept under its structure: a training loop is compiled once.

    Args:
        raw: what computes.
        budget: how many ops may wait.

    >>> import tensorken as tk
    >>> from tensorken_reference.backend import Reference
    >>> lazy = tk.Lazy(Reference())
    >>> x = tk.tensor([1.0, 2.0, 3.0], backend=lazy)
    >>> y = (x * x + 1.0).sum()
    >>> lazy.waiting, y.item(), lazy.waiting
    (4, 17.0, 0)
    """

    raw: RawTensor[R]

    def __init__(self, raw: RawTensor[R], budget: int = BUDGET) -> None:
        super().__init__(raw)
        self.budget = budget
        self._nodes: weakref.WeakValueDictionary[Any, Node[R]] = weakref.WeakValueDictionary()
        self._programs: OrderedDict[Any, Program] = OrderedDict()
        self._lock = threading.RLock()
        self._recorded = 0  # ops since everything was run, and the bytes that they keep alive
        self._bytes = 0
        self._runs = 0

    @property
    def waiting(self) -> int:
        """How many ops have been asked for, by values that somebody still holds, and have not run."""
        return len(_waiting_for(self._held()))

    # ---- values ----------------------------------------------------------------------------------------------

    def hold(self, value: R) -> Node[R]:
        return Node(self.raw.shape(value), self.raw.dtype(value), value)

    def value(self, x: Node[R]) -> R:
        if x.value is None:
            with self._lock:  # and whoever else computes it has finished
                if x.op is not None:
                    self._run([x])
                elif x.value is None:
                    assert x.number is not None
                    x.value = self.raw.full(x.shape, x.number, x.dtype)
        return x.value  # type: ignore[return-value]

    def shape(self, x: Node[R]) -> Shape:
        return x.shape  # type: ignore[no-any-return]

    def dtype(self, x: Node[R]) -> DType:
        return x.dtype  # type: ignore[no-any-return]

    def new(self, shape: Shape, data: Any, dtype: DType) -> Node[R]:
        return Node(shape, dtype, self.raw.new(shape, data, dtype))

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Node[R]:
        key = (shape, dtype, type(value), repr(value))  # 0.0 and -0.0 are equal, and two numbers
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node(shape, dtype, number=value)
        return node

    def number(self, x: Node[R]) -> bool | int | float | None:
        return x.number

    def settle(self, x: Node[R]) -> Node[R]:
        """x; as this is where a transform ends, it is also a good time to run what waits, if that is much."""
        if self._recorded > self.budget // 2 or self._bytes > BYTES // 2:
            self.flush()
        return x

    def realize(self, x: Node[R]) -> Node[R]:
        self.raw.realize(self.value(x))
        return x

    # ---- ops -------------------------------------------------------------------------------------------------

    def interpret(self, op: Op, operands: Sequence[Node[R]], params: tuple[Any, ...]) -> Any:
        if op.results is None and op.whole is None:  # a function of the user's: what it does is written down
            return super().interpret(op, operands, params)
        first = operands[0]
        if first.number is not None and op in _KEEP_THE_NUMBER:
            return self.full(op.shape(first.shape, *params), first.number, first.dtype)
        if op.results != 1:
            return self._several(op, operands, params)
        key = (op, *[x.serial for x in operands], _exactly(op, params))
        node = self._nodes.get(key)
        if node is None:
            if op.elementwise:
                shape = first.shape
            else:
                shape = op.shape(*[x.shape for x in operands], *params)
            dtype = op.result_dtype(tuple([x.dtype for x in operands]), params)
            node = Node(shape, dtype, op=op, operands=tuple(operands), params=params)
            self._nodes[key] = node
            self._count(operands)
        return node

    def _several(self, op: Op, operands: Sequence[Node[R]], params: tuple[Any, ...]) -> tuple[Node[R], ...]:
        """An op with several results: a node for the op, and for each result one that holds it while it waits."""
        serials = (*[x.serial for x in operands], _exactly(op, params))
        with self._lock:  # so that the op does not run between its nodes
            known = [self._nodes.get((_ITEM, i, op, *serials)) for i in range(op.results or 0)]
            if known and all([item is not None for item in known]):
                return tuple(known)  # type: ignore[arg-type]
            shapes = op.shape(*[x.shape for x in operands], *params)
            dtypes = op.result_dtype(tuple([x.dtype for x in operands]), params)
            node = Node(shapes, dtypes, op=op, operands=tuple(operands), params=params)
            items = []
            for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
                item = Node(shape, dtype, op=_ITEM, operands=(node,), params=(i,))
                self._nodes[_ITEM, i, op, *serials] = item
                node.parts.append(weakref.ref(item))
                items.append(item)
        self._count(operands)
        return tuple(items)

    def _count(self, operands: Iterable[Node[R]]) -> None:
        """One op more, and what it keeps alive; if that is too much, all that waits is run."""
        self._recorded += 1
        for x in operands:
            if x.value is not None and x.seen != self._runs:
                x.seen = self._runs
                self._bytes += prod(x.shape) * x.dtype.itemsize
        if self._recorded > self.budget or self._bytes > BYTES:
            self.flush()

    # ---- running ---------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Compute all that waits, in one program."""
        with self._lock:
            self._run(self._held())
            self._recorded = self._bytes = 0
            self._runs += 1

    def _held(self) -> list[Node[R]]:
        """The nodes that wait; other threads may make more of them meanwhile."""
        nodes = [ref() for ref in self._nodes.valuerefs()]
        return [node for node in nodes if node is not None and node.op is not None]

    def _run(self, wanted: list[Node[R]]) -> None:
        """Compute nodes, and all that they follow from and that somebody else holds."""
        nodes = _waiting_for(wanted)
        if not nodes:
            return
        graph = _Graph(nodes)
        wanted.clear()  # now only those outside are held by somebody
        nodes.clear()
        held = graph.released()
        try:
            program = self._program(graph, tuple([i for i, _ in held]))
            values = prepared(program, self.raw)([self.value(leaf) for leaf in graph.leaves])
        except BaseException:
            graph.restore(held)
            raise
        for (_, node), value in zip(held, values, strict=True):
            node.value = value
        self._recorded = max(self._recorded - len(graph.steps), 0)

    def _program(self, graph: _Graph[R], outputs: tuple[int, ...]) -> Program:
        """The program of a graph, made at the first graph of this structure."""
        key = (graph.key, outputs)
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = graph.program(outputs, self.raw)
            if len(self._programs) > PROGRAMS:
                self._programs.popitem(last=False)
        else:
            self._programs.move_to_end(key)
        return program


def _exactly(op: Op, params: tuple[Any, ...]) -> Any:
    """Params as a part of a key; numbers that are equal and not the same, as 0.0 and -0.0, stay apart."""
    return repr(params) if "data" in op.params and "program" not in op.params else params


def _waiting_for(wanted: Iterable[Node[R]]) -> list[Node[R]]:
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


class _Graph(Generic[R]):
    """What nodes are computed from, taken out of them.

    Attributes:
        steps: for each op, its operands' places: of leaves, from 0 on, then of numbers, then of results before it.
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
                        place = ("number", x.shape, x.dtype, type(x.number), repr(x.number))
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
            tuple([(op, operands, _exactly(op, params)) for op, operands, params, *_ in self.steps]),
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
            if op is _ITEM and not any([ref() is node for ref in node.operands[0].parts]):
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
            if op is _ITEM:
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
