"""Programs as graphs of `torch.fx`: a node for each equation, on values with size 1 along repeated axes.

* A reshape of a reshape is one reshape; an `expand` has no node where torch broadcasts.
* A product that is only added becomes `addmm`, `addcmul`, `addcdiv`, or `add` with a factor.
* An elementwise op writes into the memory of an operand that nothing uses afterwards.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx

from tensorken_core.language.dtypes import DType, float32, float64, round_float
from tensorken_core.language.shapes import Axes, Pairs, Shape
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_torch import functions
from tensorken_torch.activations import activation_of
from tensorken_torch.adam import AdamStep, adam, adam_steps
from tensorken_torch.contraction import Matrix, has_matmul, plan_contraction
from tensorken_torch.functions import TORCH_DTYPES
from tensorken_torch.groups import BLOCK_SIZE, Group, grouped, with_recomputation
from tensorken_torch.layer_norm import LayerNorm, layer_norm_gradient, layer_norms

WITH_OUT: frozenset[Any] = frozenset(
    [
        getattr(torch, name)
        for name in (
            "add sub mul div pow maximum minimum atan2 hypot logaddexp copysign nextafter eq lt where "
            "bitwise_and bitwise_or bitwise_xor exp log sin cos floor tan tanh asin acos atan asinh acosh atanh "
            "expm1 exp2 log2 log10 erfinv neg abs square sqrt signbit ceil trunc round reciprocal addcmul addcdiv"
        ).split()
    ]
)
"""Elementwise functions that take `out`."""

MIN_BLOCK_MEMBERS = 3
"""The fewest equations for which blocks are worth their calls."""

VIEWS = frozenset({functions.to_bits, functions.from_bits})
"""Functions whose results may share the memory of operands."""

IN_PLACE: dict[Any, Any] = {torch.relu: torch.relu_}
"""Elementwise functions without `out`, and those that write into their operand."""


class Memory:
    """The memory of one or several values, which may be views of each other.

    Attributes:
        writable: whether it may be overwritten after the last use.
        uses: how many operands of later equations, and outputs, are in this memory.
    """

    __slots__ = ("uses", "writable")

    def __init__(self, writable: bool) -> None:
        self.writable, self.uses = writable, 0


@dataclass(slots=True)
class Value:
    """A value of the program in the graph.

    Attributes:
        node: its node.
        shape: the shape of the node's result: size 1 along axes that are only repeated; () for a number.
        memory: the memory of the node's result.
        source: the node and shape of which this value is a reshape; None if it is none.
    """

    node: fx.Node
    shape: Shape
    memory: Memory
    source: tuple[fx.Node, Shape] | None = None


@dataclass(slots=True)
class Term:
    """factor * a * b, or factor * a / b, or factor * a: an operand of a sum that the sum computes."""

    function: Any
    operands: list[Variable]
    factor: float


class GraphBuilder:
    """Builds the graph of a program.

    Args:
        program: an optimised program.
        backend: the backend that runs it.
        free: the indices of inputs whose memory may be overwritten.
        shapes: the shapes of the inputs, which may have size 1 along axes whose elements repeat; None for full ones.
        blocks: whether elementwise equations run block by block.
        run_program: makes a function that runs an equation for which the backend has no function.
    """

    def __init__(
        self,
        program: Program,
        backend: Any,
        free: frozenset[int],
        run_program: Callable[[Equation], Callable[..., Any]],
        *,
        shapes: Sequence[Shape] | None = None,
        blocks: bool = False,
    ) -> None:
        self.backend, self.run_program = backend, run_program
        self.graph = fx.Graph()
        self.constants: list[Tensor] = []
        self._targets: list[fx.Node] = []
        self._values: dict[Variable, Value] = {}
        self._numbers: dict[Any, fx.Node] = {}
        self._in_sums: set[Variable] = set()
        steps = adam_steps(program) if blocks else []
        self._steps = {step.equations[-1]: step for step in steps}
        norms = layer_norms(program) if blocks else []
        self._norms = {e: norm for norm in norms for e in norm.members}
        self._statistics: dict[LayerNorm, tuple[fx.Node, fx.Node]] = {}
        self._grouped = {e for step in steps for e in step.equations} | {*self._norms}
        if blocks:
            program = with_recomputation(program, self._is_elementwise)
        self.program = program
        self._units = grouped(program, self._is_elementwise) if blocks else [*program.equations]
        self._uses = Counter([v for e in program.equations for v in e.operands] + [*program.outputs])
        for (
            norm
        ) in norms:  # what their nodes read is used there, later than by the equations that they replace
            self._uses.update([norm.x, *[x for g in norm.gradients.values() for x in (norm.x, g)]])
        self._equations = {e.results[0]: e for e in program.equations if len(e.results) == 1}
        self._grouped |= {e for unit in self._units if isinstance(unit, Group) for e in unit.equations}
        for equation in program.equations:
            if equation not in self._grouped:
                self._find_terms(equation)
        inputs = [self.graph.placeholder(f"x{i}") for i in range(len(program.inputs))]
        self._last_input: fx.Node | None = inputs[-1] if inputs else None
        for i, (v, node) in enumerate(zip(program.inputs, inputs, strict=True)):
            shape = v.shape if shapes is None else shapes[i]
            self._define(v, Value(node, shape, Memory(i in free)))

    def build(self) -> fx.Graph:
        """The graph; its inputs are those of the program, followed by the constants."""
        self._add_units()
        self.graph.output(tuple([self._output(v) for v in self.program.outputs]))
        self.graph.eliminate_dead_code(_has_effect)
        _add_in_products(self.graph)
        return self.graph

    def _add_units(self) -> None:
        for unit in self._units:
            if isinstance(unit, Group):
                self._group(unit)
            elif unit in self._steps:
                self._adam(self._steps[unit])
            elif unit in self._norms:
                self._layer_norm(self._norms[unit], unit)
            elif unit in self._grouped:
                continue
            elif not unit.results or unit.results[0] not in self._in_sums:
                self._equation(unit)

    def build_block(self, shape: Shape) -> tuple[list[int | None], fx.Graph]:
        """A graph that writes its results into memory of free inputs, or into further inputs.

        Returns:
            For each output the index of the input, or None if it is written into a further input; and the graph.
        """
        self._add_units()
        memories = [self._values[v].memory for v in self.program.inputs]
        places: list[int | None] = []
        for v in self.program.outputs:
            x = self._value(v)
            place = next((i for i, memory in enumerate(memories) if memory is x.memory), None)
            if place is not None and place not in places and x.shape == shape:
                places.append(place)
                continue
            places.append(None)
            is_target = x.node.kwargs.get("out") in self._targets
            if x.node.target in WITH_OUT and x.shape == shape and not is_target:
                x.node.kwargs = {**x.node.kwargs, "out": self._further_input()}
            else:
                self._call(Tensor.copy_, self._further_input(), x.node)
        self.graph.output(())
        self.graph.eliminate_dead_code(_has_effect)
        return places, self.graph

    def _further_input(self) -> fx.Node:
        """An input after all others."""
        self._targets.append(self._placeholder(f"y{len(self._targets)}"))
        return self._targets[-1]

    # ---- values ----------------------------------------------------------------------------------------------

    def _define(self, v: Variable, value: Value) -> None:
        self._values[v] = value
        value.memory.uses += self._uses[v]

    def _constant(self, x: Tensor) -> fx.Node:
        """An input for a constant, after those of the program."""
        self.constants.append(x)
        return self._placeholder(f"c{len(self.constants)}")

    def _placeholder(self, name: str) -> fx.Node:
        """One more input, after all others."""
        with self.graph.inserting_after(self._last_input or self.graph._root):
            self._last_input = self.graph.placeholder(name)
        return self._last_input

    def _value(self, v: Variable) -> Value:
        """The value of a variable, a literal or a constant."""
        value = self._values.get(v)
        if value is None:
            if isinstance(v, Literal):
                value = Value(self._number(v), (), Memory(False))
            else:
                value = Value(self._constant(self.program.outside(v, self.backend)), v.shape, Memory(False))
            self._define(v, value)
        return value

    def _number(self, v: Literal) -> fx.Node:
        """A tensor without axes on the backend's device: `addcmul` and others take none of the CPU beside others."""
        key = (v.value, math.copysign(1.0, v.value), v.dtype)
        if key not in self._numbers:
            self._numbers[key] = self._constant(
                torch.tensor(v.value, dtype=TORCH_DTYPES[v.dtype], device=self.backend.device)
            )
        return self._numbers[key]

    def _used(self, v: Variable) -> Value:
        """The value of an operand; this is one of its uses."""
        value = self._value(v)
        value.memory.uses -= 1
        return value

    def _full(self, v: Variable) -> fx.Node:
        """The node of a value of its full shape, on the backend's device."""
        if isinstance(v, Literal):
            return self._constant(self.backend.full((1,) * len(v.shape), v.value, v.dtype).expand(v.shape))
        x = self._value(v)
        return x.node if x.shape == v.shape else self._call(Tensor.expand, x.node, v.shape)

    def _output(self, v: Variable) -> fx.Node:
        """The node of a result; a view no longer refers to its base, so that its memory can be donated."""
        node = self._full(v)
        return self._call(Tensor.detach, node) if node.target in _MOVEMENT else node

    def _sized(self, v: Variable) -> Value:
        """The value of a variable, with as many axes as the variable."""
        x = self._value(v)
        if len(x.shape) == len(v.shape):
            return x
        return Value(self._full(v), v.shape, Memory(False))

    def _call(self, function: Callable[..., Any], *args: Any, **keywords: Any) -> fx.Node:
        return self.graph.call_function(function, args, keywords)

    # ---- equations -------------------------------------------------------------------------------------------

    def _equation(self, equation: Equation) -> None:
        name, operands = equation.op.name, equation.operands
        function = getattr(self.backend.overrides[equation.op], "function", None)
        if name in ("add", "sub") and equation.results[0].dtype.kind == "float" and function is not None:
            self._sum_of_terms(equation, function)
            return
        for v in operands:
            self._used(v)
        if function is None:
            node = self._call(self.run_program(equation), *[self._full(v) for v in operands])
            self._define_results(equation, node, views=True)
        elif name in _RULES:
            _RULES[name](self, equation, *equation.params)
        elif equation.op.elementwise:
            self._elementwise(equation.results[0], function, operands)
        else:
            node = self._call(function, *[self._full(v) for v in operands], *equation.params)
            self._define_results(equation, node, function in VIEWS or equation.params == ((),))

    def _define_results(self, equation: Equation, node: fx.Node, views: bool) -> None:
        if views:
            for v in equation.operands:
                self._value(v).memory.writable = False
        nodes = [node]
        if equation.op.results != 1:
            nodes = [self._call(operator.getitem, node, i) for i in range(len(equation.results))]
        for v, y in zip(equation.results, nodes, strict=True):
            self._define(v, Value(y, v.shape, Memory(not views)))

    def _elementwise(
        self, result: Variable, function: Any, operands: Sequence[Variable], **keywords: Any
    ) -> None:
        """Call a function that broadcasts; its result is new, or in the memory of an operand."""
        xs = [self._value(v) for v in operands]
        if not any([x.shape for x in xs]) and result.shape:
            xs = [self._sized(v) for v in operands]
        sizes = zip(*[x.shape for x in xs if x.shape], strict=True)
        shape = tuple([0 if 0 in ns else max(ns) for ns in sizes])
        nodes, memory = [x.node for x in xs], Memory(True)
        for v, x in zip(operands, xs, strict=True):
            if x.shape == shape and v.dtype is result.dtype and _is_free(x, xs):
                if function in WITH_OUT:
                    keywords["out"], memory = x.node, x.memory
                elif function in IN_PLACE:
                    function, memory = IN_PLACE[function], x.memory
                break
        self._define(result, Value(self._call(function, *nodes, **keywords), shape, memory))

    # ---- steps of Adam ---------------------------------------------------------------------------------------

    def _adam(self, step: AdamStep) -> None:
        """Add a node that updates p, m and v in place; in copies, if they may not be overwritten."""
        inside = {v for e in step.equations for v in e.results}
        factors = [x for x, _ in (*step.numerator, *step.denominator)]
        for v in [v for e in step.equations for v in e.operands if v not in inside]:
            self._used(v)
        updated = []
        values = [self._value(x) for x in (step.p, step.m, step.v, step.g)]
        for x, v in zip(values, (step.p, step.m, step.v), strict=False):
            if x.shape == v.shape and _is_free(x, [y for y in values if y is not x]):
                updated.append(x)
            else:
                node = self._call(functions.copied, self._full(v))
                updated.append(Value(node, v.shape, Memory(True)))
        parameter, mean, square = [x.node for x in updated]
        numbers = {x: self._literal_or_node(x) for x in factors}
        numerator = tuple([(numbers[x], exponent) for x, exponent in step.numerator])
        denominator = tuple([(numbers[x], exponent) for x, exponent in step.denominator])
        g = self._full(step.g)
        betas = step.beta1, step.beta2
        self._call(adam, parameter, g, mean, square, numerator, denominator, *betas, step.epsilon)
        for result, x in zip(step.results, updated, strict=True):
            self._define(result, x)

    def _literal_or_node(self, v: Variable) -> float | fx.Node:
        return float(v.value) if isinstance(v, Literal) else self._value(v).node

    # ---- layer normalisations --------------------------------------------------------------------------------

    def _layer_norm(self, norm: LayerNorm, equation: Equation) -> None:
        """Add a node for the result of the normalisation, or of its VJP; other members have none."""
        (result,) = equation.results
        inside = {v for e in norm.members for v in e.results} - {norm.z, *norm.totals.values()}
        for v in equation.operands:
            if v not in inside or v in self._values:
                self._used(v)
        if result is norm.z:
            self._used(norm.x)
            sizes = norm.x.shape[norm.axes[0] :]
            node = self._call(torch.native_layer_norm, self._full(norm.x), sizes, None, None, norm.epsilon)
            y, mean, inverse = [self._call(operator.getitem, node, i) for i in range(3)]
            self._statistics[norm] = mean, inverse
            self._define(result, Value(y, result.shape, Memory(True)))
        elif equation in norm.gradients:
            for v in (norm.gradients[equation], norm.x):
                self._used(v)
            g, x = self._full(norm.gradients[equation]), self._full(norm.x)
            node = self._call(layer_norm_gradient, g, x, norm.axes, *self._statistics[norm])
            self._define(result, Value(node, result.shape, Memory(True)))
        elif equation in norm.totals:
            self._define(result, self._value(norm.totals[equation]))

    # ---- blocks ----------------------------------------------------------------------------------------------

    def _is_elementwise(self, equation: Equation) -> bool:
        function = getattr(self.backend.overrides[equation.op], "function", None)
        is_elementwise = equation.op.elementwise or equation.op.name == "cast"
        return is_elementwise and function is not None and equation not in self._grouped

    def _group(self, group: Group) -> None:
        """Add a node that computes the group block by block, or its equations if their operands do not allow it."""
        variables, results = group.operands(), group.results(self.program)
        taken = [v for equation in group.equations for v in equation.operands if v in {*variables}]
        values = [self._value(v) for v in variables]
        for v in taken:
            self._used(v)
        lead = _leading_axes(group.shape, [x.shape for x in values])
        rows, rest = math.prod(group.shape[:lead]), group.shape[lead:]
        count = max(1, BLOCK_SIZE // max(1, math.prod(rest)))
        found = self._activation(group, variables, results) if len(results) == 1 else None
        if found is not None:
            self._define(results[0], Value(found, group.shape, Memory(True)))
            return
        if rows <= count or len(group.members) < MIN_BLOCK_MEMBERS:
            for v in taken:
                self._value(v).memory.uses += 1
            for equation in group.equations:
                self._equation(equation)
            return
        split = [x.shape != () and x.shape[:lead] == group.shape[:lead] for x in values]
        free = [x.shape == group.shape and _is_free(x, [y for y in values if y is not x]) for x in values]
        run = Blocks(self, group, variables, results, split, free, (rows, rest, count))
        node = self._call(run.function(lead), *[x.node for x in values])
        for i, (v, place) in enumerate(zip(results, run.places, strict=True)):
            memory = Memory(True) if place is None else values[place].memory
            self._define(v, Value(self._call(operator.getitem, node, i), v.shape, memory))

    def _activation(
        self, group: Group, variables: Sequence[Variable], results: Sequence[Variable]
    ) -> fx.Node | None:
        """A node that computes the group by an activation function of torch; None if there is none."""
        values = [self._value(v) for v in variables]
        dtypes = {v.dtype for e in group.equations for v in e.results}
        if any([x.shape != group.shape for x in values]) or not dtypes <= {float32, float64}:
            return None
        program = _with_shape(group, (64,), variables, results, float64)
        found = activation_of(program, lambda xs: program.replay(self.backend, xs))
        return None if found is None else self._call(found[0], *[values[i].node for i in found[1]])

    # ---- sums ------------------------------------------------------------------------------------------------

    def _find_terms(self, equation: Equation) -> None:
        """Find the operand of a sum that the sum computes: a product, a quotient, or a product of matrices."""
        (result, *_), name = equation.results, equation.op.name
        if name not in ("add", "sub") or result.dtype.kind != "float":
            return
        for v in reversed(equation.operands if name == "add" else equation.operands[1:]):
            found = self._only_used_here(v, "mul", "div")
            if found is None:
                continue
            self._in_sums.add(v)
            literal, x = _factor(found)
            if literal is not None and x is not None and self._only_used_here(x, "mul", "div"):
                self._in_sums.add(x)
            return

    def _only_used_here(self, v: Variable, *names: str) -> Equation | None:
        """The equation of a value that has one use, if its op has one of the names."""
        equation = self._equations.get(v)
        if (
            equation is None
            or equation in self._grouped
            or self._uses[v] != 1
            or equation.op.name not in names
        ):
            return None
        return equation

    def _term(self, v: Variable) -> Term:
        equation = self._equations[v]
        literal, x = _factor(equation)
        if literal is None or x is None:
            function = torch.addcmul if equation.op.name == "mul" else torch.addcdiv
            return Term(function, list(equation.operands), 1.0)
        self._use_number(equation)
        if x not in self._in_sums:
            return Term(torch.add, [x], literal)
        inner = self._term(x)
        return Term(inner.function, inner.operands, inner.factor * literal)

    def _use_number(self, equation: Equation) -> None:
        for v in equation.operands:
            if isinstance(v, Literal):
                self._used(v)

    def _sum_of_terms(self, equation: Equation, function: Any) -> None:
        a, b = equation.operands
        (result,) = equation.results
        if a in self._in_sums:
            a, b = b, a
        if b not in self._in_sums:
            for v in (a, b):
                self._used(v)
            self._elementwise(result, function, (a, b))
            return
        term = self._term(b)
        if equation.op.name == "sub":
            term.factor = -term.factor
        operands = [a, *term.operands]
        for v in operands:
            self._used(v)
        keyword = "alpha" if term.function is torch.add else "value"
        keywords = {} if term.factor == 1.0 else {keyword: term.factor}
        self._elementwise(result, term.function, operands, **keywords)

    def _cast(self, equation: Equation, dtype: DType) -> None:
        (v,), (result,) = equation.operands, equation.results
        x = self._value(v)
        node = self._call(functions.cast, x.node, TORCH_DTYPES[dtype])
        self._define(result, Value(node, x.shape, x.memory if v.dtype is dtype else Memory(True)))

    # ---- movement --------------------------------------------------------------------------------------------

    def _expand(self, equation: Equation, shape: Shape) -> None:
        x = self._value(equation.operands[0])
        self._define(equation.results[0], Value(x.node, x.shape, x.memory, x.source))

    def _reshape(self, equation: Equation, shape: Shape) -> None:
        (v,), (result,) = equation.operands, equation.results
        x = self._value(v)
        if not x.shape and v.shape:
            self._define(result, Value(x.node, (), x.memory))
            return
        compact = shape if x.shape == v.shape else _compact_reshape(x.shape, v.shape, shape)
        if compact is None:
            x, compact = Value(self._full(v), v.shape, x.memory), shape
        self._define(result, self._reshaped(x, compact))

    def _reshaped(self, x: Value, shape: Shape) -> Value:
        """x in another shape; a reshape of a reshape is one."""
        if x.shape == shape:
            return x
        node, original = x.source or (x.node, x.shape)
        if original == shape:
            return Value(node, shape, x.memory)
        return Value(self._call(torch.reshape, node, shape), shape, x.memory, (node, original))

    def _permuted(self, x: Value, order: Axes) -> Value:
        """x with its axes in another order; a reshape, if only axes of size 1 move."""
        shape = tuple([x.shape[i] for i in order])
        long = [i for i in order if x.shape[i] != 1]
        if long == sorted(long):
            return self._reshaped(x, shape)
        return Value(self._call(torch.permute, x.node, order), shape, x.memory)

    def _permute(self, equation: Equation, order: Axes) -> None:
        x = self._value(equation.operands[0])
        self._define(equation.results[0], self._permuted(x, order) if x.shape else x)

    def _crop(self, equation: Equation, limits: Pairs) -> None:
        (v,), (result,) = equation.operands, equation.results
        x = self._value(v)
        if not x.shape or 0 in result.shape:
            x = Value(self._full(v), v.shape, x.memory)
        node, shape = x.node, list(x.shape)
        for axis, ((start, end), n) in enumerate(zip(limits, v.shape, strict=True)):
            if end - start != n and not (x.shape[axis] == 1 != n):
                node, shape[axis] = self._call(torch.narrow, node, axis, start, end - start), end - start
        self._define(result, Value(node, tuple(shape), x.memory))

    # ---- products of matrices --------------------------------------------------------------------------------

    def _fused_multiply_add(self, equation: Equation, axes: Axes) -> None:
        (v, w), (result,) = equation.operands, equation.results
        a, b = self._sized(v), self._sized(w)
        if any([a.shape[i] == b.shape[i] == 1 != max(v.shape[i], w.shape[i]) for i in axes]):
            a = Value(self._full(v), v.shape, a.memory)  # an axis of neither is summed
        dtype = TORCH_DTYPES[v.dtype]
        plan = plan_contraction(a.shape, b.shape, axes, has_matmul(dtype, self.backend.device))
        if plan.sum_a:
            a = self._summed(a, plan.sum_a)
        if plan.sum_b:
            b = self._summed(b, plan.sum_b)
        if plan.method != "matmul":
            y = Value(self._call(torch.mul, a.node, b.node), plan.shape, Memory(True))
            if plan.method == "reduce":
                y = Value(self._call(functions.sum, y.node, plan.axes), plan.shape, Memory(True))
            self._define(result, y)
            return
        a, b = self._matrix(a, plan.first), self._matrix(b, plan.second)
        function = torch.mm if len(a.shape) == 2 else torch.bmm
        if plan.swap:
            a, b = b, a
        shape = (*a.shape[:-1], b.shape[-1])
        y = Value(self._call(function, a.node, b.node), shape, Memory(True))
        y = self._permuted(self._reshaped(y, plan.split), plan.order)
        self._define(result, self._reshaped(y, plan.shape))

    def _matrix(self, x: Value, matrix: Matrix) -> Value:
        y = self._reshaped(self._permuted(x, matrix.order), matrix.shape)
        last = len(matrix.shape) - 1
        return self._permuted(y, (*range(last - 1), last, last - 1)) if matrix.transposed else y

    def _summed(self, x: Value, axes: Axes) -> Value:
        shape = tuple([1 if i in axes else n for i, n in enumerate(x.shape)])
        return Value(self._call(functions.sum, x.node, axes), shape, Memory(True))


class Blocks:
    """A group that runs block by block.

    Attributes:
        places: for each result the operand into whose memory it is written; None if its memory is new.
    """

    def __init__(
        self,
        builder: GraphBuilder,
        group: Group,
        variables: Sequence[Variable],
        results: Sequence[Variable],
        split: Sequence[bool],
        free: Sequence[bool],
        sizes: tuple[int, Shape, int],
    ) -> None:
        self.rows, self.rest, self.count = sizes
        self.shape, self.split = group.shape, split
        self.dtypes = [TORCH_DTYPES[v.dtype] for v in results]
        self.device = builder.backend.device
        shape = (self.count, *self.rest)
        program = _with_shape(group, shape, variables, results)
        shapes: list[Shape] = []
        for v, is_split in zip(variables, split, strict=True):
            x = builder._value(v)
            kept = x.shape[len(x.shape) - len(self.rest) :] if x.shape else ()
            shapes.append(() if not x.shape else ((self.count if is_split else 1), *kept))
        inner = GraphBuilder(
            program,
            builder.backend,
            frozenset([i for i, is_free in enumerate(free) if is_free]),
            builder.run_program,
            shapes=shapes,
        )
        self.places, graph = inner.build_block(shape)
        self.constants = inner.constants
        self.run = fx.GraphModule(torch.nn.Module(), graph, "Block").forward

    def function(self, lead: int) -> Callable[..., Any]:
        """The function of the operands; blocks cut the given number of leading axes, as one axis."""
        shape, rest, count, rows, device = self.shape, self.rest, self.count, (self.rows,), self.device
        split, places, constants, run = self.split, self.places, self.constants, self.run
        new = [dtype for dtype, place in zip(self.dtypes, places, strict=True) if place is None]
        steps = -(-self.rows // count)

        def run_blocks(*operands: Tensor) -> list[Tensor]:
            parts: list[Any] = []
            values = [*operands]
            for i, is_split in enumerate(split):
                x = values[i]
                if is_split:
                    y: Any = x.reshape(rows + x.shape[lead:])
                    if i in places and y.data_ptr() != x.data_ptr():
                        values[i] = y.reshape(shape)
                    parts.append(y.split(count))
                else:
                    parts.append((x.reshape((1, *x.shape[lead:])) if x.ndim else x,) * steps)
            parts += [(x,) * steps for x in constants]
            made: list[Any] = [torch.empty(shape, dtype=dtype, device=device) for dtype in new]
            parts += [x.reshape(rows + rest).split(count) for x in made]
            for arguments in zip(*parts, strict=True):
                run(*arguments)
            made.reverse()
            return [made.pop() if place is None else values[place] for place in places]

        return run_blocks


def _with_shape(
    group: Group,
    shape: Shape,
    variables: Sequence[Variable],
    results: Sequence[Variable],
    dtype: DType | None = None,
) -> Program:
    """The group as a program on values of a shape, and of a dtype if given."""
    new: dict[Variable, Variable] = {v: Variable(shape, dtype or v.dtype) for v in variables}
    equations = []
    for e in group.equations:
        for v in e.operands:
            if isinstance(v, Literal) and v not in new:
                new[v] = Literal(shape, dtype or v.dtype, v.value)
        new.update({v: Variable(shape, dtype or v.dtype) for v in e.results})
        operands, ys = (tuple([new[v] for v in vs]) for vs in (e.operands, e.results))
        equations.append(Equation(e.op, operands, e.params, ys))
    return Program(tuple([new[v] for v in variables]), tuple([new[v] for v in results]), tuple(equations))


def _leading_axes(shape: Shape, operands: Sequence[Shape]) -> int:
    """The largest number of leading axes along which each operand is repeated everywhere or nowhere."""
    lead = len(shape)
    for sizes in operands:
        if not sizes:
            continue
        repeated = [n == 1 != full for n, full in zip(sizes, shape, strict=True)]
        first = next((i for i, n in enumerate(shape) if n != 1), 0)
        same = 0
        while same < len(shape) and (shape[same] == 1 or repeated[same] == repeated[first]):
            same += 1
        lead = min(lead, same)
    return lead


_RULES: dict[str, Any] = {
    "cast": GraphBuilder._cast,
    "expand": GraphBuilder._expand,
    "reshape": GraphBuilder._reshape,
    "permute": GraphBuilder._permute,
    "crop": GraphBuilder._crop,
    "fused_multiply_add": GraphBuilder._fused_multiply_add,
}


_MOVEMENT = frozenset({torch.reshape, torch.permute, torch.narrow, Tensor.expand})


def _is_free(x: Value, operands: Sequence[Value]) -> bool:
    """Whether x may be overwritten: nothing uses its memory later, and no other operand is another view of it."""
    memory = x.memory
    if not memory.writable or memory.uses:
        return False
    return all([y.node is x.node or y.memory is not memory for y in operands])


def _has_effect(node: fx.Node) -> bool:
    """Whether a node must stay although nothing uses its result."""
    return (
        node.op in ("placeholder", "output")
        or "out" in node.kwargs
        or node.target in IN_PLACE.values()
        or node.target in (Tensor.copy_, adam)
    )


def _add_in_products(graph: fx.Graph) -> None:
    """Replace a product of matrices that is only added by `addmm`, where nothing is overwritten in between."""
    product: fx.Node | None = None
    for node in list(graph.nodes):
        if node.target is torch.mm and len(node.users) == 1:
            product = node
        elif product is not None and node.target is torch.add and product in node.args:
            if node.kwargs.get("out") is product and "alpha" not in node.kwargs:
                (other,) = [x for x in node.args if x is not product] or [product]
                with graph.inserting_before(node):
                    fused = graph.call_function(torch.addmm, (other, *product.args))
                node.replace_all_uses_with(fused)
                graph.erase_node(node)
                graph.erase_node(product)
            product = None
        elif node.target not in _MOVEMENT:
            product = None


def _factor(equation: Equation) -> tuple[float | None, Variable | None]:
    """The number and the other operand of a product with a finite number."""
    if equation.op.name == "mul":
        for x, y in (equation.operands, equation.operands[::-1]):
            if isinstance(x, Literal) and math.isfinite(round_float(x.value, x.dtype)):
                return float(x.value), y
    return None, None


def _compact_reshape(sizes: Shape, full: Shape, shape: Shape) -> Shape | None:
    """The compact shape after a reshape that only moves axes of size 1; None after any other reshape."""
    remaining = [pair for pair in zip(sizes, full, strict=True) if pair[1] != 1]
    if [n for _, n in remaining] != [n for n in shape if n != 1]:
        return None
    compact = iter([size for size, _ in remaining])
    return tuple([1 if n == 1 else next(compact) for n in shape])
