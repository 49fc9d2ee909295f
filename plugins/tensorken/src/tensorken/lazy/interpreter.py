"""Lazy: an interpreter that records ops; reading a value computes it and the ops that it depends on as one program."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from heapq import nsmallest
from itertools import chain
from math import prod
from typing import Any

from tensorken.lazy.graph import ITEM, Graph, Node, Number, pending_nodes, serials
from tensorken.lazy.origins import running, users_position
from tensorken.lazy.programs import SpecializedProgram, SpecializedPrograms
from tensorken.programs.execution import prepared
from tensorken.programs.lost_memory import CACHES
from tensorken.programs.names import all_programs
from tensorken.programs.passes.common_subexpressions import exact_key
from tensorken.programs.passes.elements import MOVEMENT_OPS
from tensorken.programs.passes.equation_writer import program_of
from tensorken.programs.passes.recorded_loops import scan_of
from tensorken_core.errors import DTypeError
from tensorken_core.language.dtypes import DTYPES, DType, as_dtype, exact, int32
from tensorken_core.language.interpreter import R
from tensorken_core.language.op import OPS, Op, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.program.program import Program, opaque_ops
from tensorken_core.rewriting.wrapper import DonatableArgs, Wrapper, WriteCall
from tensorken_core.tensor.tensor import Tensor

MAX_PENDING_OPS = 2048
"""The largest number of pending ops; beyond it all of them run, even if no value is read."""

MAX_PENDING_BYTES = 2**28
"""The most bytes that pending ops may keep alive before all of them run."""

SETTLE_FRACTION = 1 / 16
"""The fraction of these two limits above which pending ops run at the end of a transform, so that a training step is
one program."""

MAX_PROGRAMS = 512
"""The largest number of structures whose programs are cached; the least recently used are dropped first."""

MAX_LOOP_PROGRAMS = 256
"""The largest number of loop steps whose programs are cached; the oldest are dropped first."""

MAX_DEFERRED_STEPS = 6
"""An op whose body loops for no more steps than this is recorded like any other; its steps are part of one program."""

LIBRARY_CALLS = 3
"""The calls from `run` to the method that makes a node."""

MIN_CLEANUP_SIZE = 16
"""The smallest number of nodes at which dead entries are removed.  Small, since memory that grows and is freed later
looks like a leak to measurements in between."""


class Lazy(Wrapper[Node[R]]):
    """A backend that records ops and runs them on `raw` when a value is read, or when too many ops are pending.

    Ops form a graph; the same op on the same nodes is the same node, so nothing is computed twice.  Reading a value
    makes a program of all pending ops that it depends on.  The program is compiled if `raw` compiles programs, else
    run op by op, and is cached by its structure: a training loop is compiled once.

    Args:
        raw: the backend that computes.
        max_pending: the largest number of pending ops.

    >>> import tensorken as tk
    >>> from tensorken_reference.backend import Reference
    >>> lazy = tk.Lazy(Reference())
    >>> x = tk.tensor([1.0, 2.0, 3.0], backend=lazy)
    >>> y = (x * x + 1.0).sum()
    >>> lazy.pending, y.item(), lazy.pending
    (4, 17.0, 0)
    """

    raw: RawTensor[R]

    def __init__(self, raw: RawTensor[R], max_pending: int = MAX_PENDING_OPS) -> None:
        super().__init__(raw)
        self.max_pending = max_pending
        self._nodes: dict[Any, weakref.ref[Node[R]]] = {}
        self._cleanup_size = MIN_CLEANUP_SIZE  # the number of nodes at which dead ones are removed
        self._programs: dict[Any, SpecializedPrograms[R]] = {}
        self._loop_programs: dict[Any, Program] = {}
        self._lock = threading.RLock()
        self._pending_ops = 0  # ops since the last flush, and the bytes that they keep alive
        self._pending_bytes = 0
        self._count_number = 0  # the number of times that these counts were reset
        self._last_run = 0  # the serial of the last run
        self._dtypes = frozenset(map(as_dtype, self.capabilities.dtypes or DTYPES))
        CACHES.add(self)

    @property
    def pending(self) -> int:
        """The number of recorded ops of values in use that have not run."""
        return len(pending_nodes(self._held()))

    # ---- values ----------------------------------------------------------------------------------------------

    def wrap(self, value: R) -> Node[R]:
        return Node(self.raw.shape(value), self.raw.dtype(value), value)

    def value(self, x: Node[R]) -> R:
        if x.value is None:
            with self._lock:  # another thread may be computing it
                if x.op is not None:
                    self._run([x])
                elif x.value is None:
                    assert x.fill_value is not None
                    x.value = self.raw.full(x.shape, x.fill_value, x.dtype)
        return x.value  # type: ignore[return-value]

    def wrap_program(self, run: Callable[[Sequence[R]], Sequence[R]], program: Any) -> Any:
        value, dtype = self.value, self.raw.dtype
        shapes, donated = [v.shape for v in program.outputs], program.donated

        def run_nodes(xs: Sequence[Node[R]]) -> list[Node[R]]:
            values = [value(x) if x.value is None else x.value for x in xs]
            if donated and type(xs) is DonatableArgs:
                for i in donated:
                    xs[i] = None
            return [Node(shape, dtype(y), y) for shape, y in zip(shapes, run(values), strict=True)]

        return run_nodes

    def write_call(
        self, code: Any, program: Any, xs: Sequence[str], write: WriteCall
    ) -> Sequence[str] | None:
        outputs = write(self.write_values(code, xs))
        if outputs is None:
            return None
        results, node = code.variables(len(outputs)), code.constant(Node)
        for y, v, variable in zip(results, outputs, program.outputs, strict=True):
            code.lines.append(
                f"{y} = {node}({code.constant(variable.shape)}, {code.constant(variable.dtype)}, {v})"
            )
        return results  # type: ignore[no-any-return]

    def shape(self, x: Node[R]) -> Shape:
        return x.shape  # type: ignore[no-any-return]

    def dtype(self, x: Node[R]) -> DType:
        return x.dtype  # type: ignore[no-any-return]

    def new(self, shape: Shape, data: Any, dtype: DType) -> Node[R]:
        return Node(shape, dtype, self.raw.new(shape, data, dtype))

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Node[R]:
        key = (shape, dtype, exact(value))  # tells 0.0 from -0.0, which are equal
        node = self._find(key)
        if node is None:
            self._check("full", dtype)
            node = Number(shape, dtype, value)
            self._remember(key, node)
        return node

    def fill_value(self, x: Node[R]) -> bool | int | float | None:
        return x.fill_value

    def settle(self, x: Node[R]) -> Node[R]:
        """x.  Called at the end of a transform: runs the pending ops if there are many."""
        if self._is_over(SETTLE_FRACTION):
            self._recount(self._held())
            if self._is_over(SETTLE_FRACTION):
                self.flush()
        return x

    def loop(
        self,
        step: Callable[..., Sequence[Tensor]],
        xs: Sequence[Tensor],
        steps: Sequence[Sequence[Tensor | int]],
    ) -> tuple[Sequence[Tensor], list[Sequence[Tensor]]]:
        """Run one program for each step.  The steps are not deferred, since all of them together would be a large
        program.
        """
        if not steps:
            return xs, []
        types = [_type_of(x) for x in (*xs, *steps[0])]
        program = self._loop_programs.get((step, *types))
        if program is None:
            program = program_of(step, types, self.raw)
            with self._lock:
                if len(self._loop_programs) >= MAX_LOOP_PROGRAMS:
                    del self._loop_programs[next(iter(self._loop_programs))]
                self._loop_programs[step, *types] = program
        run, outputs = prepared(program, self.raw, is_checked=True), program.outputs
        self._compute_together([*xs, *chain(*steps)])

        def run_step(*arguments: Tensor | int) -> list[Tensor]:
            values = run([self._loop_argument(x) for x in arguments])
            pairs = zip(values, outputs, strict=True)
            return [Tensor(self, self.wrap(value), v.shape, v.dtype) for value, v in pairs]

        return super().loop(run_step, xs, steps)

    def _compute_together(self, xs: Iterable[Tensor | int]) -> None:
        """Compute the pending values among these, in one program."""
        nodes = dict.fromkeys([x.representation for x in xs if not isinstance(x, int)])
        with self._lock:
            self._run([node for node in nodes if node.op is not None])

    def _loop_argument(self, x: Tensor | int) -> R:
        """A tensor or an int as an argument of the program of a step."""
        return self.raw.full((1,), x, int32) if isinstance(x, int) else self.value(x.representation)

    def realize(self, x: Node[R]) -> Node[R]:
        self.raw.realize(self.value(x))
        return x

    # ---- ops -------------------------------------------------------------------------------------------------

    def with_placement(self, x: Node[R], placement: Any, batch_axes: int) -> Node[R]:
        """x, moved now: values on different devices cannot be operands of one program."""
        return self.wrap(run(self.raw, OPS["with_placement"], [self.value(x)], (placement, batch_axes)))

    def interpret(self, op: Op, operands: Sequence[Node[R]], params: tuple[Any, ...]) -> Any:
        if op.opaque or (op.results is None and opaque_ops(params)):
            ys = run(
                self.raw, op, [self.value(x) for x in operands], params
            )  # now, in the order of the calls
            return self.wrap(ys) if op.results == 1 else tuple([self.wrap(y) for y in ys])
        if (
            op.min_loop_steps
            and op.min_loop_steps * min(operands[0].shape[-2:]) > MAX_DEFERRED_STEPS
            and not self.raw.has(op)
            and scan_of(self.raw) is None
        ):
            return super().interpret(op, operands, params)
        if op.results != 1:
            if op.results is not None or op.higher_order is not None:
                return self._several(op, operands, params)
            # A function of the user: record the ops that it runs.
            return super().interpret(op, operands, params)
        first = operands[0]
        params_key = exact_key(op, params) if params else ()
        key: tuple[Any, ...]
        if len(operands) == 1:  # one or two operands are the common cases, and comprehensions are slow
            if params and first.fill_value is not None and op in MOVEMENT_OPS:
                return self.full(op.shape(first.shape, *params), first.fill_value, first.dtype)
            key = (op, first.serial, params_key)
        elif len(operands) == 2:
            key = (op, first.serial, operands[1].serial, params_key)
        else:
            key = (op, *[x.serial for x in operands], params_key)
        node = self._find(key)
        if node is None:
            node = self._node(op, operands, params)
            self._remember(key, node)
            self._count(operands)
            if self._pending_ops > self.max_pending or self._pending_bytes > MAX_PENDING_BYTES:
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
        return Node(shape, dtype, None, op, tuple(operands), params, users_position(LIBRARY_CALLS))

    def _find(self, key: Any) -> Node[R] | None:
        """The node of a key, unless it has been pending since before the last run.

        If steps of a loop shared such nodes, one step would compute them and the next would not, and their programs
        would have different structures.
        """
        ref = self._nodes.get(key)
        node = None if ref is None else ref()
        if node is not None and node.op is not None and node.serial < self._last_run:
            self._nodes[node.serial] = weakref.ref(node)  # it is still pending
            return None
        return node

    def _remember(self, key: Any, node: Node[R]) -> None:
        """Store a weak reference to a node by its key."""
        nodes = self._nodes
        nodes[key] = weakref.ref(node)
        if len(nodes) > self._cleanup_size:
            with self._lock:
                for key_of_node in list(nodes):
                    if nodes[key_of_node]() is None:
                        ref = nodes.pop(key_of_node)
                        if ref() is not None:  # another thread has made a new node
                            nodes.setdefault(key_of_node, ref)
                self._cleanup_size = max(MIN_CLEANUP_SIZE, 2 * len(nodes))

    def _check(self, op: str, dtype: DType) -> None:
        """Raise the error of a missing dtype when the op is recorded, not when the value is read."""
        if dtype not in self._dtypes:
            supported = ", ".join(self.capabilities.dtypes)
            raise DTypeError(
                f"{op}: {self.raw!r} has no {dtype.name}, only {supported}; cast to one of these first"
            )

    def _several(self, op: Op, operands: Sequence[Node[R]], params: tuple[Any, ...]) -> tuple[Node[R], ...]:
        """An op with several results: a node for the op, and a node for each result; these keep the op's node alive."""
        key = (op, *[x.serial for x in operands], exact_key(op, params))
        with self._lock:  # so that no other thread runs the op before all its nodes exist
            existing = [self._find((ITEM, i, *key)) for i in range(op.results or 0)]
            if existing and all([item is not None for item in existing]):
                return tuple(existing)  # type: ignore[arg-type]
            shapes = op.shape(*[x.shape for x in operands], *params)
            dtypes = op.result_dtype(tuple([x.dtype for x in operands]), params)
            node = Node(shapes, dtypes, None, op, tuple(operands), params, users_position(LIBRARY_CALLS))
            items = []
            for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
                item = Node(shape, dtype, None, ITEM, (node,), (i,))
                self._remember((ITEM, i, *key), item)
                node.parts += (weakref.ref(item),)
                items.append(item)
        self._count(operands)
        if self._is_over():
            self.flush()
        return tuple(items)

    def _count(self, operands: Iterable[Node[R]]) -> None:
        """Count one more pending op, and the memory that it keeps alive."""
        self._pending_ops += 1
        for x in operands:
            if x.value is not None and x.last_count != self._count_number:
                x.last_count = self._count_number
                self._pending_bytes += prod(x.shape) * x.dtype.itemsize

    def _is_over(self, fraction: float = 1.0) -> bool:
        """Whether the pending ops or bytes exceed this fraction of their limits."""
        return (
            self._pending_ops > fraction * self.max_pending
            or self._pending_bytes > fraction * MAX_PENDING_BYTES
        )

    def forget_memory(self) -> None:
        """Drop the values and programs that are cached: the backend has lost its memory."""
        # without the lock, which another thread may hold while it waits for the device that was lost
        nodes = [(key, ref, ref()) for key, ref in list(self._nodes.items())]
        self._nodes = {key: ref for key, ref, node in nodes if node is not None and node.op is not None}
        self._programs, self._loop_programs = {}, {}  # which have constants

    # ---- running ---------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Compute all pending ops, in one program."""
        with self._lock:
            self._run(self._held())
            self._recount([])

    def _recount(self, pending: list[Node[R]]) -> None:
        """Count the pending ops again, since some of them have run, and some are no longer referenced."""
        self._pending_ops = self._pending_bytes = 0
        self._count_number += 1
        for node in pending:
            self._count(node.operands)

    def _held(self) -> list[Node[R]]:
        """The pending nodes in use; other threads may add nodes meanwhile."""
        nodes = [ref() for ref in list(self._nodes.values())]
        return [node for node in nodes if node is not None and node.op is not None]

    def _run(self, outputs: list[Node[R]]) -> None:
        """Compute nodes, and their pending operands that are in use elsewhere."""
        nodes = pending_nodes(outputs)
        if self._compute_captured(nodes):
            nodes = pending_nodes(outputs)
        if not nodes:
            return
        self._last_run = next(serials)
        graph = Graph(nodes)
        outputs.clear()  # now only nodes that are referenced elsewhere stay alive
        nodes.clear()
        held = graph.released()
        try:
            specialized = self._program_for(graph, tuple([i for i, _ in held]))
            inputs = [self.value(leaf) for leaf in graph.leaves]
            inputs += specialized.inputs(graph.numbers, self.raw)
            with running(graph.positions):
                values = prepared(specialized.program, self.raw, is_checked=True)(inputs)
        except BaseException:
            graph.restore(held)
            raise
        for (_, node), value in zip(held, values, strict=True):
            node.value = value
        self._pending_ops = max(self._pending_ops - len(graph.steps), 0)

    def _compute_captured(self, nodes: Sequence[Node[R]]) -> bool:
        """Compute the pending constants of programs among the nodes' params; return whether there were any.

        They are needed to prepare these programs, which happens after this run's nodes are removed from the graph.
        """
        captured = [
            tensor.representation
            for node in nodes
            if node.op is not None and node.op.higher_order is not None
            for program in node.op.higher_order.layout(node.params).programs
            for inner in all_programs(program)
            for tensor in inner.constants.values()
            if tensor.interpreter is self and tensor.representation.op is not None
        ]
        for node in captured:
            self.value(node)
        return bool(captured)

    def _program_for(self, graph: Graph[R], outputs: tuple[int, ...]) -> SpecializedProgram:
        """The program of a graph; made for a new structure, or if no program of the structure matches the numbers."""
        key = (graph.key, outputs)
        programs = self._programs.get(key)
        if programs is None:
            if len(self._programs) >= MAX_PROGRAMS:
                # Finding the oldest costs more than dropping it, so drop several.
                count = max(MAX_PROGRAMS // 16, 1)
                for oldest, _ in nsmallest(count, self._programs.items(), key=lambda item: item[1].used):
                    del self._programs[oldest]
            programs = self._programs[key] = SpecializedPrograms(outputs, self.raw)
        programs.used = self._last_run
        return programs.specialized(graph)


def _type_of(x: Tensor | int) -> tuple[Shape, DType]:
    """The shape and dtype of an argument of a step."""
    return ((1,), int32) if isinstance(x, int) else (x.shape, x.dtype)
