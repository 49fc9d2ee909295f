"""Programs for tests: drawn equation by equation, well typed, with all that passes must see through or leave alone.

`programs(backend, exact=True)` draws what computes whole numbers without any rounding, whatever the order of sums and
products: there a pass that reassociates must give equal numbers too.  `programs(backend)` draws from all ops, over
numbers that are hard on identities.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st

from tensorken.compilation.call_op import CALL
from tensorken.control_flow.carries import CARRY, CONSTANT, Role
from tensorken.control_flow.cond_op import COND
from tensorken.control_flow.scan_op import SCAN
from tensorken.control_flow.while_op import WHILE
from tensorken_core.language.dtypes import DType, bool_, float32, float64, int32
from tensorken_core.language.op import OPS, Op, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_core.tensor.tensor import Tensor

WHOLE = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0)
HARD = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.7, 1e-40, 1e30, math.inf, -math.inf, math.nan)
INTEGERS = (0, 1, -1, 2, 7, -(2**31), 2**31 - 1)

_UNARY = ("neg", "abs", "square", "relu", "sign")
_UNARY_ROUNDED = ("exp", "tanh", "sqrt", "floor", "sigmoid", "reciprocal")
_BINARY = ("add", "sub", "mul", "maximum", "minimum")
_BINARY_ROUNDED = ("div", "pow")
_INTEGERS = ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right", "floor_divide")
_MOVEMENT = ("reshape", "permute", "expand", "flip", "pad", "crop", "sum", "sum", "max")


class Draft:
    """A program while it is drawn."""

    def __init__(self, random: Random, backend: RawTensor[Any], exact: bool) -> None:
        self.random = random
        self.backend = backend
        self.exact = exact
        self.numbers = WHOLE if exact else HARD
        self.equations: list[Equation] = []
        self.inputs: list[Variable] = []
        self.constants: dict[Variable, Tensor] = {}
        self.values: list[Variable] = []
        self.empty: list[Variable] = []  # they are outputs, and nothing else is made of them
        self.scope = 0

    def elements(self, v: Variable) -> list[Any]:
        """Drawn elements for a value."""
        return [self.random.choice(self._numbers(v.dtype)) for _ in range(math.prod(v.shape))]

    def _numbers(self, dtype: DType) -> Sequence[Any]:
        return (False, True) if dtype is bool_ else INTEGERS if dtype.kind == "int" else self.numbers

    def literal(self, shape: Shape, dtype: DType) -> Literal:
        """A drawn literal."""
        return Literal(shape, dtype, self.random.choice(self._numbers(dtype)))

    def give(self) -> None:
        """An input or a constant."""
        v = Variable(
            tuple(self.random.choices((1, 2, 3), k=self.random.choice((0, 1, 2, 2, 3)))),
            self.random.choice((float32, float32, int32, bool_)),
        )
        if self.exact and v.dtype is float32:
            v = Variable(v.shape, float64)
        if self.random.randint(0, 3) == 0:
            elements = self.elements(v)
            if self.random.random() < 0.5:
                elements = elements[:1] * len(elements)
            self.constants[v] = Tensor(self.backend, self.backend.new(v.shape, elements, v.dtype))
        else:
            self.inputs.append(v)
        self.values.append(v)

    def like(self, x: Variable, dtype: DType | None = None) -> Variable:
        """Another value of that shape and dtype: one that there is, one that is repeated to it, or a literal."""
        dtype = dtype or x.dtype
        same = [v for v in self.values if v.dtype is dtype and v.shape == x.shape]
        small = [
            v
            for v in self.values
            if v.dtype is dtype
            and len(v.shape) == len(x.shape)
            and v.shape != x.shape
            and all([n in (1, m) for n, m in zip(v.shape, x.shape, strict=True)])
        ]
        choices: list[Callable[[], Variable]] = [lambda: self.literal(x.shape, dtype)]
        if same:
            choices += [lambda: self.random.choice(same)] * 3
        if small:
            choices += [lambda: self.write("expand", [self.random.choice(small)], (x.shape,))] * 3
        return self.random.choice(choices)()

    def write(self, name: str | Op, operands: Sequence[Variable], params: tuple[Any, ...] = ()) -> Variable:
        """The (first) result of a new equation."""
        op = OPS[name] if isinstance(name, str) else name
        shapes = op.shape(*[v.shape for v in operands], *params)
        dtypes = op.dtype(*[v.dtype for v in operands], *params)
        if op.results == 1:
            shapes, dtypes = (shapes,), (dtypes,)
        results = tuple([Variable(s, d) for s, d in zip(shapes, dtypes, strict=True)])
        self.equations.append(Equation(op, tuple(operands), params, results, None, self.scope))
        self.values += [v for v in results if 0 not in v.shape]
        self.empty += [v for v in results if 0 in v.shape]
        return results[0]

    def extend(self) -> None:
        """One more equation, over values drawn from those that there are, mostly from the last ones."""
        values = self.values[-6:] if self.random.random() < 0.5 else self.values
        x: Variable = self.random.choice(values)
        if self.random.randint(0, 2) == 0:
            self.move(x)
        elif x.dtype is bool_:
            a = (
                self.literal(x.shape, bool_)
                if self.random.random() < 0.5
                else self.like(x, float64 if self.exact else float32)
            )
            self.write("where", (x, a, self.like(a)))
        else:
            self.compute(x)

    def compute(self, x: Variable) -> None:
        """An elementwise op or one along axes."""
        integer = x.dtype.kind == "int"
        choices = [("unary", n) for n in _UNARY if not (integer and n == "relu")]
        choices += [("binary", n) for n in (*_BINARY, *_BINARY, "eq", "lt")]
        if integer:
            choices += [("binary", n) for n in _INTEGERS]
        elif not self.exact:
            choices += [("unary", n) for n in _UNARY_ROUNDED]
            choices += [("binary", n) for n in _BINARY_ROUNDED]
            choices += [("axes", "softmax"), ("axis", "sort"), ("cast", "cast"), ("axis", "gather")]
        kind, name = self.random.choice(choices)
        if kind == "unary":
            self.write(name, (x,))
        elif kind == "binary":
            other = self.like(x)
            self.write(name, (x, other) if self.random.random() < 0.5 else (other, x))
        elif kind == "cast":
            self.write(name, (x,), (self.random.choice((float32, float64, int32, bool_)),))
        elif x.shape:
            axis = self.random.randint(0, len(x.shape) - 1)
            if name == "gather":
                places = Literal((2,), int32, x.shape[axis] - 1)
                self.write(name, (x, places), (axis,))
            else:
                self.write(name, (x,), ((axis,) if kind == "axes" else axis,))

    def move(self, x: Variable) -> None:
        """A movement op or a reduction."""
        name = self.random.choice(_MOVEMENT)
        rank = len(x.shape)
        if name == "reshape":
            self.write(name, (x,), (_reshaped(self.random, x.shape),))
        elif name == "permute":
            self.write(name, (x,), (tuple(self.random.sample(range(rank), rank)),))
        elif name == "expand":
            self.write(name, (x,), (tuple([self.random.randint(1, 3) if n == 1 else n for n in x.shape]),))
        elif name in ("pad", "crop"):
            pairs = []
            for n in x.shape:
                start = self.random.randint(0, 1 if name == "pad" else n - 1)
                end = self.random.randint(0, 1) if name == "pad" else self.random.randint(start + 1, n)
                pairs.append((start, end))
            self.write(name, (x,), (tuple(pairs),))
        elif name != "sum" or x.dtype is not bool_:
            axes = tuple([i for i in range(rank) if self.random.random() < 0.5])
            self.write(name, (x,), (axes,))

    def idiom(self) -> None:
        """Equations that some pass is for."""
        self.random.choice(
            (self.again, self.product, self.product, self.cut, self.side_by_side, self.scattered, self.signs)
        )()

    def again(self) -> None:
        """An equation that there is already, perhaps with its operands in the other order."""
        if self.equations:
            e = self.random.choice(self.equations)
            operands = e.operands
            if e.op.elementwise and len(operands) == 2 and self.random.random() < 0.5:
                operands = operands[::-1]
            self.write(e.op, operands, e.params)

    def product(self) -> None:
        """A product of matrices as the language has it; often transposed, or a part of what is summed."""
        dtype = float64 if self.exact else float32
        m, k, n = [self.random.randint(1, 3) for _ in range(3)]
        a, b = Variable((m, k), dtype), Variable((k, n), dtype)
        self.inputs += [a, b]
        left = self.write("reshape", (a,), ((m, 1, k),))
        right = self.write("permute", (self.write("reshape", (b,), ((1, k, n),)),), ((0, 2, 1),))
        full = (m, n, k)
        terms = self.write(
            "mul", (self.write("expand", (left,), (full,)), self.write("expand", (right,), (full,)))
        )
        kind = self.random.randint(0, 3)
        if kind == 1:
            terms = self.write(self.random.choice(("add", "sub")), (terms, self.like(terms)))
        axis = self.random.choice((2, 2, 1, 0))
        y = self.write("sum", (terms,), ((axis,),))
        y = self.write("reshape", (y,), (tuple([size for i, size in enumerate(full) if i != axis]),))
        if kind == 2:
            y = self.write("permute", (y,), ((1, 0),))
        elif kind == 3:
            self.write("sum", (y,), (self.random.choice(((0,), (1,), (0, 1))),))

    def cut(self) -> None:
        """What is padded, and then cut anywhere."""
        x: Variable = self.random.choice(self.values)
        pads = tuple([(self.random.randint(0, 2), self.random.randint(0, 2)) for _ in x.shape])
        padded = self.write("pad", (x,), (pads,))
        limits = []
        for n in padded.shape:
            start = self.random.randint(0, n)
            limits.append((start, self.random.randint(start, n)))
        self.write("crop", (padded,), (tuple(limits),))

    def side_by_side(self) -> None:
        """A sum of values that are padded to stand beside one another, or nearly so."""
        found = [v for v in self.values if v.shape and v.dtype.kind != "bool"]
        if found:
            x = self.random.choice(found)
            n = x.shape[0]
            rest = ((0, 0),) * (len(x.shape) - 1)
            size = n * self.random.choice((3, 3, 4))
            total = None
            for before in self.random.sample((0, n, 2 * n), 3):
                part = self.write("pad", (self.like(x),), (((before, size - n - before), *rest),))
                total = part if total is None else self.write("add", (total, part))

    def scattered(self) -> None:
        """Few numbers, scattered to many places, which are then rows whose sums are taken."""
        dtype = float64 if self.exact else float32
        count, rows, columns = (self.random.randint(1, 3) for _ in range(3))
        x = Variable((count,), dtype)
        self.inputs.append(x)
        elements = [self.random.randrange(4 * rows * columns) for _ in range(count)]
        places = Variable((count,), int32)
        self.constants[places] = Tensor(self.backend, self.backend.new((count,), elements, int32))
        y = self.write("scatter_add", (x, places), (0, 4 * rows * columns))
        y = self.write("reshape", (y,), (self.random.choice(((rows, 4 * columns), (4 * rows, columns))),))
        self.write("sum", (y,), (self.random.choice(((0,), (1,), (0, 1))),))

    def signs(self) -> None:
        """What is negated or halved, and what becomes of it."""
        found = [v for v in self.values if v.dtype.kind == "float"]
        if found:
            x = self.random.choice(found)
            halves = Literal(x.shape, x.dtype, self.random.choice((2.0, -4.0)))
            for _ in range(self.random.randint(1, 2)):
                x = self.write("neg", (x,)) if self.random.random() < 0.5 else self.write("div", (x, halves))
            name = self.random.choice(("sum", "add", "sub", "mul", "neg"))
            if name == "sum":
                self.write(
                    name, (x,), (tuple([i for i in range(len(x.shape)) if self.random.random() < 0.5]),)
                )
            else:
                self.write(name, (x,) if name == "neg" else (x, self.like(x)))

    def call(self) -> None:
        """A call of a small program of its own."""
        chosen = self.random.choices(self.values, k=self.random.randint(1, 2))
        inner = self.inner(chosen)
        program = inner.finished()
        if program.outputs:
            self.write(CALL, chosen, (program,))

    # ---- choices and loops -----------------------------------------------------------------------------------

    def choice(self) -> None:
        """One of two programs, which may use less than they are given."""
        x: Variable = self.random.choice(self.values)
        if self.random.random() < 0.2 or x.dtype is bool_:
            predicate: Variable = Literal((), bool_, self.random.random() < 0.5)
        else:
            top = self.write("reshape", (self.write("max", (x,), (tuple(range(len(x.shape))),)),), ((),))
            predicate = self.write("lt", (top, self.literal((), x.dtype)))
        given = self.given()
        branches = [self.inner(given), self.inner(given)]
        outputs = [branches[0].some(v) for v in self.random.choices(branches[0].values, k=2)]
        others = [branches[1].some(v) for v in outputs]
        programs = tuple([draft.of(ys) for draft, ys in zip(branches, (outputs, others), strict=True)])
        self.write(COND, (predicate, *given), programs)

    def loop(self) -> None:
        """A loop whose carries may change places, or not change at all, and which may carry what nobody needs."""
        until = self.random.random() < 0.3
        length = self.random.choice((0, 1, 2, 3))
        given = self.given()
        roles: list[Role] = [self.random.choice((CARRY, CARRY, CONSTANT)) for _ in given]
        along = [i for i, v in enumerate(given) if v.shape]
        if until:  # a counter, and where it ends
            given += [Literal((), int32, 0), Literal((), int32, length)]
            roles += [CARRY, CARRY]
        elif along and self.random.random() < 0.6:
            i = self.random.choice(along)
            roles[i] = axis = self.random.randint(0, len(given[i].shape) - 1)
            length = given[i].shape[axis]
        draft = self.inner([_slice(v, role) for v, role in zip(given, roles, strict=True)])
        results = [draft.some(v) for v, role in zip(draft.inputs, roles, strict=True) if role == CARRY]
        if until:
            *_, counter, end = draft.inputs
            results[-2:] = [draft.write("add", (counter, Literal((), int32, 1))), end]
            condition = Draft(self.random, self.backend, self.exact)
            condition.inputs = [Variable(v.shape, v.dtype) for v in draft.inputs]
            goes_on = condition.write("lt", condition.inputs[-2:])
            self.write(WHILE, given, (condition.of([goes_on]), draft.of(results), tuple(roles)))
            return
        stacked = self.random.choices(draft.values, k=self.random.randint(0 if results else 1, 2))
        going_out: list[Role] = [CARRY] * len(results)
        going_out += [self.random.randint(0, len(v.shape)) for v in stacked]
        program = draft.of([*results, *stacked])
        self.write(SCAN, given, (program, tuple(roles), tuple(going_out), length, self.random.random() < 0.3))

    def given(self) -> list[Variable]:
        """What a program is run on: values, of which one may be there twice, or literals."""
        chosen = self.random.choices(self.values, k=self.random.randint(1, 4))
        return [self.literal(v.shape, v.dtype) if self.random.random() < 0.2 else v for v in chosen]

    def inner(self, like: Sequence[Variable]) -> Draft:
        """The draft of a program on such values."""
        draft = Draft(self.random, self.backend, self.exact)
        draft.inputs = [Variable(v.shape, v.dtype) for v in like]
        draft.values = list(draft.inputs)
        for _ in range(self.random.randint(1, 4)):
            draft.extend()
        return draft

    def some(self, like: Variable) -> Variable:
        """A value of that shape and dtype."""
        same = [v for v in self.values if v.dtype is like.dtype and v.shape == like.shape]
        return self.random.choice(same) if same else self.literal(like.shape, like.dtype)

    def of(self, outputs: Sequence[Variable]) -> Program:
        """The program of these outputs."""
        return Program(tuple(self.inputs), tuple(outputs), tuple(self.equations), backend=self.backend)

    def finished(self) -> Program:
        """The program: all values that nothing uses are outputs, so that nothing is in vain, and some others may be."""
        used = {v for e in self.equations for v in e.operands}
        outputs = [v for v in self.values if v not in used] + self.empty
        if self.random.random() < 0.5:
            outputs.append(self.random.choice(self.values))
        return Program(
            tuple(self.inputs), tuple(outputs), tuple(self.equations), self.constants, backend=self.backend
        )


def _slice(v: Variable, role: Role) -> Variable:
    """What a step of a loop gets of a value."""
    return Variable((*v.shape[:role], *v.shape[role + 1 :]), v.dtype) if isinstance(role, int) else v


def _reshaped(random: Random, shape: Shape) -> Shape:
    """Another shape of as many elements: axes of size 1 moved, or axes joined and split."""
    real = [n for n in shape if n != 1]
    if random.random() < 0.5 and len(real) > 1:
        real = random.choice(([math.prod(real)], real[::-1], [real[0], math.prod(real[1:])]))
    new = list(real)
    for _ in range(random.randint(0, 2)):
        new.insert(random.randint(0, len(new)), 1)
    return tuple(new[:5])


def programs(
    backend: RawTensor[Any], exact: bool = False, size: int = 20
) -> st.SearchStrategy[tuple[Program, list[list[Any]]]]:
    """Programs, each with elements for its inputs.

    Drawn evenly from a seed: drawn choice by choice they would be few equations of one kind.  A smaller size is tried
    when one fails.
    """
    return st.builds(
        lambda steps, seed: _drawn(Random(seed), backend, exact, steps),
        st.integers(5, size),
        st.integers(0, 2**32 - 1),
    )


def _drawn(
    random: Random, backend: RawTensor[Any], exact: bool, size: int
) -> tuple[Program, list[list[Any]]]:
    draft = Draft(random, backend, exact)
    for _ in range(random.randint(1, 3)):
        draft.give()
    for _ in range(size):
        step = random.randint(0, 15)
        if step == 0:
            random.choice((draft.call, draft.choice, draft.loop))()
        elif step == 1:
            draft.scope = random.randint(0, 1)
        elif step < 6:
            draft.idiom()
        else:
            draft.extend()
    program = draft.finished()
    return program, [draft.elements(v) for v in program.inputs]


def on(program: Program, backend: RawTensor[Any], elements: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The elements of the outputs, flat; the equations run one by one, those of inner programs too."""
    xs = [backend.new(v.shape, list(x), v.dtype) for v, x in zip(program.inputs, elements, strict=True)]
    ys = Plain(backend).run(program, xs)
    for y, v in zip(ys, program.outputs, strict=True):
        assert backend.shape(y) == v.shape
        assert backend.dtype(y) is v.dtype
    return [_elements(backend, y) for y in ys]


