"""Lazy: an interpreter over a backend that only writes down ops; a value that is read is computed as one program."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import nsmallest
from itertools import chain
from math import prod
from typing import Any

from tensorken.lazy.graph import ITEM, Graph, Node, Number, pending_nodes, serials
from tensorken.lazy.programs import SpecializedProgram, SpecializedPrograms
from tensorken.programs.execution import prepared
from tensorken.programs.passes.common_subexpressions import exactly
from tensorken.programs.passes.elements import MOVEMENT_OPS
from tensorken.programs.passes.equation_writer import program_of
from tensorken_core.errors import DTypeError
from tensorken_core.language.dtypes import DTYPES, DType, as_dtype, exact, int32
from tensorken_core.language.interpreter import R
from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.program.program import Program, Variable
from tensorken_core.rewriting.wrapper import Wrapper
from tensorken_core.tensor.tensor import Tensor

MAX_PENDING_OPS = 2048
"""How many ops may wait before they run, though nobody has read anything."""

MAX_PENDING_BYTES = 2**28
"""How many bytes waiting ops may keep alive before they run."""

SETTLE_FRACTION = 1 / 16
"""Where a transform ends, this part of what may wait is run, so that a step of a training is one program."""

MAX_PROGRAMS = 512
"""Of how many structures the programs are kept at most, the last used ones."""

MAX_LOOP_PROGRAMS = 256
"""Of how many loops in bodies the programs are kept, those made last."""

MAX_DEFERRED_STEPS = 6
"""Loops of so many turns in all leave an op what others are: it waits, and its turns are parts of one program."""

MIN_CLEANUP_SIZE = 16
"""How many nodes that are gone are remembered, beside as many as there are: few, as memory that grows at first and is
given back in the end looks like a leak to whoever measures meanwhile."""


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

    def __init__(self, raw: RawTensor[R], budget: int = MAX_PENDING_OPS) -> None:
        super().__init__(raw)
        self.budget = budget
        self._nodes: dict[Any, weakref.ref[Node[R]]] = {}
        self._crowd = (
            MIN_CLEANUP_SIZE  # how many of them there may be before those that are gone are taken out
        )
        self._programs: dict[Any, SpecializedPrograms[R]] = {}
        self._turns: dict[Any, Program] = {}
        self._lock = threading.RLock()
        self._recorded = 0  # ops since everything was run, and the bytes that they keep alive
        self._bytes = 0
        self._counts = 0  # how often these began at 0
        self._last_run = 0  # its serial
        self._dtypes = frozenset(map(as_dtype, self.capabilities.dtypes or DTYPES))

    @property
    def waiting(self) -> int:
        """How many ops have been asked for, by values that somebody still holds, and have not run."""
        return len(pending_nodes(self._held()))

    # ---- values ----------------------------------------------------------------------------------------------

    def wrap(self, value: R) -> Node[R]:
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

    def wrap_program(
        self,
        run: Callable[[Sequence[R]], Sequence[R]],
        shapes: Sequence[Shape],
        donated: Collection[int] = (),
    ) -> Any:
        value, dtype = self.value, self.raw.dtype

        def run_nodes(xs: Sequence[Node[R]]) -> list[Node[R]]:
            values = [value(x) if x.value is None else x.value for x in xs]
            return [Node(shape, dtype(y), y) for shape, y in zip(shapes, run(values), strict=True)]

        return run_nodes

    def shape(self, x: Node[R]) -> Shape:
        return x.shape  # type: ignore[no-any-return]

    def dtype(self, x: Node[R]) -> DType:
        return x.dtype  # type: ignore[no-any-return]

    def new(self, shape: Shape, data: Any, dtype: DType) -> Node[R]:
        return Node(shape, dtype, self.raw.new(shape, data, dtype))

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Node[R]:
        key = (shape, dtype, exact(value))  # 0.0 and -0.0 are equal, and two numbers
        node = self._known(key)
        if node is None:
            self._check("full", dtype)
            node = Number(shape, dtype, value)
            self._know(key, node)
        return node

    def number(self, x: Node[R]) -> bool | int | float | None:
        return x.number

    def settle(self, x: Node[R]) -> Node[R]:
        """x; as this is where a transform ends, it is also a good time to run what waits, if that is much."""
        if self._too_much(SETTLE_FRACTION):
            self._recount(self._held())
            if self._too_much(SETTLE_FRACTION):
                self.flush()
        return x

    def loop(
        self,
        turn: Callable[..., Sequence[Tensor]],
        xs: Sequence[Tensor],
        turns: Sequence[Sequence[Tensor | int]],
    ) -> tuple[Sequence[Tensor], list[Sequence[Tensor]]]:
        """The turns, each a run of one program; they do not wait, or all together were a program of their own."""
        if not turns:
            return xs, []
        facts = [_facts(x) for x in (*xs, *turns[0])]
        program = self._turns.get((turn, *facts))
        if program is None:
            program = program_of(turn, facts, self.raw)
            with self._lock:
                if len(self._turns) >= MAX_LOOP_PROGRAMS:
                    del self._turns[next(iter(self._turns))]
                self._turns[turn, *facts] = program
        run, carried = prepared(program, self.raw), len(xs)
        self._compute_together([*xs, *chain(*turns)])
        values: Sequence[R] = [self._told(x) for x in xs]
        left: list[Sequence[Tensor]] = []
        for besides in turns:
            ys = run([*values, *[self._told(x) for x in besides]])
            values = ys[:carried]
            left.append(self._tensors(ys[carried:], program.outputs[carried:]))
        return self._tensors(values, program.outputs[:carried]), left

    def _compute_together(self, xs: Iterable[Tensor | int]) -> None:
        """Compute what waits among these, in one program."""
        nodes = dict.fromkeys([x.representation for x in xs if not isinstance(x, int)])
        with self._lock:
            self._run([node for node in nodes if node.op is not None])

    def _told(self, x: Tensor | int) -> R:
        """What the program of a turn is given of a tensor, or of a whole number."""
        return self.raw.full((1,), x, int32) if isinstance(x, int) else self.value(x.representation)

    def _tensors(self, values: Sequence[R], variables: Sequence[Variable]) -> list[Tensor]:
        """What a program has computed in the place of its variables."""
        pairs = zip(values, variables, strict=True)
        return [Tensor(self, self.wrap(value), v.shape, v.dtype) for value, v in pairs]

    def realize(self, x: Node[R]) -> Node[R]:
        self.raw.realize(self.value(x))
        return x

    # ---- ops -------------------------------------------------------------------------------------------------

    def interpret(self, op: Op, operands: Sequence[Node[R]], params: tuple[Any, ...]) -> Any:
        if (
            op.min_loop_steps
            and op.min_loop_steps * min(operands[0].shape[-2:]) > MAX_DEFERRED_STEPS
            and not self.raw.has(op)
        ):
            return super().interpret(op, operands, params)
        if op.results != 1:
            if op.results is not None or op.higher_order is not None:
                return self._several(op, operands, params)
            return super().interpret(
                op, operands, params
            )  # a function of the user's: what it does is recorded
        first = operands[0]
        told = exactly(op, params) if params else ()
        key: tuple[Any, ...]
        if len(operands) == 1:  # as are nearly all, like two; comprehensions take longer than all the rest
            if params and first.number is not None and op in MOVEMENT_OPS:
                return self.full(op.shape(first.shape, *params), first.number, first.dtype)
            key = (op, first.serial, told)
        elif len(operands) == 2:
            key = (op, first.serial, operands[1].serial, told)
        else:
            key = (op, *[x.serial for x in operands], told)
        node = self._known(key)
        if node is None:
            node = self._node(op, operands, params)
            self._know(key, node)
            self._count(operands)
            if self._recorded > self.budget or self._bytes > MAX_PENDING_BYTES:
                self.flush()
        return node

    def _node(self, op: Op, operands: Sequence[Node[R]], params: tuple[Any, ...]) -> Node[R]:
        """A new node for an op of one result."""
        first = operands[0]
        dtypes: tuple[DType, ...]
        if len(operands) == 1:
            shape, dtypes = op.shape(first.shape, *params), (first.dtype,)
        elif op.elementwise and len(operands) == 2:
            shape, dtypes = first.shape, (first.dtype, operands[1].dtype)
        else:
            shape = op.shape(*[x.shape for x in operands], *params)
            dtypes = tuple([x.dtype for x in operands])
        dtype = op.result_dtypes.get(dtypes) or op.result_dtype(dtypes, params)
        if dtype is not first.dtype:
            self._check(op.name, dtype)
        return Node(shape, dtype, None, op, tuple(operands), params)

    def _known(self, key: Any) -> Node[R] | None:
        """The node of a key, if there is one that has not been waiting since before the last run.

        If steps of a loop shared such nodes, one step would compute them and the next would not, so that these had two
        structures.
        """
        ref = self._nodes.get(key)
        node = None if ref is None else ref()
        if node is not None and node.op is not None and node.serial < self._last_run:
            self._nodes[node.serial] = weakref.ref(node)  # it still waits
            return None
        return node

    def _know(self, key: Any, node: Node[R]) -> None:
        """Have a node found by a key, as long as somebody holds it."""
        nodes = self._nodes
        nodes[key] = weakref.ref(node)
        if len(nodes) > self._crowd:
            with self._lock:
                for known in list(nodes):
                    if nodes[known]() is None:
                        ref = nodes.pop(known)
                        if ref() is not None:  # another thread has made it anew
                            nodes.setdefault(known, ref)
                self._crowd = max(MIN_CLEANUP_SIZE, 2 * len(nodes))

    def _check(self, op: str, dtype: DType) -> None:
        """Refuse what the backend below would refuse, as it is asked for and not when it is read."""
        if dtype not in self._dtypes:
            there = ", ".join(self.capabilities.dtypes)
            raise DTypeError(
                f"{op}: {self.raw!r} has no {dtype.name}, only {there}; cast to one of these first"
            )

    def _several(self, op: Op, operands: Sequence[Node[R]], params: tuple[Any, ...]) -> tuple[Node[R], ...]:
        """An op with several results: a node for the op, and for each result one that holds it while it waits."""
        told = (op, *[x.serial for x in operands], exactly(op, params))
        with self._lock:  # so that the op does not run between its nodes
            known = [self._known((ITEM, i, *told)) for i in range(op.results or 0)]
            if known and all([item is not None for item in known]):
                return tuple(known)  # type: ignore[arg-type]
            shapes = op.shape(*[x.shape for x in operands], *params)
            dtypes = op.result_dtype(tuple([x.dtype for x in operands]), params)
            node = Node(shapes, dtypes, None, op, tuple(operands), params)
            items = []
            for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
                item = Node(shape, dtype, None, ITEM, (node,), (i,))
                self._know((ITEM, i, *told), item)
                node.parts += (weakref.ref(item),)
                items.append(item)
        self._count(operands)
        if self._too_much():
            self.flush()
        return tuple(items)

    def _count(self, operands: Iterable[Node[R]]) -> None:
        """One op more that waits, and what it keeps alive."""
        self._recorded += 1
        for x in operands:
            if x.value is not None and x.seen != self._counts:
                x.seen = self._counts
                self._bytes += prod(x.shape) * x.dtype.itemsize

    def _too_much(self, part: float = 1.0) -> bool:
        """Whether more waits than may, or than a part of that."""
        return self._recorded > part * self.budget or self._bytes > part * MAX_PENDING_BYTES

    # ---- running ---------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Compute all that waits, in one program."""
        with self._lock:
            self._run(self._held())
            self._recount([])

    def _recount(self, waiting: list[Node[R]]) -> None:
        """Count what waits: of what was counted before some has run, and some is gone."""
        self._recorded = self._bytes = 0
        self._counts += 1
        for node in waiting:
            self._count(node.operands)

    def _held(self) -> list[Node[R]]:
        """The nodes that wait; other threads may make more of them meanwhile."""
        nodes = [ref() for ref in list(self._nodes.values())]
        return [node for node in nodes if node is not None and node.op is not None]

    def _run(self, wanted: list[Node[R]]) -> None:
        """Compute nodes, and all that they follow from and that somebody else holds."""
        nodes = pending_nodes(wanted)
        if not nodes:
            return
        self._last_run = next(serials)
        graph = Graph(nodes)
        wanted.clear()  # now only those outside are held by somebody
        nodes.clear()
        held = graph.released()
        try:
            serving = self._serving(graph, tuple([i for i, _ in held]))
            inputs = [self.value(leaf) for leaf in graph.leaves]
            inputs += serving.inputs(graph.numbers, self.raw)
            values = prepared(serving.program, self.raw)(inputs)
        except BaseException:
            graph.restore(held)
            raise
        for (_, node), value in zip(held, values, strict=True):
            node.value = value
        self._recorded = max(self._recorded - len(graph.steps), 0)

    def _serving(self, graph: Graph[R], outputs: tuple[int, ...]) -> SpecializedProgram:
        """What computes a graph, made if it is the first one of its structure, or has other numbers than that."""
        key = (graph.key, outputs)
        programs = self._programs.get(key)
        if programs is None:
            if len(self._programs) >= MAX_PROGRAMS:
                some = max(MAX_PROGRAMS // 16, 1)  # looking for the oldest takes longer than to let it go
                for oldest, _ in nsmallest(some, self._programs.items(), key=lambda kept: kept[1].used):
                    del self._programs[oldest]
            programs = self._programs[key] = SpecializedPrograms(outputs, self.raw)
        programs.used = self._last_run
        return programs.serving(graph)


def _facts(x: Tensor | int) -> tuple[Shape, DType]:
    """The shape and the dtype of an input of a turn."""
    return ((1,), int32) if isinstance(x, int) else (x.shape, x.dtype)
