"""Lazy: an interpreter over a backend that only writes down ops; a value that is read is computed as one program."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from tensorken.errors import DTypeError
from tensorken.lazy_graph import ITEM, Graph, Node, waiting_for
from tensorken.programs.execution import prepared
from tensorken.programs.passes.common_subexpressions import exactly
from tensorken.programs.program import Program
from tensorken.spec.dtypes import DTYPES, DType, as_dtype, exact
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
        self._dtypes = frozenset(map(as_dtype, self.capabilities.dtypes or DTYPES))

    @property
    def waiting(self) -> int:
        """How many ops have been asked for, by values that somebody still holds, and have not run."""
        return len(waiting_for(self._held()))

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
        key = (shape, dtype, exact(value))  # 0.0 and -0.0 are equal, and two numbers
        node = self._nodes.get(key)
        if node is None:
            self._check("full", dtype)
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
        key = (op, *[x.serial for x in operands], exactly(op, params))
        node = self._nodes.get(key)
        if node is None:
            if op.elementwise:
                shape = first.shape
            else:
                shape = op.shape(*[x.shape for x in operands], *params)
            dtype = op.result_dtype(tuple([x.dtype for x in operands]), params)
            if dtype is not first.dtype:
                self._check(op.name, dtype)
            node = Node(shape, dtype, op=op, operands=tuple(operands), params=params)
            self._nodes[key] = node
            self._count(operands)
        return node

    def _check(self, op: str, dtype: DType) -> None:
        """Refuse what the backend below would refuse, as it is asked for and not when it is read."""
        if dtype not in self._dtypes:
            there = ", ".join(self.capabilities.dtypes)
            raise DTypeError(
                f"{op}: {self.raw!r} has no {dtype.name}, only {there}; cast to one of these first"
            )

    def _several(self, op: Op, operands: Sequence[Node[R]], params: tuple[Any, ...]) -> tuple[Node[R], ...]:
        """An op with several results: a node for the op, and for each result one that holds it while it waits."""
        serials = (*[x.serial for x in operands], exactly(op, params))
        with self._lock:  # so that the op does not run between its nodes
            known = [self._nodes.get((ITEM, i, op, *serials)) for i in range(op.results or 0)]
            if known and all([item is not None for item in known]):
                return tuple(known)  # type: ignore[arg-type]
            shapes = op.shape(*[x.shape for x in operands], *params)
            dtypes = op.result_dtype(tuple([x.dtype for x in operands]), params)
            node = Node(shapes, dtypes, op=op, operands=tuple(operands), params=params)
            items = []
            for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
                item = Node(shape, dtype, op=ITEM, operands=(node,), params=(i,))
                self._nodes[ITEM, i, op, *serials] = item
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
        nodes = waiting_for(wanted)
        if not nodes:
            return
        graph = Graph(nodes)
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

    def _program(self, graph: Graph[R], outputs: tuple[int, ...]) -> Program:
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