def largest(program: Program, backend: RawTensor[Any], elements: Sequence[Sequence[Any]]) -> float:
    """The largest absolute value of all that is computed on the way."""
    xs = [backend.new(v.shape, list(x), v.dtype) for v, x in zip(program.inputs, elements, strict=True)]
    plain = Plain(backend)
    plain.run(program, xs)
    return max([abs(e) for y in plain.seen for e in _elements(backend, y)], default=0.0)


def _elements(backend: RawTensor[Any], y: Any) -> list[Any]:
    return [getattr(e, "item", lambda e=e: e)() for e in backend.ravel(y)]


class Plain:
    """What `replay` does, without preparing the inner programs: calls, choices and loops are Python's own.

    Attributes:
        seen: all that has been computed.
    """

    def __init__(self, backend: RawTensor[Any]) -> None:
        self.backend = backend
        self.seen: list[Any] = []

    def run(self, program: Program, xs: Sequence[Any]) -> list[Any]:
        """The outputs."""
        values = dict(zip(program.inputs, xs, strict=True))

        def value(v: Variable) -> Any:
            return values[v] if v in values else program.outside(v, self.backend)

        for e in program.equations:
            operands = [value(v) for v in e.operands]
            own = {CALL: self.call, COND: self.choose, SCAN: self.scan, WHILE: self.loop}.get(e.op)
            ys = own(e, *operands) if own else run(self.backend, e.op, operands, e.params)
            ys = (ys,) if e.op.results == 1 else ys
            self.seen += ys
            values.update(zip(e.results, ys, strict=True))
        return [value(v) for v in program.outputs]

    def call(self, e: Equation, *xs: Any) -> list[Any]:
        """A call."""
        return self.run(e.params[0], xs)

    def choose(self, e: Equation, predicate: Any, *xs: Any) -> list[Any]:
        """A choice."""
        return self.run(e.params[0] if _elements(self.backend, predicate)[0] else e.params[1], xs)

    def loop(self, e: Equation, *xs: Any) -> list[Any]:
        """A while loop."""
        condition, body, roles = e.params
        values = list(xs)
        while _elements(self.backend, self.run(condition, values)[0])[0]:
            carried = iter(self.run(body, values))
            values = [next(carried) if r == CARRY else x for x, r in zip(values, roles, strict=True)]
        return [x for x, r in zip(values, roles, strict=True) if r == CARRY]

    def scan(self, e: Equation, *xs: Any) -> list[Any]:
        """A loop of so many steps."""
        program, going_in, going_out, length, reverse = e.params
        values, stacks = list(xs), [list[Any]() for _ in e.results]
        for k in reversed(range(length)) if reverse else range(length):
            given = [
                self._part(x, r, k) if isinstance(r, int) else x
                for x, r in zip(values, going_in, strict=True)
            ]
            ys = self.run(program, given)
            carried = iter([y for y, r in zip(ys, going_out, strict=True) if r == CARRY])
            values = [next(carried) if r == CARRY else x for x, r in zip(values, going_in, strict=True)]
            for stack, y in zip(stacks, ys, strict=True):
                stack.insert(0 if reverse else k, y)
        carried = iter([x for x, r in zip(values, going_in, strict=True) if r == CARRY])
        return [
            next(carried) if r == CARRY else self._stacked(stack, r, v)
            for stack, r, v in zip(stacks, going_out, e.results, strict=True)
        ]

    def _part(self, x: Any, axis: int, k: int) -> Any:
        shape = self.backend.shape(x)
        limits = tuple([(k, k + 1) if i == axis else (0, n) for i, n in enumerate(shape)])
        part = run(self.backend, OPS["crop"], (x,), (limits,))
        return run(self.backend, OPS["reshape"], (part,), ((*shape[:axis], *shape[axis + 1 :]),))

    def _stacked(self, ys: Sequence[Any], axis: int, v: Variable) -> Any:
        if not ys:
            return self.backend.full(v.shape, 0, v.dtype)
        shape = (*v.shape[:axis], 1, *v.shape[axis + 1 :])
        parts = [run(self.backend, OPS["reshape"], (y,), (shape,)) for y in ys]
        return run(self.backend, OPS["concatenate"], parts, (axis,))


def bits(outputs: Sequence[Sequence[Any]]) -> list[list[str]]:
    """What two equal results share: all but the sign of a NaN."""
    return [[repr(e) for e in y] for y in outputs]


def numbers(outputs: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The same but for the signs of zeros."""
    return [
        [e + 0 if isinstance(e, int | float) and not isinstance(e, bool) else e for e in y] for y in outputs
    ]
